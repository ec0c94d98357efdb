"""Accumulators of reductions: their initial state, how to add a term, how to join two and fold lanes.

The state of a reduction is a tuple of registers: one for sums and extremes, two (best value, its index) for
argmax and argmin.
"""

from __future__ import annotations

from glassgrad.compile.llvm.loops.scalar import across_lanes, combine, identity_of
from glassgrad.compile.llvm.module.ir import Builder, Value, is_float
from glassgrad.compile.plan.nests import Reduction

State = tuple[Value, ...]


def is_positional(reduction: Reduction) -> bool:
    """Tell whether the reduction returns an index instead of a value."""
    return reduction.how.startswith("arg")


def _order(reduction: Reduction) -> str:
    return "maximum" if reduction.how == "argmax" else "minimum"


def start(b: Builder, reduction: Reduction, lanes: int) -> State:
    """Return the state before the first term."""
    kind = reduction.value.kind
    if is_positional(reduction):
        return b.const(identity_of(_order(reduction), kind), kind, lanes), b.const(0, "i64", lanes)
    return (b.const(identity_of(reduction.how, kind), kind, lanes),)


def term(b: Builder, reduction: Reduction, values: State, exists: Value | None) -> State:
    """Return one term as a state; lanes that do not exist hold the neutral element."""
    if exists is None:
        return values
    lanes = exists.lanes
    neutral = start(b, reduction, lanes)
    return tuple(b.select(exists, value, other) for value, other in zip(values, neutral, strict=True))


def join(b: Builder, reduction: Reduction, earlier: State, later: State) -> State:
    """Return the combined state."""
    if not is_positional(reduction):
        return (combine(b, reduction.how, earlier[0], later[0]),)
    better = _is_better(b, reduction, later[0], earlier[0])
    same = b.compare("oeq" if is_float(later[0].kind) else "eq", later[0], earlier[0])
    if is_float(later[0].kind):
        both_nan = b.binary("and", b.compare("uno", later[0], later[0]), b.compare("uno", earlier[0], earlier[0]))
        same = b.binary("or", same, both_nan)
    before = b.binary("and", same, b.compare("lt", later[1], earlier[1]))
    better = b.binary("or", better, before)
    return b.select(better, later[0], earlier[0]), b.select(better, later[1], earlier[1])


def accumulate(b: Builder, reduction: Reduction, state: State, values: State) -> State:
    """Add a term that comes after all those in the state."""
    if not is_positional(reduction):
        return join(b, reduction, state, values)
    better = _is_better(b, reduction, values[0], state[0])
    return b.select(better, values[0], state[0]), b.select(better, values[1], state[1])


def _is_better(b: Builder, reduction: Reduction, challenger: Value, best: Value) -> Value:
    largest = reduction.how == "argmax"
    if not is_float(challenger.kind):
        return b.compare("gt" if largest else "lt", challenger, best)
    beats = b.compare("ogt" if largest else "olt", challenger, best)
    # The first NaN wins, as in NumPy.
    first_nan = b.binary("and", b.compare("uno", challenger, challenger), b.compare("ord", best, best))
    return b.binary("or", beats, first_nan)


def fold(b: Builder, reduction: Reduction, state: State) -> State:
    """Fold the lanes of a vector state into scalars."""
    if state[0].lanes == 1:
        return state
    if not is_positional(reduction):
        return (across_lanes(b, reduction.how, state[0]),)
    lanes = [
        tuple(b.define(f"extractelement {part.typed}, i64 {lane}", part.kind) for part in state)
        for lane in range(state[0].lanes)
    ]
    total: State = lanes[0]
    for lane in lanes[1:]:
        total = join(b, reduction, total, lane)
    return total


def result(b: Builder, reduction: Reduction, state: State) -> Value:
    """Return the value of the reduction."""
    return b.cast(state[-1], reduction.kind)
