"""Kernels on NumPy arrays that forwards share, for cases where NumPy's own function is slow.

`np.where` branches at each element; on data without a pattern the processor mispredicts half of the
branches, which costs ten times the arithmetic. `choose` multiplies bits instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from glassgrad.ops.kernels.ways import Array, Dtype

Axes = int | tuple[int, ...] | None
Reduction = Callable[..., Array]

_INTEGERS: dict[Dtype, Dtype] = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}

_BITS_FROM = 1024  # elements

# ``(x, axis, dtype, out, keepdims)``, by position, which NumPy's type hints do not know: keywords would take
# a third of the time of a small reduction.
add_over: Reduction = np.add.reduce
multiply_over: Reduction = np.multiply.reduce
max_over: Reduction = np.maximum.reduce
min_over: Reduction = np.minimum.reduce
all_over: Reduction = np.logical_and.reduce

_SEARCH_UP_TO = 4096  # elements
_ROWS_FROM = 64
_REMEMBERED = 65_536  # rows to cache; for more, making their positions costs little compared with using them
_POSITIVE_FROM, _PART = 8_192, 32_768  # elements; so many zeros stay in the cache


def numbers_of(x: Array) -> Array:
    """Return the NumPy array of a Tensor, for uses without a derivative; return other values unchanged."""
    return x.array if hasattr(x, "_tracks") and type(x.array) is np.ndarray else x


def least(x: Array) -> Array:
    """Return the least of some integers; for few integers, a search is quicker than a reduction."""
    return x.item(x.argmin()) if x.size <= _SEARCH_UP_TO else min_over(x, None)


def largest(x: Array) -> Array:
    """Return the largest of some integers."""
    return x.item(x.argmax()) if x.size <= _SEARCH_UP_TO else max_over(x, None)


def max_along(x: Array, axis: Axes, keepdims: bool = True) -> Array:
    """Return ``np.maximum.reduce`` over an axis, or several."""
    if x.size >= _ROWS_FROM and _has_rows(x, axis):
        return _at_rows(x, x.argmax(-1), keepdims)
    return max_over(x, axis, None, None, keepdims)


def min_along(x: Array, axis: Axes, keepdims: bool = True) -> Array:
    """Return ``np.minimum.reduce`` over an axis, or several."""
    if x.size >= _ROWS_FROM and _has_rows(x, axis):
        return _at_rows(x, x.argmin(-1), keepdims)
    return min_over(x, axis, None, None, keepdims)


def _has_rows(x: Array, axis: Axes) -> bool:
    """Return whether the axis is that of contiguous rows, for which a search takes half the time."""
    last = x.ndim - 1
    if not last or axis not in (last, (last,)) or x.dtype.char not in "fd":
        return False
    return x.size >= x.shape[last] * _ROWS_FROM > 0 and bool(x.flags.c_contiguous) and type(x) is np.ndarray


def _at_rows(x: Array, columns: Array, keepdims: bool) -> Array:
    """Return the number in one column of each row; the search that gives the columns finds the first NaN, if any."""
    starts = row_starts(columns.size, x.shape[-1])
    found = x.take(columns + (starts if columns.ndim == 1 else starts.reshape(columns.shape)))
    return found[..., None] if keepdims else found


def row_starts(rows: int, width: int) -> Array:
    """Return the positions of the rows' first elements in a flattened matrix."""
    return _starts(rows, width) if rows <= _REMEMBERED else np.arange(0, rows * width, width)


@functools.lru_cache(maxsize=16)
def _starts(rows: int, width: int) -> Array:
    return np.arange(0, rows * width, width)


def positive(x: Array) -> Array:
    """Return ``np.maximum(x, 0)``. NumPy compares with an array more than twice as fast as with a number."""
    if type(x) is not np.ndarray or x.size < _POSITIVE_FROM or x.dtype.char not in "fd":
        return np.maximum(x, 0)
    y = np.empty_like(x)
    if y.strides != x.strides:  # the elements are not dense in any order of axes
        return np.maximum(x, 0)
    zeros, given, taken = _zeros(x.dtype), x.ravel(order="K"), y.ravel(order="K")
    for start in range(0, x.size, _PART):
        part = given[start : start + _PART]
        np.maximum(part, zeros[: part.size], out=taken[start : start + _PART])
    return y


@functools.cache
def _zeros(dtype: Dtype) -> Array:
    return np.zeros(_PART, dtype)


def choose(mask: Array, a: Array, b: Array) -> Array:
    """Return ``np.where(mask, a, b)``, bit for bit, without branches if that is quicker."""
    if mask is False and type(a) is np.ndarray and type(b) is int and b == 0:  # the gradient of a step function
        return np.zeros(a.shape, a.dtype)
    # Below this many elements the bit form's passes cost more than mispredicted branches.
    dtype = _common(mask, a, b) if type(mask) is np.ndarray and mask.size >= _BITS_FROM else None
    if dtype is None:
        return np.where(mask, a, b)
    integers = _INTEGERS[dtype]
    left = _bits(a, dtype, integers)
    right = _bits(b, dtype, integers)
    # As integers, bits times 1 stay and bits times 0 become 0, for any float.
    if right is None:
        return np.multiply(left, mask, dtype=integers).view(dtype)
    if left is None:
        return np.multiply(right, ~mask, dtype=integers).view(dtype)
    differing = np.bitwise_xor(left, right)
    np.multiply(differing, mask, out=differing)
    differing ^= right
    return differing.view(dtype)


def _common(mask: Array, a: Array, b: Array) -> Dtype | None:
    """Return the dtype of the result if the bit form supports it, else None."""
    if mask.dtype != np.bool_:
        return None
    arrays = [x for x in (a, b) if type(x) is np.ndarray and x.ndim]
    if not arrays or any(x.shape != mask.shape for x in arrays):
        return None
    dtype = np.result_type(a, b)
    if dtype not in _INTEGERS or any(x.dtype != dtype for x in arrays):
        return None
    return dtype


def _bits(x: Array, dtype: Dtype, integers: Dtype) -> Array:
    """Return the bits of an array or number as integers; None if they are all 0."""
    if type(x) is np.ndarray and x.ndim:
        return x.view(integers)
    bits = np.asarray(x, dtype).view(integers)[()]
    return bits or None
