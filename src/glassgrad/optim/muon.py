"""Muon: momentum with matrices that are nearly orthogonalised before each step (Jordan et al. 2024)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Unpack

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.axes import swap_last
from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import maximum, sqrt
from glassgrad.ops.linalg import matmul
from glassgrad.ops.narrow import bfloat16
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.shape import astype
from glassgrad.optim.equations import Group, State
from glassgrad.optim.optimizer import Hints, Optimizer, Params, at_least, options


class Muon(Optimizer):
    """For the matrices inside of a network: p -= lr * s * orthogonal(g + momentum * (b - g)) with b a running mean.

    Use another optimizer, usually AdamW, for embeddings, heads, biases and norms.

    Args:
        params: two-dimensional parameters or groups of them.
        lr: learning rate.
        weight_decay: decoupled decay.
        momentum: decay rate of the running mean.
        nesterov: use Nesterov's momentum.
        ns_coefficients: coefficients of the polynomial that is applied to the singular values.
        eps: lower bound of the norm in the denominator.
        ns_steps: how often the polynomial is applied.
        adjust_lr_fn: None or "original" for s = sqrt(max(1, rows / columns)); "match_rms_adamw" for
            s = 0.2 * sqrt(max(rows, columns)), which works with AdamW's learning rates.
        maximize: maximise the objective instead of minimising it.

    Raises:
        ArgumentError: a parameter is not a matrix.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(2, 2)
        >>> optimizer = gg.optim.Muon([model.weight], lr=0.02)
        >>> model(gg.ones(1, 2)).sum().backward()
        >>> optimizer.step()
    """

    in_bfloat16 = False  # whether matrices are rounded as PyTorch's are; as_torch sets it

    checks = (
        at_least("momentum", 0),
        ("adjust_lr_fn", lambda v: v in (None, "original", "match_rms_adamw"), "None, 'original' or 'match_rms_adamw'"),
    )

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        *,
        maximize: bool = False,
        **hints: Unpack[Hints],
    ) -> None:
        super().__init__(params, options(locals()), hints)

    def _check(self, parameter: Tensor, position: int, known: set[int]) -> None:
        super()._check(parameter, position, known)
        if parameter.ndim != 2:
            raise errors.MUON_NEEDS_MATRICES(index=position, given=parameter.shape, where=provenance.here())

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        lr, momentum = group.lr, group.momentum
        state.momentum_buffer = b = momentum * state.momentum_buffer + (1 - momentum) * g
        direction = g + momentum * (b - g) if group.nesterov else b
        if group.weight_decay:
            p = (1 - lr * group.weight_decay) * p
        rounded = to_bfloat16 if self.in_bfloat16 else unchanged
        turned = orthogonal(direction, group.ns_coefficients, group.ns_steps, group.eps, rounded)
        return p - lr * scale(p.shape, group.adjust_lr_fn) * turned


def unchanged(x: Array) -> Array:
    return x


def to_bfloat16(x: Array) -> Array:
    """Round to the nearest number of bfloat16; the dtype stays."""
    return astype(astype(x, bfloat16()), x.dtype)


def orthogonal(
    x: Array,
    coefficients: tuple[float, float, float],
    steps: int,
    eps: float,
    rounded: Callable[[Array], Array] = unchanged,
) -> Array:
    """Bring all singular values of a matrix near 1, by a polynomial a s + b s**3 + c s**5 applied several times."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    y = rounded(swap_last(x) if tall else x)
    y = rounded(y / maximum(rounded(sqrt(sum_p(y * y, axis=(0, 1), keepdims=False))), eps))
    for _ in range(steps):
        gram = rounded(matmul(y, swap_last(y)))
        y = rounded(y * a + matmul(rounded(gram * b + matmul(gram, gram) * c), y))
    return swap_last(y) if tall else y


def scale(shape: tuple[int, ...], rule: str | None) -> float:
    rows, columns = shape
    return 0.2 * math.sqrt(max(rows, columns)) if rule == "match_rms_adamw" else math.sqrt(max(1, rows / columns))


__all__ = ["Muon"]
