"""Elimination of dead code and common subexpressions, and copies of results that alias inputs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from glassgrad.compile.ir.graph import Graph, Var
from glassgrad.compile.ir.passes.rewriter import Rewriter, frozen


def eliminate_dead(graph: Graph) -> Graph:
    """Drop instructions whose results are not used."""
    needed = set(graph.results())
    kept = []
    for instr in reversed(graph.instrs):
        if any(var in needed for var in instr.outputs):
            kept.append(instr)
            needed.update(instr.reads())
    rewriter = Rewriter(graph)
    for instr in reversed(kept):
        rewriter.keep(instr)
    return rewriter.finish()


def eliminate_common(graph: Graph) -> Graph:
    """Compute the same op on the same operands only once."""
    rewriter = Rewriter(graph)
    seen: dict[Hashable, tuple[Var, ...]] = {}
    constants: dict[Hashable, Var] = {}
    for var, value in graph.constants:
        if value.nbytes <= 4096:
            first = constants.setdefault((value.dtype.str, value.shape, value.tobytes()), var)
            if first is not var:
                rewriter.instead(var, first)
    for instr in graph.instrs:
        operands = tuple(
            operand.id if isinstance(operand, Var) else frozen(operand) for operand in map(rewriter.now, instr.inputs)
        )
        key = (instr.op, operands, frozen(instr.params))
        known = seen.get(key)
        if known is None:
            seen[key] = rewriter.keep(instr).outputs
            continue
        for var, first in zip(instr.outputs, known, strict=True):
            rewriter.instead(var, first)
    return rewriter.finish()


def settle(graph: Graph) -> Graph:
    """Give every result separate memory.

    An output or the new value of a state must not be an input or a view of one, because inputs are written to at
    the end. No two outputs may be the same array. Constants are copied for the same reason.
    """
    rewriter = Rewriter(graph)
    for instr in graph.instrs:
        rewriter.keep(instr)
    owned: set[Var] = set()

    def own(value: Any) -> Any:
        if not isinstance(value, Var):
            return value
        if value in owned or _shares(value, rewriter):
            value = rewriter.apply("copy", value)
        owned.add(value)
        return value

    outputs = tuple(own(out) for out in graph.outputs)
    updates = tuple((target, value if not _shares(value, rewriter) else own(value)) for target, value in graph.updates)
    return rewriter.finish(outputs, updates)


def _shares(value: Var, rewriter: Rewriter) -> bool:
    """Tell whether a value may share memory with an input or a constant."""
    while True:
        instr = rewriter.producer.get(value)
        if instr is None:
            return True
        if not (instr.is_view or instr.op == "astype"):
            return False
        source = instr.inputs[0]
        if not isinstance(source, Var):
            return False
        value = source
