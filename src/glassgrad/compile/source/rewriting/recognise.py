"""Closed-form gradients, which replace a dozen lines, with the names of their rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad.compile.front.calls.parameters import Function
from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.source.differentiate import Replay
from glassgrad.compile.source.rewriting.patterns import Finder, Match
from glassgrad.engine.node import record
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops import core
from glassgrad.ops.core import Array
from glassgrad.ops.index import getitem_p
from glassgrad.ops.places import ARRAY
from glassgrad.ops.reduce import log_softmax_p, softmax_p, sum_p


@dataclass(frozen=True)
class Formula:
    """A closed-form gradient.

    Attributes:
        rule: its name and formula.
        vjp: cotangent and facts (values filled in) -> cotangent of the source.
    """

    rule: str
    vjp: Function


def _cross_entropy(g: Array, *, scale: float, targets: Array, probabilities: Array, source: Tensor) -> Array:
    # d/dx of -sum(log_softmax(x)[rows, targets]) is softmax(x) - one_hot(targets).
    soft = probabilities if probabilities is not None else softmax_p(source, axis=1)
    difference = soft - getitem_p(np.eye(source.shape[1], dtype=source.dtype), targets, spec=(ARRAY,))
    return g * difference / _count(scale)


def _count(scale: float) -> float:
    """Return n for a factor 1 / n."""
    count = 1 / scale
    return round(count) if abs(count - round(count)) < 1e-6 else count


def _standardise(
    g: Array,
    *,
    axis: tuple[int, ...],
    count: int,
    freedom: int,
    normal: Array,
    root: Array,
    inverse: bool,
    source: Tensor,
) -> Array:
    # With n values each: dx = (n g - sum(g) - n / (n - c) y sum(g y)) / (n std), c = n - freedom.
    total = sum_p(g, axis=axis, keepdims=True)
    along = sum_p(g * normal, axis=axis, keepdims=True)
    ratio = count / freedom
    last = normal * along if ratio == 1 else ratio * normal * along
    inside = count * g - total - last
    return root / count * inside if inverse else inside / (count * root)


FORMULAS: dict[str, Formula] = {
    "cross entropy": Formula("log-softmax + negative log likelihood: softmax - one_hot", _cross_entropy),
    "standardise": Formula("normalisation: (n g - sum(g) - n/(n-c) y sum(g y)) / (n std)", _standardise),
}


class Recogniser:
    """Replaces the gradients of recognised functions while a forward pass is replayed.

    Attributes:
        notes: the replacements and their rules, for the reader.
    """

    def __init__(self, graph: Graph, arrays: Mapping[Var, Array]) -> None:
        self.matches = Finder(graph, arrays).matches()
        self.inner = {instr: match for match in self.matches for instr in match.inner}
        self.ends = {match.inner[-1]: match for match in self.matches}
        self.notes: list[tuple[str, Match]] = [(FORMULAS[match.kind].rule, match) for match in self.matches]

    def replace(self, replay: Replay, instr: Instr) -> bool:
        """Replay an instruction of a match off the tape; replace the last one by a single node."""
        match = self.inner.get(instr)
        if match is None:
            return False
        tensors = {var: replay.values[var] for var in instr.reads() if isinstance(replay.values[var], Tensor)}
        for var, one in tensors.items():
            replay.values[var] = make(one.array, None, False)
        replay.keep(instr)
        replay.values.update(tensors)
        if instr in self.ends:
            self._connect(replay, match)
        return True

    def _connect(self, replay: Replay, match: Match) -> None:
        source: Tensor = replay.values[match.source]
        if any(instr.op == "where" for instr in match.inner):
            replay.values[match.result] = make(_without_ignored(replay, match, source), None, False)
        result: Tensor = replay.values[match.result]
        facts = {
            name: replay.values[fact].array if isinstance(fact, Var) and fact in replay.values else fact
            for name, fact in match.facts.items()
        }
        formula = FORMULAS[match.kind]

        def vjp(g: Array, needs: Sequence[bool], _y: Array, _x: Array) -> list[Array]:
            return [formula.vjp(g, source=source.array, **facts)]

        prim = core.Custom(match.kind, lambda _xp, x: x, joint_vjp=vjp, register=False)
        prim.describe(formula.rule)
        where = match.inner[-1].where
        parent = source if source.node is None else source.node
        node = record(prim, (parent,), (None, source.array), {}, result.array, where.code, where.lasti)
        replay.values[match.result] = make(result.array, node, True)


def _without_ignored(replay: Replay, match: Match, source: Tensor) -> Any:
    """Simplify a library's cross entropy by dropping the handling of ignored targets; there are none."""
    targets = replay.values[match.facts["targets"]]
    replay.tracer.place = match.inner[-1].where
    logs = log_softmax_p(source.array, axis=1)
    rows = np.arange(source.shape[0])
    picked = getitem_p(logs, rows, getattr(targets, "array", targets), spec=(ARRAY, ARRAY))
    loss = -(sum_p(picked, axis=(0,), keepdims=False) / _count(match.facts["scale"]))
    replay.tracer.place = None
    return loss
