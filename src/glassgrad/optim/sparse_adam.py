"""SparseAdam: Adam for tables with few rows used in each step (Kingma and Ba 2015)."""

from __future__ import annotations

from glassgrad.ops import reduce
from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import not_equal, sqrt, where
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Optimizer, Params, at_least, betas, options


class SparseAdam(Optimizer):
    """Adam that does not change rows of p, or their state, if the gradient of the row is 0.

    Gradients are dense here, also those of `Embedding(sparse=True)`: a row counts as used if its gradient has a nonzero
    element. PyTorch's SparseAdam takes only sparse gradients; it also updates rows that were used with a gradient of 0.

    Args:
        params: parameters or parameter groups; rows are along the first dimension.
        lr: learning rate.
        betas: decay rates of the running mean and of the mean square.
        eps: added to the denominator.
        maximize: maximise the objective instead of minimising it.

    Example:
        >>> import glassgrad as gg
        >>> table = gg.nn.Embedding(3, 2, sparse=True)
        >>> before = table.weight.detach().clone()
        >>> optimizer = gg.optim.SparseAdam(table.parameters(), lr=0.1)
        >>> table(gg.tensor([1])).sum().backward()
        >>> optimizer.step()
        >>> (table.weight != before).any(1).tolist()
        [False, True, False]
    """

    checks = (at_least("eps", 0), betas)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr, (b1, b2), t = group.lr, group.betas, state.count()
        m, v = state.exp_avg, state.exp_avg_sq
        used = not_equal(g, 0)
        if len(p.shape) > 1:
            used = reduce.any(used, tuple(range(1, len(p.shape))), True)
        state.exp_avg = m = where(used, m + (1 - b1) * (g - m), m)
        state.exp_avg_sq = v = where(used, v + (1 - b2) * (g**2 - v), v)
        rate = lr * (1 - b2**t) ** 0.5 / (1 - b1**t)
        return p - where(used, rate * (m / (sqrt(v) + group.eps)), 0.0)


__all__ = ["SparseAdam"]
