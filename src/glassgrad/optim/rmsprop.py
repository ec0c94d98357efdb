"""RMSprop (Hinton 2012, lecture 6e), with momentum and the centred variant (Graves 2013)."""

from __future__ import annotations

from typing import Unpack

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import sqrt
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Params, at_least, options, share


class RMSprop(Optimizer):
    """p -= lr * g / (sqrt(v) + eps) with v = alpha * v + (1 - alpha) * g**2.

    Args:
        params: parameters or parameter groups.
        lr: learning rate.
        alpha: decay rate of the running mean square.
        eps: added to the denominator.
        weight_decay: multiple of p added to g.
        momentum: if not 0, steps are accumulated, b = momentum * b + g / (sqrt(v) + eps).
        centered: subtract the squared running mean from v.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.RMSprop([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.])
    """

    checks = (share("alpha"), at_least("eps", 0), at_least("momentum", 0))

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr, alpha = group.lr, group.alpha
        if group.weight_decay:
            g = g + group.weight_decay * p
        state.square_avg = v = alpha * state.square_avg + (1 - alpha) * g**2
        if group.centered:
            state.grad_avg = mean = alpha * state.grad_avg + (1 - alpha) * g
            v = v - mean**2
        step = g / (sqrt(v) + group.eps)
        if group.momentum:
            state.momentum_buffer = step = group.momentum * state.momentum_buffer + step
        return p - lr * step


__all__ = ["RMSprop"]
