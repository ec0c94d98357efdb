"""RAdam, Adam whose first steps are plain momentum until the variance is known (Liu et al. 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import divide, maximum, multiply, sqrt, where
from glassgrad.optim.adam import decayed, moments
from glassgrad.optim.optimizer import Optimizer, at_least, betas, into, weak


class RAdam(Optimizer):
    """p -= lr * m / (1 - b1**t) * r / (sqrt(v / (1 - b2**t)) + eps), without the fraction in the first steps.

    r corrects the variance of the adaptive rate; it is known once rho_t, the length of the average, exceeds 5:
    rho_t = rho - 2 t b2**t / (1 - b2**t), rho = 2 / (1 - b2) - 1,
    r**2 = (rho_t - 4) (rho_t - 2) rho / ((rho - 4) (rho - 2) rho_t).

    Args:
        params: parameters or groups of them.
        lr: rate.
        betas: b1 and b2.
        eps: added to the root.
        weight_decay: multiple of p added to g, or with `decoupled_weight_decay` of p taken from p.
        decoupled_weight_decay: see `weight_decay`.
        maximize: climb instead.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.RAdam([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.4])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
             "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize},
            hints,
        )  # fmt: skip  # a table

    def limits(self) -> Any:
        return [*super().limits(), at_least("eps", 0), betas]

    def update(self, p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> Array:
        scratch = self.scratch(p)
        beta1, beta2 = self.moved(group, "betas")
        lr, t = self.number(group, "lr"), self.count(state)
        p, g = decayed(p, g, group, lr)
        m, v = moments(self, p, g, state, (beta1, beta2), scratch)
        rate = lr / (1 - beta1**t)
        known, factor = _rectified(t, beta2)
        if isinstance(known, bool) and not known:
            step = into(scratch, multiply, m, rate)
        else:
            root = into(scratch, sqrt, v)
            root += group["eps"]
            if isinstance(known, bool):
                step = into(scratch, divide, m, root)
                step *= rate * factor
            else:  # a compiled step takes both paths
                step = m * weak(rate, p) * where(known, weak(factor, p) / root, 1.0)
        p -= step
        return p


def _rectified(t: Any, beta2: float) -> tuple[Any, Any]:
    """Return whether the variance is known at step t, and the factor that it has then."""
    longest = 2 / (1 - beta2) - 1
    seen = 1 - beta2**t
    length = longest - 2 * t * beta2**t / seen
    known = length > 5
    share = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    if isinstance(known, bool):
        return known, math.sqrt(share * seen) if known else 1.0
    return known, sqrt(maximum(share * seen, 0.0))


__all__ = ["RAdam"]
