"""Stochastic gradient descent with momentum (Polyak 1964; Nesterov 1983, as in Sutskever et al. 2013)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from glassgrad import errors, provenance
from glassgrad.engine.mode import MODE, TRACING
from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import multiply
from glassgrad.optim.optimizer import Optimizer, into, weak


class SGD(Optimizer):
    """p -= lr * b with b = momentum * b + g, or without momentum p -= lr * g.

    Args:
        params: parameters or groups of them.
        lr: rate.
        momentum: share of the previous step that is kept.
        dampening: 1 - the weight of a new gradient in b.
        weight_decay: multiple of p added to g.
        nesterov: look ahead, g + momentum * b in place of b.
        maximize: climb instead.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.SGD([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.4])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
             "nesterov": nesterov, "maximize": maximize},
            hints,
        )  # fmt: skip  # a table

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        merged = {**self.defaults, **param_group}
        if merged["nesterov"] and (merged["momentum"] <= 0 or merged["dampening"]):
            raise errors.BAD_OPTION(
                owner="SGD",
                name="nesterov",
                given=True,
                expected="False, or a momentum above 0 and no dampening",
                where=provenance.here(),
            )
        super().add_param_group(param_group)

    def limits(self) -> Any:
        return [
            *super().limits(),
            ("momentum", lambda v: v >= 0, "a momentum of at least 0"),
        ]

    def update(self, p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> Array:
        scratch = self.scratch(p)
        lr = group["lr"]
        if type(lr) is not float or MODE.flags & TRACING:
            lr = weak(self.number(group, "lr"), p)
        if group["weight_decay"]:
            g = g + p * group["weight_decay"]
        if group["momentum"]:
            g = self._with_momentum(g, state, group)
        p -= g * lr if scratch is None else into(scratch, multiply, g, lr)
        return p

    def _with_momentum(self, g: Array, state: dict[str, Any], group: dict[str, Any]) -> Array:
        whole = not group["dampening"] or self.first(state, "momentum_buffer")
        momentum = weak(self.number(group, "momentum"), g)  # schedules may change it too
        b = self.slot(state, "momentum_buffer", g)
        b *= momentum
        b += g if whole else g * (1 - group["dampening"])
        state["momentum_buffer"].array = b
        return g + b * momentum if group["nesterov"] else b


__all__ = ["SGD"]
