"""Algebraic simplification: the table in `rules`, and identities of ops with parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.compile.graph import Graph, Instr, Operand, Var
from glassgrad.compile.passes.rewriter import Rewriter
from glassgrad.compile.passes.rules import BY_OP, Letter, Pattern
from glassgrad.ops.core import REGISTRY, Elementwise

Structural = Callable[[Rewriter, Instr], Operand | None]


def simplify(graph: Graph) -> Graph:
    """Apply rewrites to every instruction, operands first, until none fits."""
    rewriter = Rewriter(graph)
    for instr in graph.instrs:
        made = rewriter.keep(instr)
        if len(made.outputs) != 1:
            continue
        better = _better(rewriter, made)
        while better is not None:
            rewriter.instead(made.output, better)
            following = rewriter.producer.get(better) if isinstance(better, Var) else None
            if following is None or following is made:
                break
            made = following
            better = _better(rewriter, made) if len(made.outputs) == 1 else None
    return rewriter.finish()


def _better(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """Return what to use in place of an instruction's result, or None."""
    for rule in BY_OP.get(instr.op, ()):
        found: dict[str, Operand] = {}
        if _match(rewriter, rule.left, instr, found):
            made = _build(rewriter, rule.right, found, instr)
            if _same_type(made, instr.output):
                return made
    structural = STRUCTURAL.get(instr.op)
    if structural is not None:
        made_here = structural(rewriter, instr)
        if made_here is not None and _same_type(made_here, instr.output):
            return made_here
    if isinstance(REGISTRY[instr.op], Elementwise):
        return _without_broadcasts(rewriter, instr)
    return None


def _same_type(value: Operand, wanted: Var) -> bool:
    return isinstance(value, Var) and value.shape == wanted.shape and value.dtype == wanted.dtype


# --- matching -------------------------------------------------------------------------------------


def _match(rewriter: Rewriter, pattern: Any, given: Any, found: dict[str, Operand]) -> bool:
    if isinstance(pattern, Pattern):
        instr = given if isinstance(given, Instr) else rewriter.producer.get(given) if isinstance(given, Var) else None
        if instr is None or instr.op != pattern.op or len(instr.inputs) != len(pattern.args):
            return False
        return all(_match(rewriter, part, value, found) for part, value in zip(pattern.args, instr.inputs, strict=True))
    if isinstance(pattern, Letter):
        if (pattern.name == "n") != (not isinstance(given, Var)) and pattern.name == "n":
            return False
        known = found.setdefault(pattern.name, given)
        return known is given or (not isinstance(given, Var) and known == given and type(known) is type(given))
    return not isinstance(given, Var) and type(given) in {int, float} and given == pattern


def _build(rewriter: Rewriter, pattern: Any, found: dict[str, Operand], like: Instr) -> Operand:
    if isinstance(pattern, Pattern):
        return rewriter.apply(pattern.op, *[_build(rewriter, arg, found, like) for arg in pattern.args], like=like)
    return found[pattern.name] if isinstance(pattern, Letter) else pattern


# --- ops with parameters --------------------------------------------------------------------------


def _source(rewriter: Rewriter, instr: Instr, op: str) -> Instr | None:
    """Return the instruction behind the first operand if it is that op."""
    first = instr.inputs[0]
    behind = rewriter.producer.get(first) if isinstance(first, Var) else None
    return behind if behind is not None and behind.op == op else None


def _reshape(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """reshape(reshape(x)) is one reshape; a reshape to the same shape is nothing."""
    first = instr.inputs[0]
    if isinstance(first, Var) and first.shape == instr.output.shape:
        return first
    behind = _source(rewriter, instr, "reshape")
    return None if behind is None else rewriter.apply("reshape", behind.inputs[0], like=instr, **instr.params)


def _permute(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """Two permutations are one; the order as it is is nothing."""
    axes = instr.params["axes"]
    if axes == tuple(range(len(axes))):
        return instr.inputs[0]
    behind = _source(rewriter, instr, "permute_dims")
    if behind is None:
        return None
    joined = tuple(behind.params["axes"][axis] for axis in axes)
    return rewriter.apply("permute_dims", behind.inputs[0], like=instr, axes=joined)


def _broadcast(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """Broadcasting to the same shape is nothing; twice is once."""
    first = instr.inputs[0]
    if isinstance(first, Var) and first.shape == instr.output.shape:
        return first
    behind = _source(rewriter, instr, "broadcast_to")
    return None if behind is None else rewriter.apply("broadcast_to", behind.inputs[0], like=instr, **instr.params)


def _astype(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """A cast to the dtype it has is nothing."""
    first = instr.inputs[0]
    return first if isinstance(first, Var) and first.dtype == instr.output.dtype else None


def _sum(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """A sum over axes of length 1 is a reshape."""
    first = instr.inputs[0]
    if not isinstance(first, Var) or any(first.shape[axis] != 1 for axis in instr.params["axis"]):
        return None
    return rewriter.apply("reshape", first, like=instr, shape=instr.output.shape)


def _getitem(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """An index that takes everything is nothing."""
    whole = all(part is Ellipsis or (isinstance(part, tuple) and part == (None, None, None))
                for part in instr.params["spec"])  # fmt: skip
    return instr.inputs[0] if whole else None


STRUCTURAL: dict[str, Structural] = {
    "reshape": _reshape, "permute_dims": _permute, "broadcast_to": _broadcast, "astype": _astype, "sum": _sum,
    "max": _sum, "min": _sum, "getitem": _getitem,
}  # fmt: skip


def _without_broadcasts(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """Elementwise ops broadcast by themselves: drop a broadcast_to in front when the result keeps its shape."""
    for position, operand in enumerate(instr.inputs):
        behind = rewriter.producer.get(operand) if isinstance(operand, Var) else None
        if behind is None or behind.op != "broadcast_to":
            continue
        inputs = [*instr.inputs]
        inputs[position] = behind.inputs[0]
        made = rewriter.apply(instr.op, *inputs, like=instr, **instr.params)
        if _same_type(made, instr.output):
            return made
    return None
