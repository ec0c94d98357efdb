"""Sums of NumPy arrays over axes, as products with ones.

NumPy adds along its innermost loop. Where that loop is short, as in sums over a few columns, its overhead takes ten
times the time of the additions. A product with a vector of ones has no such loop, and BLAS adds up in the lanes of
several vectors, with as small an error. Ones alter no number, infinity or NaN, as zeros in a product would.
"""

from __future__ import annotations

import functools
import math
import struct
from typing import Any

import numpy as np

from glassgrad.ops.kernels import products
from glassgrad.ops.kernels.choose import add_over
from glassgrad.ops.kernels.ways import Array, least

Axes = int | tuple[int, ...] | None

FROM = least("sum")
THREADS_FROM = products.SUMMED_FROM  # from here on BLAS wakes its threads for a product with a vector
_PART, _LONGEST = 512, 8_192  # elements; a longer sum is more accurate in parts
_NATIVE = {"f": "sum_rows_f32", "d": "sum_rows_f64"}
_NATIVE_FORM = struct.Struct("<6q")


@functools.lru_cache(maxsize=64)
def ones(count: int, dtype: Any, value: float = 1.0) -> Array:
    """Return a vector of ones, or of another number, which nobody may write to."""
    return np.full(count, value, dtype)


def over(x: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Return ``np.add.reduce`` over one axis or several, ordered and not negative, or over all of them."""
    if type(x) is not np.ndarray or x.size < FROM or x.dtype.char not in "fd" or not x.flags.carray:
        return add_over(x, axes, None, None, keepdims)
    chosen = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else axes
    if not chosen:
        return add_over(x, chosen, None, None, keepdims)
    found = _sums(x, chosen)
    return found.reshape([1 if at in chosen else n for at, n in enumerate(x.shape)]) if keepdims else found


def _sums(x: Array, axes: tuple[int, ...]) -> Array:
    """Sum over the axes from the last one on, a run of neighbouring axes at a time."""
    shape = x.shape
    start = stop = axes[-1] + 1
    left = len(axes)
    while left and axes[left - 1] == start - 1:
        start, left = start - 1, left - 1
    before, count, after = shape[:start], math.prod(shape[start:stop]), shape[stop:]
    kept = before + after
    if not after:
        found = _along_rows(x, math.prod(before), count)
    elif not before:
        found = sum_rows(x.reshape(count, -1))
    else:
        found = _between(x.reshape(math.prod(before), count, -1))
    if not left:
        return found.reshape(kept) if kept else found
    return add_over(found.reshape(kept), axes[:left])


def _along_rows(x: Array, height: int, width: int) -> Array:
    """Sum rows that lie one after another; a single long row in parts."""
    if width <= _LONGEST:
        return sum_columns(x.reshape(height, width)) if height != 1 else add_over(x, None)
    if height != 1:
        return add_over(x.reshape(height, width), 1)
    flat = x.reshape(-1)
    rest = flat.size % _PART
    found = add_over(sum_columns(flat[: flat.size - rest].reshape(-1, _PART)))
    return found + add_over(flat[flat.size - rest :]) if rest else found


def _between(x: Array) -> Array:
    """Sum over the axis in the middle of three."""
    if x.shape[1] > _LONGEST:
        return add_over(x, 1)
    one = ones(x.shape[1], x.dtype)
    if x.shape[1] * x.shape[2] < THREADS_FROM:
        return np.matmul(one, x)
    return products.asleep(np.matmul, one, x)


def sum_columns(x: Array) -> Array:
    """Return the sum over axis 1 of a matrix."""
    if x.shape[1] > _LONGEST:
        return add_over(x, 1)
    one = ones(x.shape[1], x.dtype)
    return x.dot(one) if x.size < THREADS_FROM else products.dot(x, one)


def sum_rows(x: Array, share: float = 1.0) -> Array:
    """Return the sum over axis 0 of a matrix, times `share`."""
    if x.size < THREADS_FROM:
        return ones(len(x), x.dtype, share).dot(x)
    found = native_rows(x)
    if found is None:
        return ones(len(x), x.dtype, share).dot(x)
    return found if share == 1 else found * share


def native_rows(x: Array) -> Array | None:
    """Return the sum over the rows of a large matrix, on several threads; None if one thread does it."""
    threads = products.threads_for(x, x) if x.shape[0] else None
    if threads is None:
        return None
    count = threads.count(x.size * 16)  # an element takes as long as so many multiplications
    if count < 2 or x.strides[1] != x.itemsize:
        return products.alone(threads, ones(x.shape[0], x.dtype), x)
    y = np.empty(x.shape[1], x.dtype)
    cuts = products.spans(x.shape[1], count)
    records = [(id(x), id(y), x.shape[0], x.strides[0], start, stop) for start, stop in cuts]
    return y if products.run_by_ourselves(threads, _NATIVE[x.dtype.char], _NATIVE_FORM, records) else None


__all__ = ["FROM", "THREADS_FROM", "native_rows", "ones", "over", "sum_columns", "sum_rows"]
