"""Adam (Kingma and Ba 2015), AMSGrad (Reddi et al. 2018), AdamW (Loshchilov and Hutter 2019)."""

from __future__ import annotations

from typing import Unpack

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import maximum, sqrt
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Params, at_least, betas, options


def moments(g: Array, state: State, betas: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return m = b1 m + (1 - b1) g and v = b2 v + (1 - b2) g**2: the running means of Adam and its variants."""
    b1, b2 = betas
    state.exp_avg = m = b1 * state.exp_avg + (1 - b1) * g
    state.exp_avg_sq = v = b2 * state.exp_avg_sq + (1 - b2) * g**2
    return m, v


def decayed(p: Array, g: Array, group: Group, lr: Array) -> tuple[Array, Array]:
    """Return p and g with the weight decay in one of them: in p if it is decoupled, else in g."""
    if not group.weight_decay:
        return p, g
    if group.decoupled_weight_decay:
        return (1 - lr * group.weight_decay) * p, g
    return p, g + group.weight_decay * p


class _Adam(Optimizer):
    """The common rule of Adam and AdamW, after the weight decay."""

    checks = (at_least("eps", 0), betas)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def adapt(self, p: Array, g: Array, state: State, group: Group) -> Array:
        """p - lr * m / (1 - b1**t) / (sqrt(v / (1 - b2**t)) + eps)."""
        lr, (b1, b2), t = group.lr, group.betas, state.count()
        m, v = moments(g, state, (b1, b2))
        if group.amsgrad:
            state.max_exp_avg_sq = v = maximum(state.max_exp_avg_sq, v)
        root = (1 - b2**t) ** -0.5 * sqrt(v)
        return p - lr / (1 - b1**t) * (m / (root + group.eps))


class Adam(_Adam):
    """Adam; `weight_decay` is added to the gradient (L2), see `AdamW` for the decoupled form.

    Args:
        params: parameters or parameter groups.
        lr: learning rate.
        betas: decay rates of the running mean and of the mean square.
        eps: added to the denominator.
        weight_decay: multiple of p added to g.
        amsgrad: use the largest mean square so far.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.Adam([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.9])
    """

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        if group.weight_decay:
            g = g + group.weight_decay * p
        return self.adapt(p, g, state, group)


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
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, **hints)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        if group.weight_decay:
            p = (1 - group.lr * group.weight_decay) * p
        return self.adapt(p, g, state, group)


__all__ = ["Adam", "AdamW"]
