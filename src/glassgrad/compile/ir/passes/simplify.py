"""Algebraic simplification: the table in `rules`, and identities of ops with parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var
from glassgrad.compile.ir.passes.rewriter import Rewriter
from glassgrad.compile.ir.passes.rules import BY_OP, Letter, Pattern, Rule
from glassgrad.ops.axes import reduced_shape
from glassgrad.ops.core import PRIMITIVES, Elementwise

Structural = Callable[[Rewriter, Instr], Operand | None]


def simplify(graph: Graph) -> Graph:
    """Apply rewrites to every instruction, operands first, until none fits."""
    return simplified(graph).finish()


def simplified(
    graph: Graph,
    only: Callable[[Instr], bool] | None = None,
    more: Sequence[Rule] = (),
    opaque: Iterable[Var] = (),
) -> Rewriter:
    """Apply rewrites, and `more` of them, to the instructions that `only` chooses, looking behind no `opaque` value.

    Returns the rewriter, which knows what became of each value.
    """
    rewriter = Rewriter(graph)
    rewriter.opaque.update(opaque)
    for instr in graph.instrs:
        made = rewriter.keep(instr)
        if len(made.outputs) != 1 or (only is not None and not only(instr)):
            continue
        better = _better(rewriter, made, more)
        while better is not None:
            rewriter.instead(made.output, better)
            following = rewriter.producer.get(better) if isinstance(better, Var) else None
            if following is None or following is made:
                break
            made = following
            better = _better(rewriter, made, more) if len(made.outputs) == 1 else None
    return rewriter


def _better(rewriter: Rewriter, instr: Instr, more: Sequence[Rule]) -> Operand | None:
    """Return what to use in place of an instruction's result, or None."""
    for rule in (*BY_OP.get(instr.op, ()), *(rule for rule in more if rule.op == instr.op)):
        if not _may_match(rewriter, rule, instr):
            continue
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
    if isinstance(PRIMITIVES[instr.op], Elementwise):
        return _without_broadcasts(rewriter, instr)
    return None


def _same_type(value: Operand, wanted: Var) -> bool:
    return isinstance(value, Var) and value.shape == wanted.shape and value.dtype == wanted.dtype


# --- matching -------------------------------------------------------------------------------------


def _may_match(rewriter: Rewriter, rule: Rule, instr: Instr) -> bool:
    """Tell whether the operands are of the kinds that a rule asks for: few are, and this is the least that shows it."""
    for part, value in zip(rule.left.args, instr.inputs, strict=False):
        if type(part) is Letter:
            continue
        if (type(part) is Pattern) is not isinstance(value, Var):
            return False
        if type(part) is Pattern:
            behind = rewriter.behind(value)
            if behind is None or behind.op != part.op:
                return False
    return True


def _match(rewriter: Rewriter, pattern: Any, given: Any, found: dict[str, Operand]) -> bool:
    if isinstance(pattern, Pattern):
        instr = given if isinstance(given, Instr) else rewriter.behind(given)
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
    behind = rewriter.behind(instr.inputs[0])
    return behind if behind is not None and behind.op == op else None


