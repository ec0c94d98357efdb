"""Adam (Kingma and Ba 2015), AMSGrad (Reddi et al. 2018), AdamW (Loshchilov and Hutter 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import divide, maximum, multiply, sqrt
from glassgrad.optim.optimizer import Optimizer, at_least, betas, into, weak


def moments(
    optimizer: Optimizer, p: Array, g: Array, state: dict[str, Any], betas: tuple[Any, Any], scratch: Any
) -> tuple[Array, Array]:
    """m = b1 m + (1 - b1) g and v = b2 v + (1 - b2) g**2: the running means that Adam and its kin keep."""
    beta1, beta2 = betas
    m, v = optimizer.slot(state, "exp_avg", p), optimizer.slot(state, "exp_avg_sq", p)
    part = into(scratch, multiply, g, weak(1 - beta1, p))
    m *= weak(beta1, p)
    m += part
    part = into(scratch, multiply, g, g)
    part *= weak(1 - beta2, p)
    v *= weak(beta2, p)
    v += part
    state["exp_avg"].array, state["exp_avg_sq"].array = m, v
    return m, v


def decayed(p: Array, g: Array, group: dict[str, Any], lr: Any) -> tuple[Array, Array]:
    """Return p and g with the weight decay in one of them: in p if it is decoupled, else in g."""
    if not group["weight_decay"]:
        return p, g
    if not group["decoupled_weight_decay"]:
        return p, g + p * group["weight_decay"]
    p *= weak(1 - lr * group["weight_decay"], p)
    return p, g


class _Adam(Optimizer):
    """The rule that Adam and AdamW share, for a gradient and a parameter already decayed."""

    def limits(self) -> Any:
        return [
            *super().limits(),
            at_least("eps", 0),
            betas,
        ]

    def adapt(self, p: Array, g: Array, state: dict[str, Any], group: dict[str, Any], lr: Any) -> Array:
        """p -= lr * m / (1 - b1**t) / (sqrt(v / (1 - b2**t)) + eps)."""
        scratch = self.scratch(p)
        beta1, beta2 = self.moved(group, "betas")
        t = self.count(state)
        m, v = moments(self, p, g, state, (beta1, beta2), scratch)
        if group["amsgrad"]:
            highest = self.slot(state, "max_exp_avg_sq", p)
            highest = into(highest, maximum, highest, v)
            state["max_exp_avg_sq"].array = v = highest
        root = into(scratch, sqrt, v)
        root *= weak((1 - beta2**t) ** -0.5, p)
        root += group["eps"]
        step = into(scratch, divide, m, root)
        step *= weak(lr / (1 - beta1**t), p)
        p -= step
        return p


class Adam(_Adam):
    """Adam; `weight_decay` is added to the gradient (L2), see `AdamW` for the decoupled form.

    Args:
        params: parameters or groups of them.
        lr: rate.
        betas: shares of the running mean and of the mean square that are kept.
        eps: added to the root.
        weight_decay: multiple of p added to g.
        amsgrad: use the largest mean square so far.
        maximize: climb instead.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.Adam([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.9])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
            },
            hints,
        )

    def update(self, p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> Array:
        if group["weight_decay"]:
            g = g + p * group["weight_decay"]
        return self.adapt(p, g, state, group, self.number(group, "lr"))


class AdamW(_Adam):
    """Adam with the decay decoupled from the gradient: p *= 1 - lr * weight_decay before each step.

    Arguments as for `Adam`; `weight_decay` is 0.01 by default.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.AdamW([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.897])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **hints: Any,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
            },
            hints,
        )

    def update(self, p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> Array:
        lr = self.number(group, "lr")
        if group["weight_decay"]:
            p *= weak(1 - lr * group["weight_decay"], p)
        return self.adapt(p, g, state, group, lr)


__all__ = ["Adam", "AdamW"]
