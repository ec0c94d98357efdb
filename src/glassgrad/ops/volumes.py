"""Convolution and pooling over three dimensions, as compositions of those over two.

A convolution gathers the slices that a window reaches into channels, so that each position along the depth is an
image. Pooling goes over height and width first and over the depth afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from glassgrad import errors, provenance
from glassgrad.ops import elementwise as ew
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.conv import conv2d_input_p, conv2d_p
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.index import take_along_axis_p
from glassgrad.ops.pool import max_pool2d_index_p, max_pool2d_p, sum_pool2d_p
from glassgrad.ops.resize import _averaged
from glassgrad.ops.shape import pad_p, permute_p, reshape_p
from glassgrad.ops.spatial import Ints, _expect_averages, _mean_of, _several, _window_sizes
from glassgrad.ops.strided import overlap_add_p, unfold_p

Triple = tuple[int, ...]


def _as_volumes(x: Array, op: str) -> tuple[Array, Callable[[Array], Array]]:
    """Return `x` as (N, C, D, H, W), and how to give a result the dimensions that `x` has."""
    shape = tuple(x.shape)
    if len(shape) not in (4, 5):
        raise errors.IMAGE_DIMS(op=op, given=shape, sizes="depth, height, width", where=provenance.here())
    if len(shape) == 5:
        return x, lambda y: y
    return reshape_p(x, shape=(1, *shape)), lambda y: reshape_p(y, shape=tuple(y.shape[1:]))


class _Along(NamedTuple):
    """How windows lie along one axis."""

    kernel: int
    stride: int
    pad: tuple[int, int]
    dilation: int

    @property
    def reach(self) -> int:
        return self.dilation * (self.kernel - 1) + 1


# --- convolution ----------------------------------------------------------------------------------


def _borders(padding: Any, kernel: Triple, stride: Triple, dilation: Triple) -> list[tuple[int, int]]:
    """The border before and after each axis; "same" puts the odd one behind, as PyTorch does."""
    if not isinstance(padding, str):
        return [(p, p) for p in _several(padding, 3, "padding", "conv3d")]
    if padding not in {"same", "valid"} or (padding == "same" and set(stride) != {1}):
        raise bad_option("conv3d", "padding", padding, "a number, 'valid', or 'same' with a stride of 1")
    totals = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilation, kernel, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def _check_weight(op: str, x: Array, weight: Array, groups: int, turned: bool) -> None:
    if len(weight.shape) != 5:
        raise errors.CONV_WEIGHT(op=op, given=tuple(weight.shape), dims=5, where=provenance.here())
    channels = weight.shape[0] if turned else weight.shape[1] * groups
    if x.shape[1] != channels or weight.shape[0] % groups:
        expected = f"{channels} channels for a weight {tuple(weight.shape)} with groups={groups}"
        raise bad_option(op, "input", tuple(x.shape), expected)


def _slices(x: Array, along: _Along) -> Array:
    """The slices that each window reaches, (N, C, D, H, W) to (N * positions, C * kernel, H, W)."""
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
    _check_weight("conv3d", volume, weight, groups, turned=False)
    kernel = tuple(weight.shape[2:])
    steps, spread = _several(stride, 3, "stride", "conv3d"), _several(dilation, 3, "dilation", "conv3d")
    pads = _borders(padding, kernel, steps, spread)
    images = _slices(volume, _Along(kernel[0], steps[0], pads[0], spread[0]))
    flat = reshape_p(weight, shape=(weight.shape[0], weight.shape[1] * kernel[0], *kernel[1:]))
    y = conv2d_p(
        images,
        flat,
        stride=(steps[1], steps[2]),
        padding=(pads[1], pads[2]),
        dilation=(spread[1], spread[2]),
        groups=int(groups),
    )
    n = volume.shape[0]
    count = images.shape[0] // n if n else 0
    y = permute_p(reshape_p(y, shape=(n, count, *y.shape[1:])), axes=(0, 2, 1, 3, 4))
    return back(y if bias is None else y + reshape_p(bias, shape=(bias.shape[0], 1, 1, 1)))


def _stacked_up(y: Array, along: _Along, extra: int) -> Array:
    """Add the slices (N, O, D, H, W, kernel) where windows reach, without the border."""
    kernel, dilation = along.kernel, along.dilation
    if dilation > 1:
        apart = reshape_p(y, shape=(*y.shape, 1))
        apart = pad_p(apart, widths=((0, 0),) * 6 + ((0, dilation - 1),), value=0)
        y = reshape_p(apart, shape=(*y.shape[:5], kernel * dilation))[..., : along.reach]
    length = (y.shape[2] - 1) * along.stride + along.reach
    total = overlap_add_p(y, axis=2, step=along.stride, length=length)
    before, after = along.pad[0], along.pad[0] - extra
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
    _check_weight(op, volume, weight, groups, turned=True)
    kernel = tuple(weight.shape[2:])
    steps, spread = _several(stride, 3, "stride", op), _several(dilation, 3, "dilation", op)
    border, extra = _several(padding, 3, "padding", op), _several(output_padding, 3, "output_padding", op)
    if any(e >= max(s, d) for e, s, d in zip(extra, steps, spread, strict=True)):
        raise bad_option(op, "output_padding", output_padding, "less than the stride or the dilation")
    n, c, depth, *before = volume.shape
    images = reshape_p(permute_p(volume, axes=(0, 2, 1, 3, 4)), shape=(n * depth, c, *before))
    size = tuple(
        (before[a - 1] - 1) * steps[a] - 2 * border[a] + spread[a] * (kernel[a] - 1) + extra[a] + 1 for a in (1, 2)
    )
    flat = reshape_p(weight, shape=(c, weight.shape[1] * kernel[0], *kernel[1:]))
    y = conv2d_input_p(
        images,
        flat,
        size=size,
        stride=(steps[1], steps[2]),
        dilation=(spread[1], spread[2]),
        groups=int(groups),
        padding=((border[1], border[1] - extra[1]), (border[2], border[2] - extra[2])),
    )
    y = reshape_p(y, shape=(n, depth, weight.shape[1] * groups, kernel[0], *size))
    along = _Along(kernel[0], steps[0], (border[0], border[0]), spread[0])
    y = _stacked_up(permute_p(y, axes=(0, 2, 1, 4, 5, 3)), along, extra[0])
    return back(y if bias is None else y + reshape_p(bias, shape=(bias.shape[0], 1, 1, 1)))


# --- pooling --------------------------------------------------------------------------------------


def _windows(op: str, kernel: Ints, stride: Any, padding: Ints, dilation: Ints) -> list[_Along]:
    size = _several(kernel, 3, "kernel_size", op)
    steps = size if stride is None or stride in ([], ()) else _several(stride, 3, "stride", op)
    border, spread = _several(padding, 3, "padding", op), _several(dilation, 3, "dilation", op)
    if any(p > (d * (k - 1) + 1) // 2 for p, k, d in zip(border, size, spread, strict=True)):
        raise bad_option(op, "padding", padding, "at most half of kernel_size")
    return [_Along(k, s, (p, p), d) for k, s, p, d in zip(size, steps, border, spread, strict=True)]


def _as_window(rows: _Along, columns: _Along, ceil: bool) -> dict[str, Any]:
    return {
        "kernel": (rows.kernel, columns.kernel),
        "stride": (rows.stride, columns.stride),
        "padding": (rows.pad, columns.pad),
        "dilation": (rows.dilation, columns.dilation),
        "ceil": ceil,
    }


_ALONE = _Along(1, 1, (0, 0), 1)


def max_pool3d(
    input: Array,
    kernel_size: Ints,
    stride: Any = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Largest element of each window of (N, C, D, H, W); the first of equal ones gets the gradient.

    With `return_indices` the positions (d H + h) W + w come as well.
    """
    volume, back = _as_volumes(input, "max_pool3d")
    n, c, depth, height, width = volume.shape
    deep, *flat = _windows("max_pool3d", kernel_size, stride, padding, dilation)
    first, second = _as_window(flat[0], flat[1], bool(ceil_mode)), _as_window(deep, _ALONE, bool(ceil_mode))
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
    """Mean of each window of (N, C, D, H, W); the border counts unless `count_include_pad` is False."""
    volume, back = _as_volumes(input, "avg_pool3d")
    _expect_averages(volume, "avg_pool3d")
    n, c, depth, height, width = volume.shape
    windows = _windows("avg_pool3d", kernel_size, stride, padding, 1)
    ceil = bool(ceil_mode)
    images = reshape_p(volume, shape=(n, c * depth, height, width))
    inner = sum_pool2d_p(images, **_as_window(windows[1], windows[2], ceil))
    rows, columns = inner.shape[2:]
    y = sum_pool2d_p(reshape_p(inner, shape=(n, c, depth, rows * columns)), **_as_window(windows[0], _ALONE, ceil))
    total = reshape_p(y, shape=(n, c, y.shape[2], rows, columns))
    if divisor_override is not None:
        return back(_mean_of(total, np.asarray(divisor_override)))
    counts = [
        _window_sizes(size, one.kernel, one.stride, one.pad, ceil, count_include_pad)
        for size, one in zip((depth, height, width), windows, strict=True)
    ]
    return back(_mean_of(total, counts[0][:, None, None] * counts[1][:, None] * counts[2]))


