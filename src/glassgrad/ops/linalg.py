"""Matrix products and linear algebra."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glassgrad.ops.axes import swap_last
from glassgrad.ops.core import Array, linear
from glassgrad.ops.samples import S
from glassgrad.ops.shape import reshape_p

Shape = tuple[int, ...]


def _matmul_shape(a: Any, b: Any) -> Shape:
    if len(a.shape) == 1 and len(b.shape) == 1:
        return ()
    if len(a.shape) == 1:
        return (*b.shape[:-2], b.shape[-1])
    if len(b.shape) == 1:
        return tuple(a.shape[:-1])
    return (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])


def _matmul_left(g: Array, a: Any, b: Array) -> Array:
    if len(b.shape) == 1:
        return g * b if len(a.shape) == 1 else reshape_p(g, shape=(*g.shape, 1)) * b
    if len(a.shape) == 1:
        g = reshape_p(g, shape=(*g.shape[:-1], 1, g.shape[-1]))
        full = matmul(g, swap_last(b))
        return reshape_p(full, shape=(*full.shape[:-2], full.shape[-1]))
    return matmul(g, swap_last(b))


def _matmul_right(g: Array, a: Array, b: Any) -> Array:
    if len(a.shape) == 1:
        if len(b.shape) == 1:
            return g * a
        return reshape_p(a, shape=(a.shape[0], 1)) * reshape_p(g, shape=(*g.shape[:-1], 1, g.shape[-1]))
    if len(b.shape) == 1:
        full = matmul(swap_last(a), reshape_p(g, shape=(*g.shape, 1)))
        return reshape_p(full, shape=full.shape[:-1])
    if len(b.shape) == 2 and len(a.shape) > 2:
        # One product over all rows instead of one a matrix and a sum over the batch.
        rows = math.prod(a.shape[:-1])
        a, g = reshape_p(a, shape=(rows, a.shape[-1])), reshape_p(g, shape=(rows, g.shape[-1]))
    return matmul(swap_last(a), g)


def _matmul(xp: Any, a: Array, b: Array) -> Array:
    if xp is np and a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous:
        # NumPy would run one small product per matrix; the rows of all of them share b.
        return (a.reshape(-1, a.shape[-1]) @ b).reshape(*a.shape[:-1], b.shape[-1])
    return xp.matmul(a, b)


matmul = linear(
    "matmul", _matmul, (_matmul_left, _matmul_right), saves="x", formula="a @ b", derivative="g @ bT, aT @ g",
    shape=_matmul_shape,
    samples=(S((2, 3), (3, 4)), S((3,), (3,)), S((3,), (3, 2)), S((2, 3), (3,)), S((2, 2, 3), (3, 2)),
             S((2, 1, 2, 3), (3, 3, 2)), S((2, 2, 3), (3,)), S((3,), (2, 3, 2))),
)  # fmt: skip


def mm(a: Array, b: Array) -> Array:
    """Product of two matrices."""
    return matmul(a, b)


def dot(a: Array, b: Array) -> Array:
    """Inner product of two vectors; with more dimensions the product of matrices."""
    return matmul(a, b)


def outer(a: Array, b: Array) -> Array:
    """Outer product of two vectors: shape (n, m)."""
    return reshape_p(a, shape=(math.prod(a.shape), 1)) * reshape_p(b, shape=(1, math.prod(b.shape)))
