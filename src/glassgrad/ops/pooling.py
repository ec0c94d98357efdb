"""The public pooling functions, over any number of axes: maximum, mean or power mean of windows, and unpooling.

The primitives pool over two axes. With more, the last axes are pooled first and the first one afterwards; the others
are then one axis that stays unchanged.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops import elementwise as ew
from glassgrad.ops.compound import divide
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.index import take_along_axis_p
from glassgrad.ops.kernels.windows import out_size
from glassgrad.ops.linalg import matmul
from glassgrad.ops.pool import max_pool2d_index_p, max_pool2d_p, sum_pool2d_p
from glassgrad.ops.reduce import argmax, sum_p
from glassgrad.ops.scatter import scatter
from glassgrad.ops.shape import broadcast_to_p, movedim, reshape_p
from glassgrad.ops.window_arguments import (
    ALONE,
    Ints,
    Window,
    as_images,
    expect_floats,
    first_and_rest,
    is_alone,
    over_axes,
    pool_window,
    several,
    sizes_of,
)


def _depth_in_channels(x: Array) -> Array:
    """Return (N, C, D, ...) as (N, C * D, ...)."""
    n, c, depth, *rest = x.shape
    return reshape_p(x, shape=(n, c * depth, *rest))


def _depth_apart(y: Array, x: Array) -> Array:
    """Return results (N, C * D, ...) of images from x as (N, C, D, positions)."""
    return reshape_p(y, shape=(*x.shape[:3], math.prod(y.shape[2:])))


def _flattened(first: Window) -> Window:
    """Return the windows of the first axis, with the others as one axis that stays unchanged."""
    return {key: (*along, ALONE[key]) for key, along in first.items()}


# --- the largest ----------------------------------------------------------------------------------


def _max_pool(dims: int) -> Callable[..., Any]:
    op = f"max_pool{dims}d"

    def max_pool(
        input: Array,
        kernel_size: Ints,
        stride: Any = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """Largest element of each window of (N, C, {sizes}); on ties the first gets the gradient.

        `stride` defaults to `kernel_size`. With `return_indices` the positions {place} are returned, too.

        Example:
            >>> import glassgrad as gg
            >>> gg.max_pool{dims}d(gg.ones(1, 1, {threes}), 2, stride=1).shape
            (1, 1, {twos})
        """
        image, back = as_images(input, dims, op)
        window = pool_window(dims, op, kernel_size, stride, padding, dilation)
        y, index = _largest(image, window, bool(ceil_mode), return_indices)
        return (back(y), back(index)) if return_indices else back(y)

    return max_pool


def _largest(x: Array, window: Window, ceil: bool, indices: bool) -> tuple[Array, Array]:
    """Return the maximum of each window and, on request, its position."""
    if len(window["stride"]) == 2:
        y = max_pool2d_p(x, **window, ceil=ceil)
        return y, max_pool2d_index_p(x, y, **window, ceil=ceil) if indices else None
    first, rest = first_and_rest(window)
    inner, places = _largest(_depth_in_channels(x), rest, ceil, indices)
    beside, window = _depth_apart(inner, x), _flattened(first)
    y = max_pool2d_p(beside, **window, ceil=ceil)
    shape = (*y.shape[:3], *inner.shape[2:])
    if not indices:
        return reshape_p(y, shape=shape), None
    chosen = ew.floor_divide(max_pool2d_index_p(beside, y, **window, ceil=ceil), max(beside.shape[3], 1))
    index = take_along_axis_p(_depth_apart(places, x), chosen, axis=2) + chosen * math.prod(x.shape[3:])
    return reshape_p(y, shape=shape), reshape_p(index, shape=shape)


max_pool1d, max_pool2d, max_pool3d = over_axes("max_pool{}d", _max_pool)


# --- the mean -------------------------------------------------------------------------------------


def _avg_pool(dims: int) -> Callable[..., Array]:
    def avg_pool(
        input: Array,
        kernel_size: Ints,
        stride: Any = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Array:
        """Mean of each window of (N, C, {sizes}); padding counts as zeros unless `count_include_pad` is False.

        Example:
            >>> import glassgrad as gg
            >>> gg.avg_pool{dims}d(gg.ones(1, 1, {threes}), 2, stride=1).shape
            (1, 1, {twos})
        """
        return _means(dims, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    return avg_pool


avg_pool2d, avg_pool3d = over_axes("avg_pool{}d", _avg_pool, (2, 3))


def avg_pool1d(
    input: Array,
    kernel_size: Ints,
    stride: Any = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """Mean of each window of (N, C, L)."""
    return _means(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def _means(
    dims: int, x: Array, kernel: Ints, stride: Any, padding: Ints, ceil: bool, include_pad: bool, divisor: int | None
) -> Array:
    op = f"avg_pool{dims}d"
    image, back = as_images(x, dims, op)
    window, ceil = pool_window(dims, op, kernel, stride, padding, 1), bool(ceil)
    if x.dtype.kind in "biu" and x.dtype != np.int64:  # sums could overflow; PyTorch refuses these dtypes, too
        raise errors.IMAGE_DTYPE(op=op, given=x.dtype, expected="floating-point or int64", where=provenance.here())
    total = _sums(image, window, ceil)
    if divisor is not None:
        return back(_mean_of(total, np.asarray(divisor)))
    counts = [
        _window_sizes(size, kernel, step, pad, ceil, include_pad)
        for size, kernel, step, pad, _ in zip(image.shape[2:], *window.values(), strict=True)
    ]
    area = functools.reduce(np.multiply.outer, counts)
    if (area == area.flat[0]).all():
        area = area.flat[0]
    return back(_mean_of(total, area))


def _sums(x: Array, window: Window, ceil: bool) -> Array:
    if len(window["stride"]) == 2:
        return sum_pool2d_p(x, **window, ceil=ceil)
    first, rest = first_and_rest(window)
    inner = _sums(_depth_in_channels(x), rest, ceil)
    y = sum_pool2d_p(_depth_apart(inner, x), **_flattened(first), ceil=ceil)
    return reshape_p(y, shape=(*y.shape[:3], *inner.shape[2:]))


def _mean_of(total: Array, count: Any) -> Array:
    """The total divided by a count; truncated for integers, as in PyTorch."""
    if total.dtype.kind in "iu":
        return divide(total, count, rounding_mode="trunc")
    return total * (float(1 / count) if not np.ndim(count) else (1 / count).astype(total.dtype))


def _window_sizes(size: int, kernel: int, stride: int, pad: tuple[int, int], ceil: bool, include_pad: bool) -> Array:
    """The number of elements of one axis that each window averages."""
    starts = np.arange(out_size(size, kernel, stride, pad, 1, ceil)) * stride - pad[0]
    stops = np.minimum(starts + kernel, size + pad[1])
    if not include_pad:
        starts, stops = np.maximum(starts, 0), np.minimum(stops, size)
    return stops - starts


# --- parts of about equal size --------------------------------------------------------------------


def _adaptive_avg_pool(dims: int) -> Callable[..., Array]:
    op = f"adaptive_avg_pool{dims}d"

    def adaptive_avg_pool(input: Array, output_size: Any) -> Array:
        """Mean over about equal parts of (N, C, {sizes}), as many as `output_size`; None in it keeps an axis.

        Part i of an axis of n elements cut into m is [floor(i n / m), ceil((i + 1) n / m)).

        Example:
            >>> import glassgrad as gg
            >>> gg.adaptive_avg_pool{dims}d(gg.ones(1, 1, {threes}), 2).shape
            (1, 1, {twos})
        """
        image, back = as_images(input, dims, op)
        expect_floats(image, op)
        sizes = sizes_of(output_size, image.shape[-dims:], op)
        return back(_part_means(image, sizes if dims > 1 else (1, *sizes)))

    return adaptive_avg_pool


def _part_means(x: Array, sizes: tuple[int, ...]) -> Array:
    before, last = x.shape[2:], len(x.shape) - 1
    if sizes == (1,) * len(sizes):
        area = math.prod(before)
        return sum_p(x, axis=tuple(range(2, last + 1)), keepdims=True) * (1 / area if area else math.nan)
    if all(m and n % m == 0 for n, m in zip(before, sizes, strict=True)):
        tile, one = tuple(n // m for n, m in zip(before, sizes, strict=True)), (1,) * len(sizes)
        window = {"kernel": tile, "stride": tile, "padding": ((0, 0),) * len(sizes), "dilation": one}
        return _sums(x, window, False) * (1 / math.prod(tile))
    for axis, (n, m) in enumerate(zip(before, sizes, strict=True), start=2):
        parts = _averaging(n, m, x.dtype)
        if axis == last - 1:
            x = matmul(parts, x)
        else:
            x = matmul(x, parts.T) if axis == last else movedim(matmul(movedim(x, axis, -1), parts.T), -1, axis)
    return x


def _averaging(before: int, after: int, dtype: Any) -> Array:
    """The matrix (after, before) that averages parts of an axis."""
    part = np.arange(after)[:, None]
    place = np.arange(before)
    inside = (place >= part * before // after) & (place < -(-(part + 1) * before // after))
    return (inside / inside.sum(axis=1, keepdims=True)).astype(dtype)


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = over_axes("adaptive_avg_pool{}d", _adaptive_avg_pool)


def _adaptive_max_pool(dims: int) -> Callable[..., Any]:
    op, tiles = f"adaptive_max_pool{dims}d", (max_pool1d, max_pool2d, max_pool3d)[dims - 1]

    def adaptive_max_pool(input: Array, output_size: Any, return_indices: bool = False) -> Any:
        """Largest element of about equal parts of (N, C, {sizes}), as many as `output_size`; None keeps an axis.

        Parts are those of `adaptive_avg_pool{dims}d`. With `return_indices` the positions {place} are returned, too.

        Example:
            >>> import glassgrad as gg
            >>> gg.adaptive_max_pool{dims}d(gg.ones(1, {threes}), 2).shape
            (1, {twos})
        """
        is_alone(input, dims, op)
        before = tuple(input.shape[-dims:])
        if not all(before):
            raise bad_option(op, "input", tuple(input.shape), "at least one element along each dimension")
        after = sizes_of(output_size, before, op)
        if all(m and n % m == 0 for n, m in zip(before, after, strict=True)):
            tile = [n // m for n, m in zip(before, after, strict=True)]
            return tiles(input, tile, return_indices=return_indices)
        x, index = input, broadcast_to_p(np.arange(math.prod(before)).reshape(before), shape=tuple(input.shape))
        # Start from the last axis, so that the first of equal elements wins.
        for axis in range(len(x.shape) - 1, len(x.shape) - 1 - dims, -1):
            x, index = _largest_of_parts(x, index, axis, after[axis - len(x.shape)])
        return (x, index) if return_indices else x

    return adaptive_max_pool


def _largest_of_parts(x: Array, index: Array, axis: int, count: int) -> tuple[Array, Array]:
    """The maximum of each of `count` parts of an axis, and its entry of `index`."""
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


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = over_axes("adaptive_max_pool{}d", _adaptive_max_pool)


# --- the way back ---------------------------------------------------------------------------------


def _max_unpool(dims: int) -> Callable[..., Array]:
    op = f"max_unpool{dims}d"

    def max_unpool(
        input: Array, indices: Array, kernel_size: Ints, stride: Any = None, padding: Ints = 0, output_size: Any = None
    ) -> Array:
        """Zeros with the elements of (N, C, {sizes}) at the `indices` that `max_pool{dims}d` returned.

        Raises:
            IndexRangeError: an index outside of the result.

        Example:
            >>> import glassgrad as gg
            >>> y, places = gg.max_pool{dims}d(gg.ones(1, {twos}), 2, return_indices=True)
            >>> gg.max_unpool{dims}d(y, places, 2).shape
            (1, {twos})
        """
        is_alone(input, dims, op)
        if tuple(indices.shape) != tuple(input.shape):
            raise bad_option(op, "indices", tuple(indices.shape), f"the shape {tuple(input.shape)} of the input")
        after = _unpooled_size(dims, op, input, kernel_size, stride, padding, output_size)
        lead, count = tuple(input.shape[:-dims]), math.prod(input.shape[-dims:])
        flat, places = (reshape_p(a, shape=(*lead, count)) for a in (input, indices))
        y = scatter(np.zeros((*lead, math.prod(after)), input.dtype), -1, places, flat)
        return reshape_p(y, shape=(*lead, *after))

    return max_unpool


def _unpooled_size(
    dims: int, op: str, x: Array, kernel: Ints, stride: Any, padding: Ints, size: Any
) -> tuple[int, ...]:
    """The size before pooling: the smallest possible one, or the requested one."""
    window = several(kernel, dims, "kernel_size", op)
    steps = window if stride is None else several(stride, dims, "stride", op)
    border = several(padding, dims, "padding", op)
    least = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[-dims:], steps, border, window, strict=True)]
    if size is None:
        return tuple(least)
    wanted = tuple(size)[-dims:]
    fits = len(wanted) == dims and all(n - s < m < n + s for n, m, s in zip(least, wanted, steps, strict=True))
    if not fits:
        raise bad_option(op, "output_size", tuple(size), f"sizes less than the stride {steps} away from {least}")
    return wanted


max_unpool1d, max_unpool2d, max_unpool3d = over_axes("max_unpool{}d", _max_unpool)


# --- powers ---------------------------------------------------------------------------------------


def _lp_pool(dims: int) -> Callable[..., Array]:
    op = f"lp_pool{dims}d"

    def lp_pool(
        input: Array, norm_type: float, kernel_size: Ints, stride: Any = None, ceil_mode: bool = False
    ) -> Array:
        """(sum of x**p)**(1/p) over each window of (N, C, {sizes})."""
        area = math.prod(several(kernel_size, dims, "kernel_size", op))
        mean = _means(dims, input**norm_type, kernel_size, stride, 0, ceil_mode, True, None)
        return (ew.sign(mean) * ew.abs(mean) * area) ** (1 / norm_type)

    return lp_pool


lp_pool1d, lp_pool2d, lp_pool3d = over_axes("lp_pool{}d", _lp_pool)
