"""Decomposition of composite primitives into smaller ones, for emitters and rules that need those."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var
from glassgrad.compile.ir.passes.rewriter import Rewriter
from glassgrad.compile.ir.passes.rules import Rule, Rules

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


def _rule(op: str, write: Callable[..., Var]) -> Rule:
    def build(rewriter: Rewriter, instr: Instr, *xs: Operand) -> Var:
        return write(partial(rewriter.apply, like=instr), *xs, **instr.params)

    return Rule(
        op, None, build, lambda _, instr: all(var.size for var in instr.reads())
    )  # a decomposition may not handle empty arrays


DECOMPOSE = Rules((_rule("softmax", _softmax), _rule("log_softmax", _log_softmax), _rule("logsumexp", _logsumexp)))


def decompose(graph: Graph) -> Graph:
    """Decompose composites."""
    return Rewriter(graph).rewrite(DECOMPOSE, again=False).finish()
