"""Softmax, its logarithm and their gradients on NumPy arrays."""

from __future__ import annotations

import numpy as np

from glassgrad.ops.kernels import sums
from glassgrad.ops.kernels.choose import max_along
from glassgrad.ops.kernels.ways import Array


def softmax(x: Array, axis: int) -> Array:
    """Return exp(x) / sum(exp(x)) along an axis."""
    y = x - max_along(x, axis)
    y = np.exp(y, out=y if y.dtype.kind in "fV" else None)
    y /= sums.over(y, axis, True)
    return y


def softmax_rule(c: Array, y: Array, axis: int) -> Array:
    """Return y * (c - sum(c * y)), the product of softmax's Jacobian with a cotangent or tangent."""
    scaled = c * y
    scaled -= y * sums.over(scaled, axis, True)
    return scaled


def log_softmax(x: Array, axis: int) -> Array:
    """Return x - log(sum(exp(x))) along an axis."""
    y = x - max_along(x, axis)
    lse = np.log(sums.over(np.exp(y), axis, True))
    return np.subtract(y, lse, out=y if y.dtype.kind in "fV" else None)


def log_softmax_vjp(g: Array, y: Array, axis: int) -> Array:
    """Return g - exp(y) * sum(g)."""
    dx = np.exp(y)
    dx *= sums.over(g, axis, True)
    return np.subtract(g, dx, out=dx)


__all__ = ["log_softmax", "log_softmax_vjp", "softmax", "softmax_rule"]
