"""Lion, the sign of an interpolated momentum (Chen et al. 2023)."""

from __future__ import annotations

from typing import Unpack

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import sign
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Params, betas, options


class Lion(Optimizer):
    """p -= lr * (sign(b1 * m + (1 - b1) * g) + weight_decay * p), then m = b2 * m + (1 - b2) * g.

    The learning rate is usually three to ten times smaller than Adam's, and the decay larger by the same factor.

    Args:
        params: parameters or parameter groups.
        lr: learning rate.
        betas: b1 for the step, b2 for the momentum.
        weight_decay: decoupled decay.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.Lion([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.9])
    """

    checks = (betas,)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr, (b1, b2), m = group.lr, group.betas, state.exp_avg
        if group.weight_decay:
            p = (1 - lr * group.weight_decay) * p
        state.exp_avg = b2 * m + (1 - b2) * g
        return p - lr * sign(b1 * m + (1 - b1) * g)


__all__ = ["Lion"]