def _reshape(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """reshape(reshape(x)) is one reshape; a reshape to the same shape is nothing."""
    first = instr.inputs[0]
    if isinstance(first, Var) and first.shape == instr.output.shape:
        return first
    behind = _source(rewriter, instr, "reshape")
    if behind is not None:
        return rewriter.apply("reshape", behind.inputs[0], like=instr, **instr.params)
    behind = _source(rewriter, instr, "negative")
    if behind is not None:
        moved = rewriter.apply("reshape", behind.inputs[0], like=instr, **instr.params)
        return rewriter.apply("negative", _reshape(rewriter, rewriter.producer[moved]) or moved, like=instr)
    return _kept_reduction(rewriter, instr)


def _kept_reduction(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """A reduction that gets its axes back right away keeps them, one that loses them drops them."""
    behind = rewriter.behind(instr.inputs[0])
    if behind is None or behind.op not in {"sum", "max", "min"} or rewriter.uses[behind.output] > 1:
        return None
    source, axes, keep = behind.inputs[0], behind.params["axis"], not behind.params["keepdims"]
    if not isinstance(source, Var) or not axes:
        return None
    if instr.output.shape != reduced_shape(source, axis=axes, keepdims=keep):
        return None
    return rewriter.apply(behind.op, source, like=behind, axis=axes, keepdims=keep)


def _permute(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """Two permutations are one; the order as it is is nothing."""
    axes = instr.params["axes"]
    if axes == tuple(range(len(axes))):
        return instr.inputs[0]
    behind = _source(rewriter, instr, "permute_dims")
    if behind is None:
        return _swapped_product(rewriter, instr, axes)
    joined = tuple(behind.params["axes"][axis] for axis in axes)
    if joined == tuple(range(len(axes))):
        return behind.inputs[0]
    return rewriter.apply("permute_dims", behind.inputs[0], like=instr, axes=joined)


def _swapped_product(rewriter: Rewriter, instr: Instr, axes: tuple[int, ...]) -> Operand | None:
    """(a @ b).T is b.T @ a.T, where nobody else wants a @ b."""
    product = _source(rewriter, instr, "matmul")
    last = len(axes) - 1
    if product is None or axes != (*range(last - 1), last, last - 1) or rewriter.uses[product.output] != 1:
        return None
    a, b = product.inputs
    if not isinstance(a, Var) or not isinstance(b, Var) or a.ndim != b.ndim or a.ndim < 2:
        return None
    turned = [rewriter.apply("permute_dims", x, like=instr, axes=axes) for x in (b, a)]
    plain = [_permute(rewriter, rewriter.producer[x]) or x for x in turned]
    return rewriter.apply("matmul", *plain, like=product)


def _broadcast(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """Broadcasting to the same shape is nothing; twice is once."""
    first = instr.inputs[0]
    if isinstance(first, Var) and first.shape == instr.output.shape:
        return first
    behind = _source(rewriter, instr, "broadcast_to") or _source(rewriter, instr, "reshape")
    if behind is None or (behind.op == "reshape" and getattr(behind.inputs[0], "shape", None) != ()):
        return None
    return rewriter.apply("broadcast_to", behind.inputs[0], like=instr, **instr.params)


def _astype(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """A cast to the dtype it has is nothing."""
    first = instr.inputs[0]
    return first if isinstance(first, Var) and first.dtype == instr.output.dtype else None


def _sum(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """A sum over axes of length 1 is a reshape; a sign goes through a sum."""
    first = instr.inputs[0]
    behind = _source(rewriter, instr, "negative") if instr.op == "sum" else None
    if behind is not None:
        return rewriter.apply(
            "negative", rewriter.apply("sum", behind.inputs[0], like=instr, **instr.params), like=instr
        )
    if not isinstance(first, Var) or any(first.shape[axis] != 1 for axis in instr.params["axis"]):
        return None
    return rewriter.apply("reshape", first, like=instr, shape=instr.output.shape)


def _getitem(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """An index that takes everything is nothing."""
    whole = all(
        part is Ellipsis or (isinstance(part, tuple) and part == (None, None, None)) for part in instr.params["spec"]
    )
    return instr.inputs[0] if whole else None


STRUCTURAL: dict[str, Structural] = {
    "reshape": _reshape, "permute_dims": _permute, "broadcast_to": _broadcast, "astype": _astype, "sum": _sum,
    "max": _sum, "min": _sum, "getitem": _getitem,
}  # fmt: skip  # a table


def _without_broadcasts(rewriter: Rewriter, instr: Instr) -> Operand | None:
    """Elementwise ops broadcast by themselves: drop a broadcast_to in front when the result keeps its shape."""
    for position, operand in enumerate(instr.inputs):
        behind = rewriter.behind(operand)
        if behind is None or behind.op != "broadcast_to":
            continue
        inputs = [*instr.inputs]
        inputs[position] = behind.inputs[0]
        made = rewriter.apply(instr.op, *inputs, like=instr, **instr.params)
        if _same_type(made, instr.output):
            return made
    return None
