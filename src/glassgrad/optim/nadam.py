"""NAdam, Adam with Nesterov's momentum (Dozat 2016)."""

from __future__ import annotations

from typing import Unpack

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import sqrt
from glassgrad.optim.adam import decayed, moments
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Params, at_least, betas, options


class NAdam(Optimizer):
    """p -= lr * (c_g * g + c_m * m) / (sqrt(v / (1 - b2**t)) + eps), with a momentum mu that grows over the steps.

    mu_t = b1 * (1 - 0.96**(t * momentum_decay) / 2), c_g = (1 - mu_t) / (1 - mu_1 ... mu_t),
    c_m = mu_(t+1) / (1 - mu_1 ... mu_(t+1)).

    Args:
        params: parameters or parameter groups.
        lr: learning rate.
        betas: b1 and b2.
        eps: added to the denominator.
        weight_decay: multiple of p added to g; with `decoupled_weight_decay`, subtracted from p.
        momentum_decay: how fast mu grows.
        decoupled_weight_decay: see `weight_decay`.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.NAdam([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.8944])
    """

    checks = (at_least("eps", 0), at_least("momentum_decay", 0), betas)

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr, (b1, b2), t = group.lr, group.betas, state.count()
        mu, ahead = (b1 * (1 - 0.5 * 0.96 ** (n * group.momentum_decay)) for n in (t, t + 1))
        state.mu_product = product = state.number("mu_product", 1.0) * mu
        p, g = decayed(p, g, group, lr)
        m, v = moments(g, state, (b1, b2))
        root = (1 - b2**t) ** -0.5 * sqrt(v) + group.eps
        p = p - lr * ahead / (1 - product * ahead) * (m / root)
        return p - lr * (1 - mu) / (1 - product) * (g / root)


__all__ = ["NAdam"]
