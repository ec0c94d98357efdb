"""RMSprop (Hinton 2012, lecture 6e), with momentum and the centred variant (Graves 2013)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import divide, multiply, sqrt
from glassgrad.optim.optimizer import Optimizer, into, weak


class RMSprop(Optimizer):
    """p -= lr * g / (sqrt(v) + eps) with v = alpha * v + (1 - alpha) * g**2.

    Args:
        params: parameters or groups of them.
        lr: rate.
        alpha: share of the running mean square that is kept.
        eps: added to the root.
        weight_decay: multiple of p added to g.
        momentum: if not 0, steps are accumulated, b = momentum * b + g / (sqrt(v) + eps).
        centered: subtract the squared running mean from v.
        maximize: climb instead.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.RMSprop([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
             "centered": centered, "maximize": maximize},
            hints,
        )  # fmt: skip  # a table

    def limits(self) -> Any:
        return [
            *super().limits(),
            ("alpha", lambda v: 0 <= v <= 1, "a share between 0 and 1"),
            ("eps", lambda v: v >= 0, "a number of at least 0"),
            ("momentum", lambda v: v >= 0, "a momentum of at least 0"),
        ]

    def update(self, p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> Array:
        scratch = self.scratch(p)
        lr, alpha = weak(self.number(group, "lr"), p), group["alpha"]
        if group["weight_decay"]:
            g = g + p * group["weight_decay"]
        v = self.slot(state, "square_avg", p)
        square = into(scratch, multiply, g, g)
        square *= 1 - alpha
        v *= alpha
        v += square
        state["square_avg"].array = v
        root = into(scratch, sqrt, self._centred(v, g, state, alpha) if group["centered"] else v)
        root += group["eps"]
        step = into(scratch, divide, g, root)
        if group["momentum"]:
            b = self.slot(state, "momentum_buffer", p)
            b *= weak(self.moved(group, "momentum"), p)
            b += step
            state["momentum_buffer"].array = b
            step = into(scratch, multiply, b, lr)
        else:
            step *= lr
        p -= step
        return p

    def _centred(self, v: Array, g: Array, state: dict[str, Any], alpha: float) -> Array:
        mean = self.slot(state, "grad_avg", g)
        mean *= alpha
        mean += g * (1 - alpha)
        state["grad_avg"].array = mean
        return v - mean * mean


__all__ = ["RMSprop"]