def _sizes_of(given: Any, shape: Sequence[int], op: str) -> tuple[int, ...]:
    """The sizes asked for; None keeps one."""
    wanted = (given,) * len(shape) if given is None or isinstance(given, int | np.integer) else tuple(given)
    if len(wanted) == 1:
        wanted *= len(shape)
    if len(wanted) != len(shape):
        raise bad_option(op, "output_size", given, f"a number or {len(shape)} of them")
    return tuple(n if one is None else int(one) for one, n in zip(wanted, shape, strict=True))


def adaptive_avg_pool3d(input: Array, output_size: Any) -> Array:
    """Mean over a grid of about equal parts of (N, C, D, H, W); None in `output_size` keeps an axis."""
    volume, back = _as_volumes(input, "adaptive_avg_pool3d")
    if volume.dtype.kind in "biu":
        op, expected = "adaptive_avg_pool3d", "floating-point"
        raise errors.IMAGE_DTYPE(op=op, given=volume.dtype, expected=expected, where=provenance.here())
    sizes = _sizes_of(output_size, volume.shape[2:], "adaptive_avg_pool3d")
    if all(n and m and n % m == 0 for n, m in zip(volume.shape[2:], sizes, strict=True)):
        return back(avg_pool3d(volume, [n // m for n, m in zip(volume.shape[2:], sizes, strict=True)]))
    return back(_averaged(volume, sizes))
