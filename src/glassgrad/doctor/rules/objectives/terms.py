"""The terms that a loss adds up: each with its sign, its weight and the axes that were summed or averaged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from glassgrad.doctor.graphs.graph import VIEWS, Graph, Op
from glassgrad.doctor.reading.names import named

_SAME = VIEWS | named("stack cat concatenate dropout nan_to_num")
_RISING = named("minimum maximum min max clip where masked_fill amin amax relu")
"""Ops that do not fall if one of their operands rises; what is larger than a limit may have no effect."""
_SUMS = named("add sum mean")
_MOST = 2_000


@dataclass(frozen=True)
class Term:
    """An op on the way to a loss that only sums, means, signs and weights lie behind.

    Attributes:
        number, op: the op.
        sign: 1 if the loss rises with it, -1 if it falls.
        weight: what one of its numbers adds to the loss, NaN if unknown.
        reduced: the number of the last sum or mean on the way to it, -1 if there was none.
        straight: whether no op of a limit, such as a minimum, lies on the way.
        summed: whether the reduction of its first axis, which counts the examples, is a sum and no mean.
        divisors: the numbers that the loss divides it by, such as the number of examples.
    """

    number: int
    op: Op
    sign: int
    weight: float
    reduced: int = -1
    straight: bool = True
    summed: bool = False
    divisors: tuple[float, ...] = ()


def passed(graph: Graph) -> Iterator[Term]:
    """Yield every op on the ways from the loss back through sums, means, signs and weights, the loss first.

    An op that the loss reaches with both signs is left out.
    """
    found: dict[int, Term] = {}
    mixed: set[int] = set()
    waiting = [Term(graph.loss, graph.ops[graph.loss], 1, 1.0)] if graph.loss >= 0 else []
    for _ in range(_MOST):
        if not waiting:
            break
        term = waiting.pop()
        known = found.get(term.number)
        if known is not None:
            if known.sign != term.sign:
                mixed.add(term.number)
            continue
        found[term.number] = term
        waiting += _operands(graph, term)
    yield from (term for number, term in found.items() if number not in mixed)


def _operands(graph: Graph, term: Term) -> Iterator[Term]:
    """Yield the operands of a term that the loss rises or falls with as a whole."""
    op = term.op
    tracked = [(place, parent) for place, parent in enumerate(op.parents) if parent >= 0]
    for place, parent in tracked:
        step = _step(op, place, len(tracked))
        if step is None:
            return
        sign, factor = step
        made = graph.ops[parent]
        mine, its = (math.prod(shape) for shape in (op.shape, made.shape))
        spread = 1 / max(its / max(mine, 1), 1) if op.name == "mean" else max(mine / max(its, 1), 1)  # or broadcast
        reduced = term.number if op.name in {"sum", "mean"} else term.reduced
        straight = term.straight and op.name not in _RISING
        divisors = term.divisors if factor in {0.0, 1.0} else (*term.divisors, 1 / factor)
        divisors = () if mine > its else divisors  # a mean over copies of one number takes nothing back
        over = op.name in {"sum", "mean"} and op.shape[:1] != made.shape[:1]
        summed = _is_sum(op, made, divisors) if over else term.summed
        yield Term(parent, made, term.sign * sign, term.weight * factor * spread, reduced, straight, summed, divisors)


def _is_sum(op: Op, made: Op, divisors: tuple[float, ...]) -> bool:
    """Tell whether a reduction adds the examples up, and nothing later divides by their number."""
    counts = (made.shape[0], math.prod(made.shape) / max(math.prod(op.shape), 1))
    return op.name == "sum" and not any(math.isclose(one, count) for one in divisors for count in counts)


def _step(op: Op, place: int, tracked: int) -> tuple[int, float] | None:
    """Return sign and size of what an op multiplies an operand with; None if it is no sum or weight of it."""
    if op.name in _SUMS or op.name in _SAME or op.name in _RISING:
        return 1, 1.0
    if op.name in {"negative", "subtract"}:
        return (-1 if op.name == "negative" or place else 1), 1.0
    if op.name not in {"multiply", "divide"} or tracked != 1 or (op.name == "divide" and place):
        return None
    factor, weights = op.factor, op.constant
    if weights is not None:
        if weights.low < 0 < weights.high or weights.low == weights.high == 0:
            return None
        factor = weights.low if weights.low == weights.high else math.copysign(math.inf, weights.low + weights.high)
    elif math.isnan(factor):
        return (1, math.nan) if op.name == "divide" and op.shapes[1:2] in {((),), (None,)} else None
    size = math.nan if math.isinf(factor) else abs(factor)
    if not size:
        return None
    return (-1 if factor < 0 else 1), (size if op.name == "multiply" else 1 / size)
