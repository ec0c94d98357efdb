"""Softmax, its logarithm and their gradients on NumPy arrays, whose calls are replayed where they are small."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.ops.kernels.choose import add_over, max_along
from glassgrad.ops.kernels.replay import Replays

Array = Any


def softmax(x: Array, axis: int) -> Array:
    """Return exp(x) / sum(exp(x)) along an axis."""
    return _run(_SOFTMAX, axis, x)


def softmax_rule(c: Array, y: Array, axis: int) -> Array:
    """Return y * (c - sum(c * y)), the product of softmax's Jacobian with a cotangent or tangent."""
    return _run(_SOFTMAX_RULE, axis, c, y)


def log_softmax(x: Array, axis: int) -> Array:
    """Return x - log(sum(exp(x))) along an axis."""
    return _run(_LOG_SOFTMAX, axis, x)


def log_softmax_vjp(g: Array, y: Array, axis: int) -> Array:
    """Return g - exp(y) * sum(g)."""
    return _run(_LOG_SOFTMAX_VJP, axis, g, y)


def _run(replays: Replays, axis: int, *args: Array) -> Array:
    found = replays.of({"axis": axis})
    return replays.function(*args, axis=axis) if found is None else found.run(*args)


def _softmax(x: Array, *, axis: int) -> Array:
    y = x - max_along(x, axis)
    y = np.exp(y, out=y if y.dtype.kind in "fV" else None)
    y /= add_over(y, axis, None, None, True)
    return y


def _softmax_rule(c: Array, y: Array, *, axis: int) -> Array:
    scaled = c * y
    scaled -= y * add_over(scaled, axis, None, None, True)
    return scaled


def _log_softmax(x: Array, *, axis: int) -> Array:
    y = x - max_along(x, axis)
    lse = np.log(add_over(np.exp(y), axis, None, None, True))
    return np.subtract(y, lse, out=y if y.dtype.kind in "fV" else None)


def _log_softmax_vjp(g: Array, y: Array, *, axis: int) -> Array:
    dx = np.exp(y)
    dx *= add_over(g, axis, None, None, True)
    return np.subtract(g, dx, out=dx)


_SOFTMAX, _SOFTMAX_RULE = Replays(_softmax), Replays(_softmax_rule)
_LOG_SOFTMAX, _LOG_SOFTMAX_VJP = Replays(_log_softmax), Replays(_log_softmax_vjp)

__all__ = ["log_softmax", "log_softmax_vjp", "softmax", "softmax_rule"]
