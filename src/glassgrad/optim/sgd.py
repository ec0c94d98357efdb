"""Stochastic gradient descent with momentum (Polyak 1964; Nesterov 1983, as in Sutskever et al. 2013)."""

from __future__ import annotations

from typing import Unpack

from glassgrad.ops.core import Array, bad_option
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Options, Params, at_least, options


class SGD(Optimizer):
    """p -= lr * b with b = momentum * b + g, or without momentum p -= lr * g.

    Args:
        params: parameters or parameter groups.
        lr: learning rate.
        momentum: decay rate of b.
        dampening: 1 - the weight of a new gradient in b.
        weight_decay: multiple of p added to g.
        nesterov: Nesterov's momentum, g + momentum * b instead of b.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.SGD([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.4])
    """

    moving = frozenset({"momentum"})
    checks = (at_least("momentum", 0),)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def add_param_group(self, param_group: Options) -> None:
        merged = {**self.defaults, **param_group}
        if merged["nesterov"] and (merged["momentum"] <= 0 or merged["dampening"]):
            raise bad_option("SGD", "nesterov", True, "False, or a momentum above 0 and no dampening")
        super().add_param_group(param_group)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr = group.lr
        if group.weight_decay:
            g = g + group.weight_decay * p
        if group.momentum:
            whole = not group.dampening or state.first("momentum_buffer")
            share = 1 if whole else 1 - group.dampening
            state.momentum_buffer = b = group.momentum * state.momentum_buffer + share * g
            g = g + group.momentum * b if group.nesterov else b
        return p - lr * g


__all__ = ["SGD"]
