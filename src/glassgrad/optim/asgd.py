"""ASGD: gradient descent with falling rate, and the average of where it has been (Polyak and Juditsky 1992)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from glassgrad.engine.tensor import make
from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import equal, maximum, where
from glassgrad.optim.optimizer import Optimizer, at_least, stored, weak


def _kept(state: dict[str, Any], name: str) -> Any:
    """Return the number `name` of the state, 0 at first."""
    if name not in state:
        state[name] = make(np.zeros((), np.float64), None, False)
    return state[name].lifted()


def _keep(state: dict[str, Any], name: str, value: Any) -> None:
    state[name].assign(np.asarray(value) if isinstance(value, float) else value)


class ASGD(Optimizer):
    """p = (1 - lambd * eta) p - eta * g, and `state["ax"]`, the mean of all p from step `t0` on.

    eta is lr at first and lr / (1 + lambd * lr * t)**alpha after step t.

    Args:
        params: parameters or groups of them.
        lr: rate of the first step.
        lambd: how fast the rate falls, and how much of p decays.
        alpha: power by which the rate falls.
        t0: step at which averaging begins.
        weight_decay: multiple of p added to g.
        maximize: climb instead.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.ASGD([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> round(w.item(), 5)
        2.39997
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize},
            hints,
        )

    def limits(self) -> Any:
        return [*super().limits(), at_least("lambd", 0)]

    def update(self, p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> Array:
        lr, lambd, t = self.number(group, "lr"), group["lambd"], self.count(state)
        eta, share = _kept(state, "eta"), _kept(state, "mu")
        average = self.slot(state, "ax", p)
        if isinstance(t, float):
            eta, share = (lr, 1.0) if t == 1 else (float(eta), float(share))
            after = max(1.0, t - group["t0"])
        else:  # a compiled step
            eta, share = where(equal(t, 1), lr, eta), where(equal(t, 1), 1.0, share)
            after = maximum(t - group["t0"], 1.0)
        if group["weight_decay"]:
            g = g + p * group["weight_decay"]
        p *= weak(1 - lambd * eta, p)
        p -= g * weak(eta, p)
        if isinstance(share, float):
            state["ax"].array = stored(average, p if share == 1 else average + (p - average) * share)
        else:
            state["ax"].array = where(equal(share, 1), p, average + (p - average) * weak(share, p))
        _keep(state, "eta", lr / (1 + lambd * lr * t) ** group["alpha"])
        _keep(state, "mu", 1 / after)
        return p


__all__ = ["ASGD"]
