"""Adagrad (Duchi et al. 2011)."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from glassgrad.engine.tensor import make
from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import sqrt
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Options, Params, at_least, options


class Adagrad(Optimizer):
    """p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps) with s the sum of all g**2.

    Args:
        params: parameters or parameter groups.
        lr: learning rate.
        lr_decay: how fast the rate falls with the number of steps.
        weight_decay: multiple of p added to g.
        initial_accumulator_value: the initial value of s.
        eps: added to the denominator.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.Adagrad([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.9])
    """

    checks = (at_least("lr_decay", 0), at_least("initial_accumulator_value", 0), at_least("eps", 0))

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def add_param_group(self, param_group: Options) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        start = group["initial_accumulator_value"]
        for parameter in group["params"]:
            self.state[parameter]["sum"] = make(np.full(parameter.shape, start, parameter.dtype), None, False)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr, t = group.lr, state.count()
        if group.weight_decay:
            g = g + group.weight_decay * p
        state.sum = s = state.sum + g**2
        return p - lr / (1 + (t - 1) * group.lr_decay) * (g / (sqrt(s) + group.eps))


__all__ = ["Adagrad"]
