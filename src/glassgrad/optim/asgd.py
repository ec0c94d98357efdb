"""ASGD: gradient descent with a decaying rate, and the average of its iterates (Polyak and Juditsky 1992)."""

from __future__ import annotations

from typing import Unpack

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import maximum, where
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Params, at_least, options


class ASGD(Optimizer):
    """p = (1 - lambd * eta) p - eta * g, and `state["ax"]`, the mean of all p from step `t0` on.

    eta is lr at first and lr / (1 + lambd * lr * t)**alpha after step t.

    Args:
        params: parameters or parameter groups.
        lr: rate of the first step.
        lambd: how fast the rate falls, and how much of p decays.
        alpha: power by which the rate falls.
        t0: step at which averaging begins.
        weight_decay: multiple of p added to g.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.ASGD([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> round(w.item(), 5)
        2.39997
    """

    checks = (at_least("lambd", 0),)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr, lambd, t = group.lr, group.lambd, state.count()
        eta = where(t == 1, lr, state.number("eta"))
        mu = where(t == 1, 1.0, state.number("mu"))
        if group.weight_decay:
            g = g + group.weight_decay * p
        p = (1 - lambd * eta) * p - eta * g
        state.ax = where(mu == 1, p, state.ax + mu * (p - state.ax))
        state.eta = lr / (1 + lambd * lr * t) ** group.alpha
        state.mu = 1 / maximum(t - group.t0, 1.0)
        return p


__all__ = ["ASGD"]
