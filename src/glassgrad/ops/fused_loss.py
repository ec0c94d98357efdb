"""Fused elementwise losses: squared error and binary cross-entropy, with their reduction.

The cotangent of a mean enters the gradient as one factor, so no array of the losses' cotangents is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.activation import softplus_p
from glassgrad.ops.core import Array, fused
from glassgrad.ops.kernels import products
from glassgrad.ops.kernels.choose import positive
from glassgrad.ops.narrow import finfo
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.samples import S

# Lower bound of the logarithm of a probability, as in PyTorch.
LOG_FLOOR = -100.0
_SMALLEST = 1e-12


def _size(*xs: Array) -> int:
    return math.prod(np.broadcast_shapes(*(x.shape for x in xs)))


def _weight_of_each(reduction: str, count: int) -> float:
    """Weight of each loss in the result."""
    if reduction == "mean":
        return 1 / count if count else math.nan
    return 1.0


def _reduced(losses: Array, reduction: str) -> Array:
    """Reduce the losses of a forward; they may be scaled in place."""
    if reduction == "none":
        return losses
    total = np.add.reduce(losses, axis=None)
    return np.asarray(total * _weight_of_each(reduction, losses.size), dtype=losses.dtype)


def _reduced_op(losses: Array, reduction: str) -> Array:
    """Reduce losses in traced ops."""
    if reduction == "none":
        return losses
    total = sum_p(losses, axis=tuple(range(len(losses.shape))), keepdims=False)
    return total * _weight_of_each("mean", math.prod(losses.shape)) if reduction == "mean" else total


# --- squared error --------------------------------------------------------------------------------


def _mse(xp: ModuleType, x: Array, target: Array, *, reduction: str) -> tuple[Array, Array]:
    difference = x - target
    if reduction == "none":
        return difference * difference, difference
    flat = difference.reshape(-1)
    return np.asarray(products.dot(flat, flat) * _weight_of_each(reduction, flat.size), dtype=flat.dtype), difference


def _mse_vjp(
    g: Array, needs: Sequence[bool], difference: Array, x: Array, target: Array, *, reduction: str
) -> Sequence[Array | None]:
    d = difference * (g * difference.dtype.type(2 * _weight_of_each(reduction, difference.size)))
    return d if needs[0] else None, -d if needs[1] else None


def _mse_vjp_in_ops(
    g: Array, needs: Sequence[bool], x: Array, target: Array, *, reduction: str
) -> Sequence[Array | None]:
    difference = x - target
    d = difference * (g * (2 * _weight_of_each(reduction, math.prod(difference.shape))))
    return d if needs[0] else None, -d if needs[1] else None


mse_loss_p = fused(
    "mse_loss",
    _mse,
    joint_vjp=_mse_vjp,
    vjp_in_ops=_mse_vjp_in_ops,
    decompose=lambda x, target, *, reduction: _reduced_op(ew.square(x - target), reduction),
)
mse_loss_p.describe("(x - t)**2, reduced", "2 * (x - t), 2 * (t - x)")
mse_loss_p.samples = [
    S((3, 2), (3, 2), reduction="mean"),
    S((3, 2), (2,), reduction="sum"),
    S((4,), (4,), reduction="none"),
]

# --- binary cross-entropy of logits ---------------------------------------------------------------


def _bce_logits(xp: ModuleType, x: Array, target: Array, *, reduction: str) -> tuple[Array, Array]:
    small = np.exp(-np.abs(x))  # never overflows
    losses = np.log1p(small)
    losses += positive(x)
    losses = losses - x * target
    return _reduced(losses, reduction), small


def _bce_logits_vjp(
    g: Array, needs: Sequence[bool], small: Array, x: Array, target: Array, *, reduction: str
) -> Sequence[Array | None]:
    share = g * x.dtype.type(_weight_of_each(reduction, _size(x, target)))
    dx = dt = None
    if needs[0]:
        dx = np.where(x >= 0, x.dtype.type(1), small)
        dx /= 1 + small  # the sigmoid of x
        dx = dx - target
        dx *= share
    if needs[1]:
        dt = np.broadcast_to(x * -share, np.broadcast_shapes(x.shape, target.shape))
    return dx, dt


binary_cross_entropy_with_logits_p = fused(
    "binary_cross_entropy_with_logits",
    _bce_logits,
    joint_vjp=_bce_logits_vjp,
    decompose=lambda x, target, *, reduction: _reduced_op(softplus_p(x) - x * target, reduction),
)
binary_cross_entropy_with_logits_p.describe("log(1 + exp(x)) - x * t, reduced", "sigmoid(x) - t, -x")
binary_cross_entropy_with_logits_p.samples = [
    S((3, 2), (3, 2), reduction="mean"),
    S((3, 1), (2,), reduction="sum"),
    S((4,), (4,), reduction="none"),
]

# --- binary cross-entropy of probabilities --------------------------------------------------------


def _floored_log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(x), x.dtype.type(LOG_FLOOR))


def _bce(xp: ModuleType, x: Array, target: Array, *, reduction: str) -> tuple[Array, None]:
    losses = (target - 1) * _floored_log(1 - x) - target * _floored_log(x)
    return _reduced(losses, reduction), None


def _bce_vjp(
    g: Array, needs: Sequence[bool], _r: None, x: Array, target: Array, *, reduction: str
) -> Sequence[Array | None]:
    share = g * x.dtype.type(_weight_of_each(reduction, _size(x, target)))
    dx = dt = None
    if needs[0]:
        dx = (x - target) / np.maximum((1 - x) * x, x.dtype.type(_SMALLEST))
        dx *= share
    if needs[1]:
        slope = (_floored_log(1 - x) - _floored_log(x)) * share
        dt = np.broadcast_to(slope, np.broadcast_shapes(x.shape, target.shape))
    return dx, dt


def _bce_decomposed(x: Array, target: Array, *, reduction: str) -> Array:
    losses = (target - 1) * _floored_log_op(1 - x) - target * _floored_log_op(x)
    return _reduced_op(losses, reduction)


def _floored_log_op(x: Array) -> Array:
    # Below the smallest normal number, 1 / x is infinite in single precision and 0 * inf would be NaN: there, use a
    # line with the slope of the rule above.
    small = x < max(math.exp(LOG_FLOOR), float(finfo(x.dtype).tiny))
    return ew.where(small, x * (1 / _SMALLEST) + LOG_FLOOR, ew.log(ew.where(small, 1, x)))


def _probabilities(*shape: int) -> Any:
    return lambda rng: rng.uniform(0.1, 0.9, shape)


binary_cross_entropy_p = fused("binary_cross_entropy", _bce, joint_vjp=_bce_vjp, decompose=_bce_decomposed)
binary_cross_entropy_p.describe(
    "-t * log(x) - (1 - t) * log(1 - x), reduced",
    "(x - t) / (x * (1 - x)), log((1 - x) / x)",
    notes="logarithms stop at -100 and x * (1 - x) at 1e-12, as in PyTorch",
)
binary_cross_entropy_p.samples = [
    S(_probabilities(3, 2), _probabilities(3, 2), reduction="mean"),
    S(_probabilities(3, 1), _probabilities(2), reduction="sum"),
    S(_probabilities(4), _probabilities(4), reduction="none"),
]
