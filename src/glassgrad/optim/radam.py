"""RAdam, Adam whose first steps are plain momentum until the variance is tractable (Liu et al. 2020)."""

from __future__ import annotations

from typing import Unpack

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import maximum, sqrt, where
from glassgrad.optim.adam import decayed, moments
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Params, at_least, betas, options


class RAdam(Optimizer):
    """p -= lr * m / (1 - b1**t) * r / (sqrt(v / (1 - b2**t)) + eps), without the fraction in the first steps.

    r corrects the variance of the adaptive rate, which is tractable once rho_t, the length of the average, exceeds 5:
    rho_t = rho - 2 t b2**t / (1 - b2**t), rho = 2 / (1 - b2) - 1,
    r**2 = (rho_t - 4) (rho_t - 2) rho / ((rho - 4) (rho - 2) rho_t).

    Args:
        params: parameters or parameter groups.
        lr: learning rate.
        betas: b1 and b2.
        eps: added to the denominator.
        weight_decay: multiple of p added to g; with `decoupled_weight_decay`, subtracted from p.
        decoupled_weight_decay: see `weight_decay`.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.RAdam([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.4])
    """

    checks = (at_least("eps", 0), betas)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr, (b1, b2), t = group.lr, group.betas, state.count()
        p, g = decayed(p, g, group, lr)
        m, v = moments(g, state, (b1, b2))
        known, r2 = rectification(t, b2)
        step = where(known, m / (sqrt(v) + group.eps), m)
        return p - lr / (1 - b1**t) * where(known, sqrt(maximum(r2 * (1 - b2**t), 0.0)), 1.0) * step


def rectification(t: Array, b2: Array) -> tuple[Array, Array]:
    """Return whether the variance is tractable at step t, and r**2."""
    rho = 2 / (1 - b2) - 1
    rho_t = rho - 2 * t * b2**t / (1 - b2**t)
    return rho_t > 5, (rho_t - 4) * (rho_t - 2) * rho / ((rho - 4) * (rho - 2) * rho_t)


__all__ = ["RAdam"]
