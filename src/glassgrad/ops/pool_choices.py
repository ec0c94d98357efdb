"""Adaptive max pooling, unpooling from positions, and power-average (Lp) pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.index import take_along_axis_p
from glassgrad.ops.reduce import argmax
from glassgrad.ops.scatter import scatter
from glassgrad.ops.shape import broadcast_to_p, movedim, reshape_p
from glassgrad.ops.spatial import Ints, _is_alone, _several, _sizes_of, avg_pool1d, avg_pool2d, max_pool1d, max_pool2d
from glassgrad.ops.volumes import avg_pool3d, max_pool3d

_MAX = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}
_MEAN = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}


# --- parts of about equal size --------------------------------------------------------------------


def _along(x: Array, index: Array, axis: int, count: int) -> tuple[Array, Array]:
    """The largest element of `count` parts of an axis, and its entry of `index`."""
    size = x.shape[axis]
    part = np.arange(count)[:, None]
    first, last = part * size // count, -(-(part + 1) * size // count) - 1
    widest = int((last - first).max(initial=0)) + 1
    # A short part repeats its last element, which never comes first among equals.
    places = np.minimum(first + np.arange(widest), last)
    windows, beside = (movedim(a, axis, -1)[..., places] for a in (x, index))
    best = argmax(windows, -1, keepdim=True)
    chosen = (take_along_axis_p(a, best, axis=len(a.shape) - 1)[..., 0] for a in (windows, beside))
    y, found = (movedim(a, -1, axis) for a in chosen)
    return y, found


def _adaptive_max(dims: int, x: Array, output_size: Any, indices: bool) -> Any:
    op = f"adaptive_max_pool{dims}d"
    _is_alone(x, dims, op)
    before = tuple(x.shape[-dims:])
    if not all(before):
        raise bad_option(op, "input", tuple(x.shape), "at least one element along each dimension")
    after = _sizes_of(output_size, before, op)
    if all(m and n % m == 0 for n, m in zip(before, after, strict=True)):
        tile = [n // m for n, m in zip(before, after, strict=True)]
        return _MAX[dims](x, tile, return_indices=indices)
    index: Array = broadcast_to_p(np.arange(math.prod(before)).reshape(before), shape=tuple(x.shape))
    # Start from the last axis, so that the first of equal elements wins.
    for axis in range(len(x.shape) - 1, len(x.shape) - 1 - dims, -1):
        x, index = _along(x, index, axis, after[axis - len(x.shape)])
    return (x, index) if indices else x


def adaptive_max_pool1d(input: Array, output_size: Any, return_indices: bool = False) -> Any:
    """Largest element of each of `output_size` nearly equal parts of (N, C, L)."""
    return _adaptive_max(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Array, output_size: Any, return_indices: bool = False) -> Any:
    """Largest element over a grid of about equal parts of (N, C, H, W); None in `output_size` keeps an axis.

    Parts are those of `adaptive_avg_pool2d`. With `return_indices` the positions h W + w come as well.

    Example:
        >>> import glassgrad as gg
        >>> gg.adaptive_max_pool2d(gg.arange(9.0).reshape(1, 3, 3), 2).tolist()
        [[[4.0, 5.0], [7.0, 8.0]]]
    """
    return _adaptive_max(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Array, output_size: Any, return_indices: bool = False) -> Any:
    """Largest element over a grid of about equal parts of (N, C, D, H, W); None in `output_size` keeps an axis."""
    return _adaptive_max(3, input, output_size, return_indices)


# --- the way back ---------------------------------------------------------------------------------


def _unpooled_size(dims: int, x: Array, kernel: Ints, stride: Any, padding: Ints, size: Any) -> tuple[int, ...]:
    """The size before the pooling: the smallest possible, or the requested one."""
    op = f"max_unpool{dims}d"
    window = _several(kernel, dims, "kernel_size", op)
    steps = window if stride is None else _several(stride, dims, "stride", op)
    border = _several(padding, dims, "padding", op)
    least = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[-dims:], steps, border, window, strict=True)]
    if size is None:
        return tuple(least)
    wanted = tuple(size)[-dims:]
    fits = len(wanted) == dims and all(n - s < m < n + s for n, m, s in zip(least, wanted, steps, strict=True))
    if not fits:
        raise bad_option(op, "output_size", tuple(size), f"sizes less than the stride {steps} away from {least}")
    return wanted


def _unpool(dims: int, x: Array, index: Array, kernel: Ints, stride: Any, padding: Ints, size: Any) -> Array:
    op = f"max_unpool{dims}d"
    _is_alone(x, dims, op)
    if tuple(index.shape) != tuple(x.shape):
        raise bad_option(op, "indices", tuple(index.shape), f"the shape {tuple(x.shape)} of the input")
    after = _unpooled_size(dims, x, kernel, stride, padding, size)
    lead, count = tuple(x.shape[:-dims]), math.prod(x.shape[-dims:])
    flat, places = (reshape_p(a, shape=(*lead, count)) for a in (x, index))
    y = scatter(np.zeros((*lead, math.prod(after)), x.dtype), -1, places, flat)
    return reshape_p(y, shape=(*lead, *after))


def max_unpool1d(
    input: Array, indices: Array, kernel_size: Ints, stride: Any = None, padding: Ints = 0, output_size: Any = None
) -> Array:
    """Zeros with the elements of (N, C, L) at the `indices` that `max_pool1d` returned."""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Array, indices: Array, kernel_size: Ints, stride: Any = None, padding: Ints = 0, output_size: Any = None
) -> Array:
    """Zeros with the elements of (N, C, H, W) at the `indices` that `max_pool2d` returned.

    Raises:
        IndexRangeError: an index outside of the result.

    Example:
        >>> import glassgrad as gg
        >>> y, places = gg.max_pool2d(gg.arange(4.0).reshape(1, 2, 2), 2, return_indices=True)
        >>> gg.max_unpool2d(y, places, 2).tolist()
        [[[0.0, 0.0], [0.0, 3.0]]]
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Array, indices: Array, kernel_size: Ints, stride: Any = None, padding: Ints = 0, output_size: Any = None
) -> Array:
    """Zeros with the elements of (N, C, D, H, W) at the `indices` that `max_pool3d` returned."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


# --- powers ---------------------------------------------------------------------------------------


def _power_pool(dims: int, x: Array, p: float, kernel: Ints, stride: Any, ceil: bool) -> Array:
    area = math.prod(_several(kernel, dims, "kernel_size", f"lp_pool{dims}d"))
    mean = _MEAN[dims](x**p, kernel, stride, 0, ceil)
    return (ew.sign(mean) * ew.abs(mean) * area) ** (1 / p)


def lp_pool1d(input: Array, norm_type: float, kernel_size: Ints, stride: Any = None, ceil_mode: bool = False) -> Array:
    """(sum of x**p)**(1/p) over each window of (N, C, L)."""
    return _power_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Array, norm_type: float, kernel_size: Ints, stride: Any = None, ceil_mode: bool = False) -> Array:
    """(sum of x**p)**(1/p) over each window of (N, C, H, W)."""
    return _power_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Array, norm_type: float, kernel_size: Ints, stride: Any = None, ceil_mode: bool = False) -> Array:
    """(sum of x**p)**(1/p) over each window of (N, C, D, H, W)."""
    return _power_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
