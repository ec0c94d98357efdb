"""Rprop: the size of a step grows while the gradient keeps its sign (Riedmiller and Braun 1993)."""

from __future__ import annotations

from typing import Unpack

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import maximum, minimum, sign, where
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Limit, Optimizer, Params, options

_factors: Limit = ("etas", lambda v: len(v) == 2 and 0 < v[0] < 1 < v[1], "two numbers, 0 < eta- < 1 < eta+")
_bounds: Limit = ("step_sizes", lambda v: len(v) == 2 and 0 <= v[0] <= v[1], "two numbers, the least and the largest")


class Rprop(Optimizer):
    """p -= s * sign(g); s grows by eta+ where g keeps its sign, and shrinks by eta- where it changes.

    Where the sign changes, p keeps its value for one step. Rprop needs gradients of the full batch.

    Args:
        params: parameters or parameter groups.
        lr: the first s.
        etas: eta- and eta+.
        step_sizes: the smallest and the largest s.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.Rprop([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.9])
    """

    checks = (_factors, _bounds)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        (shrink, grow), (least, most), t = group.etas, group.step_sizes, state.count()
        kept = sign(g * state.prev)
        begun = where(t == 1, group.lr, state.step_size)
        grown = where(kept > 0, grow * begun, where(kept < 0, shrink * begun, begun))
        state.step_size = s = minimum(maximum(grown, least), most)
        state.prev = g = where(kept < 0, 0.0, g)
        return p - sign(g) * s


__all__ = ["Rprop"]
