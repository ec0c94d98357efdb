"""Helpers for shapes and axes that several op files share; none is an op."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad.ops.core import Array, Aval, bad_option
from glassgrad.ops.narrow import finfo
from glassgrad.ops.promotion import float_of
from glassgrad.ops.shape import astype, broadcast_to_p, permute_p, reshape_p

Axes = tuple[int, ...]


def kept_shape(shape: Sequence[int], axis: Axes) -> tuple[int, ...]:
    """Return the shape with size 1 in the reduced axes."""
    if len(axis) == 1:
        return (*shape[: axis[0]], 1, *shape[axis[0] + 1 :])
    return tuple([1 if position in axis else n for position, n in enumerate(shape)])


def reduced_shape(x: Any, *, axis: Axes, keepdims: bool, **_params: Any) -> tuple[int, ...]:
    """The shape rule of every reduction."""
    if keepdims:
        return kept_shape(x.shape, axis)
    return tuple(n for position, n in enumerate(x.shape) if position not in axis)


def summed(x: Any, *, axis: Axes, keepdims: bool) -> Aval:
    """The type of a sum; NumPy uses a wider dtype for small integers."""
    return Aval(reduced_shape(x, axis=axis, keepdims=keepdims), _sum_dtype(x.dtype))


@functools.cache
def _sum_dtype(dtype: Any) -> Any:
    return np.add.reduce(np.zeros(1, dtype)).dtype


def restore(g: Array, shape: Sequence[int], axis: Axes, keepdims: bool) -> Array:
    """Give a reduced array its size-1 axes back, so that it broadcasts against the input."""
    if keepdims:
        return g
    kept = kept_shape(shape, axis)
    return g.reshape(kept) if type(g) is np.ndarray else reshape_p(g, shape=kept)


# Up to this many elements, a copy costs less than reading through a stride of 0.
_COPY_UP_TO = 4096
_ARRAYS = (np.ndarray, np.generic)  # NumPy's arithmetic on 0-d arrays returns a scalar


def spread(g: Array, shape: Sequence[int], axis: Axes, keepdims: bool) -> Array:
    """Broadcast a reduced array back to the shape before the reduction."""
    if isinstance(g, _ARRAYS) and math.prod(shape) <= _COPY_UP_TO:
        full = np.empty(shape, g.dtype)
        full[...] = g if keepdims or not g.ndim else g.reshape(kept_shape(shape, axis))
        return full
    return broadcast_to_p(restore(g, shape, axis, keepdims), shape=shape)


def count(shape: Sequence[int], axes: Axes) -> int:
    """Return the number of elements along the axes."""
    return math.prod([shape[axis] for axis in axes])


def as_real(x: Array) -> Array:
    """Convert integers to floats, since differences of unsigned integers would wrap around."""
    return astype(x, float_of(x.dtype, np.result_type(x.dtype, np.float32))) if x.dtype.kind not in "fcV" else x


def like_one_element(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function along a dimension take a 0-d array as one element and return 0-d results, as PyTorch does."""

    @functools.wraps(function)
    def call(x: Array, *args: Any, **kwargs: Any) -> Any:
        if x.shape:
            return function(x, *args, **kwargs)
        result = function(reshape_p(x, shape=(1,)), *args, **kwargs)
        if isinstance(result, tuple):
            return type(result)(*(reshape_p(part, shape=()) for part in result))
        return reshape_p(result, shape=())

    return call


def widened(y: Array, x: Array, dtype: Any) -> Array:
    """Return a total in the requested dtype, or in int64 for booleans and unsigned integers.

    NumPy sums small integers in a wider type even if a dtype is given, and unsigned ones in uint64.
    """
    if dtype is not None:
        return y if y.dtype == x.dtype else astype(y, x.dtype)
    return astype(y, np.int64) if x.dtype.kind == "u" else y


def fitting(op: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert one number to a dtype like PyTorch's fills: drop the fraction, refuse numbers out of range."""
    if hasattr(value, "shape") and not isinstance(value, np.generic):
        if value.shape:
            raise bad_option(op, "value", f"an array of shape {tuple(value.shape)}", "one number")
        return value if value.dtype == dtype else astype(value, dtype)
    if dtype.kind == "b":
        return dtype.type(value)
    value = value.item() if isinstance(value, np.generic) else value
    whole = dtype.kind in "iu"
    info: Any = np.iinfo(dtype) if whole else finfo(dtype)
    lowest, highest = (int(info.min), int(info.max)) if whole else (float(info.min), float(info.max))
    if dtype.kind == "u" and isinstance(value, int):
        lowest = -highest  # a negative integer wraps around, as in PyTorch
    fits = all(lowest <= part <= highest or not (whole or math.isfinite(part)) for part in (value.real, value.imag))
    if not fits or (isinstance(value, complex) and dtype.kind != "c"):
        raise bad_option(op, "value", value, f"a number that {dtype} can hold")
    if dtype.kind == "c":
        return dtype.type(value)
    return np.asarray(int(value)).astype(dtype)[()] if whole else float(value)


def as_row(x: Array) -> Array:
    """Return an array with at least one dimension; a number becomes a vector of length 1."""
    return x if len(x.shape) else reshape_p(x, shape=(1,))


def swap_last(x: Array) -> Array:
    """Transpose the last two dimensions."""
    ndim = len(x.shape)
    if ndim == 2:
        return permute_p(x, axes=(1, 0))
    return permute_p(x, axes=(*range(ndim - 2), ndim - 1, ndim - 2))


def unknown(x: Any) -> bool:
    """Return whether `x` is abstract inside a transformation, without values."""
    return hasattr(x.array if hasattr(x, "_tracks") else x, "no_numbers")


def concrete(x: Any, op: str) -> Array:
    """Return the values of `x` as an ndarray, for ops whose result shape depends on them.

    Raises:
        GlassgradError: `x` has no values, inside a transformation.
    """
    array = x.array if hasattr(x, "_tracks") else x
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "no_numbers"):  # it knows its origin and makes the message
        raise array.no_numbers(op)
    return np.asarray(array)
