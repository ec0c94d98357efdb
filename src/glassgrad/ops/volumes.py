"""Convolution and pooling over three dimensions, as compositions of those over two.

A convolution gathers the slices that a window reaches into channels, so that each position along the depth is an
image. Pooling goes over height and width first and over the depth afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.conv import conv2d_input_p, conv2d_p
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.index import take_along_axis_p
from glassgrad.ops.pool import max_pool2d_index_p, max_pool2d_p, sum_pool2d_p
from glassgrad.ops.resize import _averaged
from glassgrad.ops.shape import pad_p, permute_p, reshape_p
from glassgrad.ops.spatial import (
    ALONE,
    Ints,
    Window,
    _conv_window,
    _expect_averages,
    _expect_floats,
    _is_alone,
    _kernel_of,
    _mean_of,
    _pool_window,
    _sizes_of,
    _transposed,
    _window_sizes,
)
from glassgrad.ops.strided import overlap_add_p, unfold_p


def _as_volumes(x: Array, op: str) -> tuple[Array, Callable[[Array], Array]]:
    """Return `x` as (N, C, D, H, W), and how to give a result the dimensions that `x` has."""
    if not _is_alone(x, 3, op):
        return x, lambda y: y
    return reshape_p(x, shape=(1, *x.shape)), lambda y: reshape_p(y, shape=tuple(y.shape[1:]))


class _Along(NamedTuple):
    """The windows along the depth."""

    kernel: int
    stride: int
    pad: tuple[int, int]
    dilation: int

    @property
    def reach(self) -> int:
        return self.dilation * (self.kernel - 1) + 1


def _within(window: Window) -> dict[str, Any]:
    """Return the windows of each slice."""
    return {key: along[1:] for key, along in window.items()}


# --- convolution ----------------------------------------------------------------------------------


def _check_weight(op: str, x: Array, weight: Array, groups: int, turned: bool) -> tuple[int, ...]:
    """Return the sizes of the windows, and check the channels here, since the images below have others."""
    kernel = _kernel_of(weight, 3, op)
    channels = weight.shape[0] if turned else weight.shape[1] * groups
    if x.shape[1] != channels or weight.shape[0] % groups:
        expected = f"{channels} channels for a weight {tuple(weight.shape)} with groups={groups}"
        raise bad_option(op, "input", tuple(x.shape), expected)
    return kernel


def _slices(x: Array, along: _Along) -> Array:
    """Gather the slices of each window: (N, C, D, H, W) to (N * positions, C * kernel, H, W)."""
    if any(along.pad):
        x = pad_p(x, widths=((0, 0), (0, 0), along.pad, (0, 0), (0, 0)), value=0)
    n, c, depth, height, width = x.shape
    if depth < along.reach:
        raise bad_option("conv3d", "kernel_size", along.kernel, f"windows that fit into {depth} slices")
    windows = unfold_p(x, axis=2, size=along.reach, step=along.stride)[..., :: along.dilation]
    count = windows.shape[2]
    ordered = permute_p(windows, axes=(0, 2, 1, 5, 3, 4))
    return reshape_p(ordered, shape=(n * count, c * along.kernel, height, width))


@takes_complex
def conv3d(
    input: Array,
    weight: Array,
    bias: Any = None,
    stride: Ints = 1,
    padding: Any = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Array:
    """Cross-correlation of (N, C, D, H, W) with `weight` (O, C/groups, kd, kh, kw): shape (N, O, D', H', W').

    `padding` is a number, one per axis, "same" or "valid"; sizes follow the formula of `conv2d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.conv3d(gg.ones(1, 1, 3, 3, 3), gg.ones(2, 1, 2, 2, 3)).shape
        (1, 2, 2, 2, 1)
    """
    volume, back = _as_volumes(input, "conv3d")
    kernel = _check_weight("conv3d", volume, weight, groups, turned=False)
    window = _conv_window(3, "conv3d", kernel, stride, padding, dilation)
    images = _slices(volume, _Along(kernel[0], *[along[0] for along in window.values()]))
    flat = reshape_p(weight, shape=(weight.shape[0], weight.shape[1] * kernel[0], *kernel[1:]))
    y = conv2d_p(images, flat, **_within(window), groups=int(groups))
    n = volume.shape[0]
    count = images.shape[0] // n if n else 0
    y = permute_p(reshape_p(y, shape=(n, count, *y.shape[1:])), axes=(0, 2, 1, 3, 4))
    return back(y if bias is None else y + reshape_p(bias, shape=(bias.shape[0], 1, 1, 1)))


def _stacked_up(y: Array, along: _Along) -> Array:
    """Add the slices (N, O, D, H, W, kernel) where windows reach, without the padding."""
    kernel, dilation = along.kernel, along.dilation
    if dilation > 1:
        apart = reshape_p(y, shape=(*y.shape, 1))
        apart = pad_p(apart, widths=((0, 0),) * 6 + ((0, dilation - 1),), value=0)
        y = reshape_p(apart, shape=(*y.shape[:5], kernel * dilation))[..., : along.reach]
    length = (y.shape[2] - 1) * along.stride + along.reach
    total = overlap_add_p(y, axis=2, step=along.stride, length=length)
    before, after = along.pad
    total = total[:, :, before : length - max(after, 0)]
    return pad_p(total, widths=((0, 0), (0, 0), (0, -after), (0, 0), (0, 0)), value=0) if after < 0 else total


@takes_complex
def conv_transpose3d(
    input: Array,
    weight: Array,
    bias: Any = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Array:
    """The transpose of `conv3d`: (N, C, D, H, W) with `weight` (C, O/groups, kd, kh, kw) to (N, O, D', H', W').

    D' = (D - 1) stride - 2 padding + dilation (kd - 1) + output_padding + 1.
    """
    op = "conv_transpose3d"
    volume, back = _as_volumes(input, op)
    kernel = _check_weight(op, volume, weight, groups, turned=True)
    sizes, window = _transposed(3, op, volume.shape[2:], kernel, stride, padding, output_padding, dilation)
    n, c, depth, *before = volume.shape
    images = reshape_p(permute_p(volume, axes=(0, 2, 1, 3, 4)), shape=(n * depth, c, *before))
    flat = reshape_p(weight, shape=(c, weight.shape[1] * kernel[0], *kernel[1:]))
    y = conv2d_input_p(images, flat, size=sizes[1:], **_within(window), groups=int(groups))
    y = reshape_p(y, shape=(n, depth, weight.shape[1] * groups, kernel[0], *sizes[1:]))
    along = _Along(kernel[0], *[along[0] for along in window.values()])
    y = _stacked_up(permute_p(y, axes=(0, 2, 1, 4, 5, 3)), along)
    return back(y if bias is None else y + reshape_p(bias, shape=(bias.shape[0], 1, 1, 1)))


# --- pooling --------------------------------------------------------------------------------------


def _in_turn(window: Window, ceil: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the windows of each slice, and those of the slices with height and width as one axis."""
    deep = {key: (along[0], ALONE[key]) for key, along in window.items()}
    return _within(window) | {"ceil": ceil}, deep | {"ceil": ceil}


def max_pool3d(
    input: Array,
    kernel_size: Ints,
    stride: Any = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Largest element of each window of (N, C, D, H, W); on ties the first gets the gradient.

    With `return_indices` the positions (d H + h) W + w come as well.
    """
    volume, back = _as_volumes(input, "max_pool3d")
    n, c, depth, height, width = volume.shape
    window = _pool_window(3, "max_pool3d", kernel_size, stride, padding, dilation)
    first, second = _in_turn(window, bool(ceil_mode))
    images = reshape_p(volume, shape=(n, c * depth, height, width))
    inner = max_pool2d_p(images, **first)
    rows, columns = inner.shape[2:]
    beside = reshape_p(inner, shape=(n, c, depth, rows * columns))
    y = max_pool2d_p(beside, **second)
    shape = (n, c, y.shape[2], rows, columns)
    if not return_indices:
        return back(reshape_p(y, shape=shape))
    places = reshape_p(max_pool2d_index_p(images, inner, **first), shape=tuple(beside.shape))
    chosen = ew.floor_divide(max_pool2d_index_p(beside, y, **second), max(rows * columns, 1))
    index = take_along_axis_p(places, chosen, axis=2) + chosen * (height * width)
    return back(reshape_p(y, shape=shape)), back(reshape_p(index, shape=shape))


def avg_pool3d(
    input: Array,
    kernel_size: Ints,
    stride: Any = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Mean of each window of (N, C, D, H, W); padding counts as zeros unless `count_include_pad` is False."""
    volume, back = _as_volumes(input, "avg_pool3d")
    _expect_averages(volume, "avg_pool3d")
    n, c, depth, height, width = volume.shape
    window, ceil = _pool_window(3, "avg_pool3d", kernel_size, stride, padding, 1), bool(ceil_mode)
    first, second = _in_turn(window, ceil)
    images = reshape_p(volume, shape=(n, c * depth, height, width))
    inner = sum_pool2d_p(images, **first)
    rows, columns = inner.shape[2:]
    y = sum_pool2d_p(reshape_p(inner, shape=(n, c, depth, rows * columns)), **second)
    total = reshape_p(y, shape=(n, c, y.shape[2], rows, columns))
    if divisor_override is not None:
        return back(_mean_of(total, np.asarray(divisor_override)))
    counts = [
        _window_sizes(size, kernel, step, pad, ceil, count_include_pad)
        for size, kernel, step, pad, _ in zip((depth, height, width), *window.values(), strict=True)
    ]
    return back(_mean_of(total, counts[0][:, None, None] * counts[1][:, None] * counts[2]))


def adaptive_avg_pool3d(input: Array, output_size: Any) -> Array:
    """Mean over a grid of about equal parts of (N, C, D, H, W); None in `output_size` keeps an axis."""
    volume, back = _as_volumes(input, "adaptive_avg_pool3d")
    _expect_floats(volume, "adaptive_avg_pool3d")
    sizes = _sizes_of(output_size, volume.shape[2:], "adaptive_avg_pool3d")
    if all(n and m and n % m == 0 for n, m in zip(volume.shape[2:], sizes, strict=True)):
        return back(avg_pool3d(volume, [n // m for n, m in zip(volume.shape[2:], sizes, strict=True)]))
    return back(_averaged(volume, sizes))
