"""Adafactor: Adam's mean square from sums over rows and columns alone (Shazeer and Stern 2018)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from glassgrad.engine.tensor import make
from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import maximum, minimum, rsqrt, sqrt
from glassgrad.ops.reduce import sum_p
from glassgrad.optim.optimizer import Optimizer, at_least, weak


class Adafactor(Optimizer):
    """p -= a * u / max(1, rms(u) / d) with u = g / sqrt(v), a = max(eps2, rms(p)) * min(lr, 1 / sqrt(t)).

    For matrices (the last two dimensions) v is the product of running means of g**2 over rows and over columns,
    divided by their mean: so n + m numbers of state in place of n * m.

    Args:
        params: parameters or groups of them.
        lr: the largest relative rate.
        beta2_decay: the running means take a share t**beta2_decay of each new value.
        eps: floor of sqrt(v), by default the smallest step of the dtype, and of rms(p).
        d: the largest root mean square of a step.
        weight_decay: decoupled decay.
        maximize: climb instead.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.Adafactor([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.7])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
            hints,
        )

    def limits(self) -> Any:
        return [
            *super().limits(),
            ("beta2_decay", lambda v: v <= 0, "a number of at most 0"),
            at_least("d", 1),
            ("eps", lambda v: len(v) == 2 and (v[0] is None or v[0] >= 0) and v[1] >= 0, "None or at least 0, twice"),
        ]

    def update(self, p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> Array:
        lr, t = self.number(group, "lr"), self.count(state)
        least, scale_least = group["eps"]
        least = float(np.finfo(p.dtype).eps) if least is None else least
        new = weak(t ** group["beta2_decay"], p)
        rate = maximum(_root_mean_square(p), scale_least) * weak(_smaller(lr, t**-0.5), p)
        if group["weight_decay"]:
            p *= weak(1 - lr * group["weight_decay"], p)
        square = self._mean_square(g, state, new, least)
        step = rsqrt(maximum(square, least * least)) * g
        step *= rate / maximum(_root_mean_square(step) / group["d"], 1.0)
        p -= step
        return p

    def _mean_square(self, g: Array, state: dict[str, Any], new: Any, least: float) -> Array:
        squares = g * g
        last = len(g.shape) - 1
        if last < 1:
            return self._running(state, "variance", squares, new)
        rows = self._running(state, "row_var", _mean(squares, last), new)
        columns = self._running(state, "col_var", _mean(squares, last - 1), new)
        return rows * columns / maximum(_mean(rows, last - 1), least)

    def _running(self, state: dict[str, Any], name: str, value: Array, new: Any) -> Array:
        """Return the running mean after taking `value` in."""
        if name not in state:
            state[name] = make(np.zeros(value.shape, value.dtype), None, False)
        mean = state[name].lifted()
        mean += (value - mean) * new
        state[name].array = mean
        return mean


def _mean(x: Array, axis: int) -> Array:
    return sum_p(x, axis=(axis,), keepdims=True) * (1 / x.shape[axis])


def _root_mean_square(x: Array) -> Array:
    return sqrt(sum_p(x * x, axis=tuple(range(len(x.shape))), keepdims=False)) * (1 / math.sqrt(math.prod(x.shape)))


def _smaller(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, float | int) and isinstance(b, float) else minimum(a, b)


__all__ = ["Adafactor"]
