"""Adadelta (Zeiler 2012)."""

from __future__ import annotations

from typing import Unpack

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import sqrt
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Params, at_least, options, share


class Adadelta(Optimizer):
    """p -= lr * d with d = sqrt(u + eps) / sqrt(v + eps) * g, v and u running means of g**2 and d**2.

    Args:
        params: parameters or parameter groups.
        lr: factor of the step.
        rho: decay rate of the running means.
        eps: added under the roots.
        weight_decay: multiple of p added to g.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.Adadelta([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.9997])
    """

    checks = (share("rho"), at_least("eps", 0))

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr, rho, eps = group.lr, group.rho, group.eps
        if group.weight_decay:
            g = g + group.weight_decay * p
        v, u = state.square_avg, state.acc_delta
        state.square_avg = v = rho * v + (1 - rho) * g**2
        d = sqrt(u + eps) / sqrt(v + eps) * g
        state.acc_delta = rho * u + (1 - rho) * d**2
        return p - lr * d


__all__ = ["Adadelta"]
