"""Adafactor: Adam's mean square factorised into rows and columns (Shazeer and Stern 2018)."""

from __future__ import annotations

import math
from typing import Unpack

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import maximum, minimum, rsqrt, sqrt
from glassgrad.ops.narrow import finfo
from glassgrad.ops.reduce import sum_p
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Params, at_least, options


class Adafactor(Optimizer):
    """p -= a * u / max(1, rms(u) / d) with u = g / sqrt(v), a = max(eps2, rms(p)) * min(lr, 1 / sqrt(t)).

    For matrices (the last two dimensions) v is the product of running means of g**2 over rows and over columns,
    divided by their mean: n + m numbers of state instead of n * m.

    Args:
        params: parameters or parameter groups.
        lr: the largest relative rate.
        beta2_decay: at step t the running means give the new value the weight t**beta2_decay.
        eps: floor of sqrt(v), by default the smallest step of the dtype, and of rms(p).
        d: the largest root mean square of a step.
        weight_decay: decoupled decay.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.Adafactor([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.7])
    """

    checks = (
        ("beta2_decay", lambda v: v <= 0, "a number of at most 0"),
        at_least("d", 1),
        ("eps", lambda v: len(v) == 2 and (v[0] is None or v[0] >= 0) and v[1] >= 0, "None or at least 0, twice"),
    )

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr, (least, least_p), t = group.lr, group.eps, state.count()
        least = float(finfo(p.dtype).eps) if least is None else least
        a = maximum(root_mean_square(p), least_p) * minimum(lr, t**-0.5)
        if group.weight_decay:
            p = (1 - lr * group.weight_decay) * p
        v = mean_square(g, state, t**group.beta2_decay, least)
        u = rsqrt(maximum(v, least * least)) * g
        return p - u * (a / maximum(root_mean_square(u) / group.d, 1.0))


def mean_square(g: Array, state: State, new: Array, least: Array) -> Array:
    """Return the running mean of g**2 from those of its rows and columns; `new` is the weight of this step."""
    squares = g**2
    last = len(g.shape) - 1
    if last < 1:
        state.variance = v = running(state.like("variance", squares), squares, new)
        return v
    of_rows, of_columns = mean(squares, last), mean(squares, last - 1)
    state.row_var = rows = running(state.like("row_var", of_rows), of_rows, new)
    state.col_var = columns = running(state.like("col_var", of_columns), of_columns, new)
    return rows * columns / maximum(mean(rows, last - 1), least)


def running(mean: Array, value: Array, new: Array) -> Array:
    """Return a running mean updated with a value."""
    return mean + new * (value - mean)


def mean(x: Array, axis: int) -> Array:
    return sum_p(x, axis=(axis,), keepdims=True) * (1 / x.shape[axis])


def root_mean_square(x: Array) -> Array:
    return sqrt(sum_p(x * x, axis=tuple(range(len(x.shape))), keepdims=False)) * (1 / math.sqrt(math.prod(x.shape)))


__all__ = ["Adafactor"]
