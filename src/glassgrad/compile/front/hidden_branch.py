"""Detect in compiled steps a cotangent of 0 that becomes NaN in a branch that `where` did not take.

Eager mode detects it by NumPy's warning. A compiled step computes cotangents in fused loops without warnings. So if a
trace sends cotangents through a choice into an op whose slope may be infinite, the step counts such elements: one
extra output per user line, summed in the loop that computes the cotangent anyway. Other traces are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from glassgrad.base import provenance
from glassgrad.compile.front import origin
from glassgrad.compile.front.finite import summed
from glassgrad.compile.front.symbol import Symbol
from glassgrad.compile.front.tracer import Tracer
from glassgrad.compile.ir.graph import GraphBuilder, Var
from glassgrad.engine.node import Node
from glassgrad.engine.walks.anomaly import CHOOSERS
from glassgrad.ops.core import Array, Elementwise

_STEEP_OPS = """
    sqrt rsqrt root log log2 log10 log1p divide reciprocal power exp exp2 expm1 sinh cosh tan acos asin acosh atanh
    erfinv ndtri xlogy xlog1py gammaln digamma entr
"""
_STEEP = frozenset(_STEEP_OPS.split())
_SUMS = frozenset({"sum", "mean"})
_EPS = 1e-2
_MOST = 8
"""The largest number of lines of a program that are watched: those nearest to the loss."""


class Branch(NamedTuple):
    """An op that sent a cotangent on: its name, the user's line, the cotangents of its result and of its operand."""

    op: str
    place: provenance.Place
    result: Var
    operand: Var


class StepTracer(Tracer):
    """A tracer that records where a cotangent that a choice may have zeroed meets a slope that may be infinite."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.branches: list[Branch] = []
        self._chosen: set[int] = set()  # sequence numbers of nodes whose cotangents came through a choice

    def follow(self, nodes: Iterable[Node | None]) -> list[Branch]:
        """Begin a new list for a walk from results, because the choice may be outside of the compiled function."""
        self._chosen.update(node.seq for node in nodes if node is not None)
        self.branches = []
        return self.branches

    def sent(self, target: object, c: Array) -> None:
        if not self.rules:
            return
        rule = self.rules[-1]
        node = rule.node
        below = node.seq in self._chosen
        if node.prim.name not in CHOOSERS and not (below and _keeps_zeros(node)):
            return
        if isinstance(target, Node):
            self._chosen.add(target.seq)
        if below and _may_be_infinite(node) and not self._has_eps(node):
            g, sent = origin.inside(rule.cotangent), origin.inside(c)
            if isinstance(g, Symbol) and isinstance(sent, Symbol) and _is_like(g, sent):
                self.branches.append(Branch(node.name, node.place, g.var, sent.var))

    def _has_eps(self, node: Node) -> bool:
        """Return whether the operand of an op is a sum with a small positive constant, as in normalisations."""
        made = self.instr_of(node.seq)
        operand = made.inputs[-1 if node.name == "divide" else 0] if made is not None else None
        sum_of = self._producer.get(operand) if isinstance(operand, Var) else None
        if sum_of is None or sum_of.op != "add":
            return False
        return any(isinstance(part, int | float) and 0 < part <= _EPS for part in sum_of.inputs)


def _keeps_zeros(node: Node) -> bool:
    """Return whether an op passes on the zeros of its cotangent, i.e. its backward pass does not mix elements."""
    prim = node.prim
    return isinstance(prim, Elementwise) or prim.is_view or prim.indices is not None or prim.name in _SUMS


def _is_like(g: Symbol, sent: Symbol) -> bool:
    return g.shape == sent.shape and g.dtype == sent.dtype and g.dtype.kind in "fV"


def _may_be_infinite(node: Node) -> bool:
    """Return whether the slope of an op may be infinite at finite operands, as far as its constants tell."""
    name, saved = node.prim.name, node.saved
    if name not in _STEEP or type(saved) is not tuple:
        return False
    if name not in {"divide", "power"}:
        return True
    second = origin.inside(saved[-1])  # the divisor, the exponent
    if isinstance(second, Symbol):
        return True
    # Only a constant below 1 makes a slope infinite; the slope along the constant itself is never needed.
    return bool(np.any(np.asarray(second) == 0) if name == "divide" else np.any(np.asarray(second) < 1))


def counts(builder: GraphBuilder, branches: Iterable[Branch]) -> list[tuple[Branch, Var]]:
    """Append, for each line and op, the number of elements whose cotangent was 0 and became NaN."""
    found: dict[tuple[str, str, int], tuple[Branch, Var]] = {}
    for branch in branches:
        g, c = branch.result, branch.operand
        key = (branch.op, branch.place.file, branch.place.line)
        if not g.size or (key not in found and len(found) == _MOST):
            continue
        zero = builder.apply("equal", (g, 0.0), g.shape, np.bool_)
        nan = builder.apply("not_equal", (c, c), g.shape, np.bool_)
        both = builder.apply("logical_and", (zero, nan), g.shape, np.bool_)
        number = builder.apply("astype", (both,), g.shape, np.float32, {"dtype": np.dtype(np.float32)})
        total = summed(builder, number)
        if key in found:
            total = builder.apply("add", (found[key][1], total), (), np.float32)
        found[key] = found.get(key, (branch, total))[0], total
    return list(found.values())


__all__ = ["Branch", "StepTracer", "counts"]
