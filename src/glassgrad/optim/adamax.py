"""Adamax, Adam with the largest gradient instead of the mean square (Kingma and Ba 2015, section 7.1)."""

from __future__ import annotations

from typing import Unpack

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import abs, maximum
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Params, at_least, betas, options


class Adamax(Optimizer):
    """p -= lr / (1 - b1**t) * m / u with u = max(b2 * u, |g| + eps).

    Args:
        params: parameters or parameter groups.
        lr: learning rate.
        betas: decay rates of the running mean and of the largest gradient.
        eps: added to |g|.
        weight_decay: multiple of p added to g.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.Adamax([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.9])
    """

    checks = (at_least("eps", 0), betas)

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr, (b1, b2), t = group.lr, group.betas, state.count()
        if group.weight_decay:
            g = g + group.weight_decay * p
        state.exp_avg = m = b1 * state.exp_avg + (1 - b1) * g
        state.exp_inf = u = maximum(b2 * state.exp_inf, abs(g) + group.eps)
        return p - lr / (1 - b1**t) * (m / u)


__all__ = ["Adamax"]
