"""Composite primitives written out in smaller ones, for emitters and rules that work on those."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var
from glassgrad.compile.ir.passes.rewriter import Rewriter

Apply = Callable[..., Var]


def _softmax(do: Apply, x: Operand, *, axis: int) -> Var:
    e = do("exp", do("subtract", x, do("max", x, axis=(axis,), keepdims=True)))
    return do("divide", e, do("sum", e, axis=(axis,), keepdims=True))


def _log_softmax(do: Apply, x: Operand, *, axis: int) -> Var:
    shifted = do("subtract", x, do("max", x, axis=(axis,), keepdims=True))
    total = do("sum", do("exp", shifted), axis=(axis,), keepdims=True)
    return do("subtract", shifted, do("log", total))


def _logsumexp(do: Apply, x: Var, *, axis: tuple[int, ...], keepdims: bool) -> Var:
    top = do("max", x, axis=axis, keepdims=True)
    shift = do("where", do("isfinite", top), top, 0)
    total = do("sum", do("exp", do("subtract", x, shift)), axis=axis, keepdims=True)
    y = do("add", do("log", total), shift)
    if keepdims:
        return y
    return do("reshape", y, shape=tuple(n for position, n in enumerate(x.shape) if position not in axis))


def _rsqrt(do: Apply, x: Operand) -> Var:
    return do("divide", 1, do("sqrt", x))


DECOMPOSITIONS: dict[str, Callable[..., Var]] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
}


def decompose(graph: Graph, ops: Collection[str] = frozenset(DECOMPOSITIONS)) -> Graph:
    """Write out the given composites."""
    rewriter = Rewriter(graph)
    for instr in graph.instrs:
        if instr.op in ops and all(var.size for var in instr.reads()):  # parts of nothing may not exist
            rewriter.instead(instr.output, _written_out(rewriter, instr))
        else:
            rewriter.keep(instr)
    return rewriter.finish()


def _written_out(rewriter: Rewriter, instr: Instr) -> Var:
    def do(op: str, *inputs: Operand, **params: Any) -> Var:
        return rewriter.apply(op, *inputs, like=instr, **params)

    return DECOMPOSITIONS[instr.op](do, *map(rewriter.now, instr.inputs), **instr.params)
