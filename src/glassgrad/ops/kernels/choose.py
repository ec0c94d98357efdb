"""Kernels on NumPy arrays that forwards share, where NumPy's own function is slow.

`np.where` branches at each element; on data without a pattern the processor mispredicts half of the
branches, which costs ten times the arithmetic. `choose` multiplies bits instead.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

Array = Any

_INTEGERS: dict[Any, Any] = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}

_BITS_FROM = 1024  # elements

# ``(x, axis, dtype, out, keepdims)``, by position, which NumPy's type hints do not know: keywords would take
# a third of the time of a small reduction.
add_over: Any = np.add.reduce
multiply_over: Any = np.multiply.reduce
max_over: Any = np.maximum.reduce
min_over: Any = np.minimum.reduce
all_over: Any = np.logical_and.reduce

_SEARCH_UP_TO = 4096  # elements
_POSITIVE_FROM, _PART = 8_192, 32_768  # elements; so many zeros stay in the cache


def least(x: Array) -> Any:
    """Return the least of some integers; a search is quicker than a reduction where they are few."""
    return x.item(x.argmin()) if x.size <= _SEARCH_UP_TO else min_over(x, None)


def largest(x: Array) -> Any:
    """Return the largest of some integers."""
    return x.item(x.argmax()) if x.size <= _SEARCH_UP_TO else max_over(x, None)


def positive(x: Array) -> Array:
    """Return ``np.maximum(x, 0)``. NumPy compares with an array in less than half the time it takes with a number."""
    if type(x) is not np.ndarray or x.size < _POSITIVE_FROM or x.dtype.char not in "fd":
        return np.maximum(x, 0)
    y = np.empty_like(x)
    if y.strides != x.strides:  # elements that do not lie side by side, in whatever order of axes
        return np.maximum(x, 0)
    zeros, given, taken = _zeros(x.dtype), x.ravel(order="K"), y.ravel(order="K")
    for start in range(0, x.size, _PART):
        part = given[start : start + _PART]
        np.maximum(part, zeros[: part.size], out=taken[start : start + _PART])
    return y


@functools.cache
def _zeros(dtype: np.dtype[Any]) -> Array:
    return np.zeros(_PART, dtype)


def choose(mask: Array, a: Array, b: Array) -> Array:
    """Return ``np.where(mask, a, b)``, bit for bit, without branches where that is quicker."""
    if mask is False and type(a) is np.ndarray and type(b) is int and b == 0:  # the gradient of a step function
        return np.zeros(a.shape, a.dtype)
    # Below this many elements the bit form's passes cost more than mispredicted branches.
    dtype = _common(mask, a, b) if type(mask) is np.ndarray and mask.size >= _BITS_FROM else None
    if dtype is None:
        return np.where(mask, a, b)
    integers = _INTEGERS[dtype]
    left = _bits(a, dtype, integers)
    right = _bits(b, dtype, integers)
    # As integers, bits times 1 stay and bits times 0 vanish, whatever float they encode.
    if right is None:
        return np.multiply(left, mask, dtype=integers).view(dtype)
    if left is None:
        return np.multiply(right, ~mask, dtype=integers).view(dtype)
    differing = np.bitwise_xor(left, right)
    np.multiply(differing, mask, out=differing)
    differing ^= right
    return differing.view(dtype)


def _common(mask: Array, a: Array, b: Array) -> np.dtype[Any] | None:
    """Return the dtype of the result if the bit form can give it."""
    if mask.dtype != np.bool_:
        return None
    arrays = [x for x in (a, b) if type(x) is np.ndarray and x.ndim]
    if not arrays or any(x.shape != mask.shape for x in arrays):
        return None
    dtype = np.result_type(a, b)
    if dtype not in _INTEGERS or any(x.dtype != dtype for x in arrays):
        return None
    return dtype


def _bits(x: Array, dtype: np.dtype[Any], integers: np.dtype[Any]) -> Any:
    """Return the bits of an array or number as integers; None if they are all 0."""
    if type(x) is np.ndarray and x.ndim:
        return x.view(integers)
    bits = np.asarray(x, dtype).view(integers)[()]
    return bits or None
