"""Adadelta (Zeiler 2012)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import multiply, sqrt
from glassgrad.optim.optimizer import Optimizer, at_least, into, share, weak


class Adadelta(Optimizer):
    """p -= lr * d with d = sqrt(u + eps) / sqrt(v + eps) * g, v and u running means of g**2 and d**2.

    Args:
        params: parameters or groups of them.
        lr: factor of the step.
        rho: share of the running means that is kept.
        eps: added under the roots.
        weight_decay: multiple of p added to g.
        maximize: climb instead.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.Adadelta([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.9997])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}, hints
        )

    def limits(self) -> Any:
        return [*super().limits(), share("rho"), at_least("eps", 0)]

    def update(self, p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> Array:
        scratch = self.scratch(p)
        rho, eps = group["rho"], group["eps"]
        lr = weak(self.number(group, "lr"), p)
        if group["weight_decay"]:
            g = g + p * group["weight_decay"]
        v, u = self.slot(state, "square_avg", p), self.slot(state, "acc_delta", p)
        square = into(scratch, multiply, g, g)
        square *= 1 - rho
        v *= rho
        v += square
        delta = sqrt(u + eps)
        delta /= sqrt(v + eps)
        delta *= g
        square = into(scratch, multiply, delta, delta)
        square *= 1 - rho
        u *= rho
        u += square
        state["square_avg"].array, state["acc_delta"].array = v, u
        delta *= lr
        p -= delta
        return p


__all__ = ["Adadelta"]
