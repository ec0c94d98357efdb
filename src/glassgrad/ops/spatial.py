"""Convolution, pooling, unfolding and resizing as users call them: PyTorch's signatures over the primitives.

A signal (N, C, L) is an image of height 1; an input without the batch dimension gets one and loses it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad import errors, provenance
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.compound import divide
from glassgrad.ops.conv import conv2d_input_p, conv2d_p
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.kernels.windows import out_size
from glassgrad.ops.linalg import matmul
from glassgrad.ops.pool import fold_p, max_pool2d_index_p, max_pool2d_p, sum_pool2d_p, unfold_p
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.shape import reshape_p
from glassgrad.ops.vmap import conv_rules as _conv_batching  # noqa: F401 - registers the batching rules of convolutions

Ints = int | Sequence[int]


# --- arguments ------------------------------------------------------------------------------------


def _several(value: Any, count: int, name: str, op: str) -> tuple[int, ...]:
    """An int, or `count` of them, as a tuple."""
    listed = (int(value),) if isinstance(value, int | np.integer) else tuple(int(v) for v in value)
    if len(listed) == 1:
        listed *= count
    if len(listed) != count:
        raise bad_option(op, name, value, f"an int or {count} of them")
    least = 1 if name in _POSITIVE else 0
    if min(listed, default=least) < least:
        raise bad_option(op, name, value, f"at least {least}")
    return listed


_POSITIVE = {"kernel_size", "stride", "dilation"}


def _is_alone(x: Array, dims: int, op: str) -> bool:
    """Return whether `x` has no batch dimension; raise unless it has `dims` + 1 or + 2 dimensions."""
    ndim = len(x.shape)
    if ndim not in (dims + 1, dims + 2):
        sizes = "length" if dims == 1 else ", ".join(("depth", "height", "width")[-dims:])
        raise errors.IMAGE_DIMS(op=op, given=tuple(x.shape), sizes=sizes, where=provenance.here())
    return ndim == dims + 1


def _as_images(x: Array, dims: int, op: str) -> tuple[Array, Callable[[Array], Array]]:
    """Return `x` as (N, C, H, W), and how to give a result the dimensions that `x` has."""
    alone = _is_alone(x, dims, op)
    shape = tuple(x.shape)
    full = ((1,) if alone else ()) + shape
    full = full if dims == 2 else (*full[:2], 1, full[2])
    image = x if full == shape else reshape_p(x, shape=full)

    def back(y: Array) -> Array:
        kept = tuple(y.shape[1:] if alone else y.shape)
        kept = kept if dims == 2 else (*kept[:-2], kept[-1])
        return y if kept == tuple(y.shape) else reshape_p(y, shape=kept)

    return image, back


Window = dict[str, tuple[Any, ...]]
"""Kernel, stride, padding and dilation along each axis, as the primitives take them."""

ALONE = {"kernel": 1, "stride": 1, "padding": (0, 0), "dilation": 1}
"""The windows of an axis that stays as it is."""


def _flat(window: Window, dims: int) -> dict[str, Any]:
    """Return the windows of a signal as those of an image of height 1."""
    return window if dims == 2 else {key: (ALONE[key], *along) for key, along in window.items()}


def _conv_window(dims: int, op: str, kernel: Sequence[int], stride: Ints, padding: Any, dilation: Ints) -> Window:
    steps, spread = _several(stride, dims, "stride", op), _several(dilation, dims, "dilation", op)
    if isinstance(padding, str):
        pads = _named_padding(padding, kernel, steps, spread, op)
    else:
        pads = [(p, p) for p in _several(padding, dims, "padding", op)]
    return {"stride": steps, "padding": tuple(pads), "dilation": spread}


def _named_padding(
    padding: str, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], op: str
) -> list[tuple[int, int]]:
    """Return the padding before and after each axis; "same" puts the odd element after it, as in PyTorch."""
    if padding not in ("same", "valid"):
        raise bad_option(op, "padding", padding, "a number, 'same' or 'valid'")
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if any(step != 1 for step in stride):
        raise bad_option(op, "padding", padding, "a stride of 1 with 'same'")
    totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


# --- convolution ----------------------------------------------------------------------------------


def _kernel_of(weight: Array, dims: int, op: str) -> tuple[int, ...]:
    if len(weight.shape) != dims + 2:
        raise errors.CONV_WEIGHT(op=op, given=tuple(weight.shape), dims=dims + 2, where=provenance.here())
    return tuple(weight.shape[2:])


def _conv(
    dims: int, x: Array, weight: Array, bias: Any, stride: Ints, padding: Any, dilation: Ints, groups: int
) -> Array:
    op = f"conv{dims}d"
    image, back = _as_images(x, dims, op)
    kernel = _kernel_of(weight, dims, op)
    w = weight if dims == 2 else reshape_p(weight, shape=(*weight.shape[:2], 1, kernel[0]))
    y = conv2d_p(image, w, **_flat(_conv_window(dims, op, kernel, stride, padding, dilation), dims), groups=int(groups))
    return back(y if bias is None else y + reshape_p(bias, shape=(bias.shape[0], 1, 1)))


@takes_complex
def conv1d(
    input: Array,
    weight: Array,
    bias: Any = None,
    stride: Ints = 1,
    padding: Any = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Array:
    """Cross-correlation of (N, C, L) with `weight` (O, C/groups, k): shape (N, O, L')."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


@takes_complex
def conv2d(
    input: Array,
    weight: Array,
    bias: Any = None,
    stride: Ints = 1,
    padding: Any = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Array:
    """Cross-correlation of (N, C, H, W) with `weight` (O, C/groups, kh, kw): shape (N, O, H', W').

    `padding` is a number, one per axis, "same" or "valid". H' = (H + 2 padding - dilation (kh - 1) - 1) // stride + 1.

    Example:
        >>> import glassgrad as gg
        >>> gg.conv2d(gg.ones(1, 1, 3, 3), gg.ones(1, 1, 2, 2)).tolist()
        [[[[4.0, 4.0], [4.0, 4.0]]]]
    """
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(
    dims: int,
    x: Array,
    weight: Array,
    bias: Any,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
) -> Array:
    op = f"conv_transpose{dims}d"
    image, back = _as_images(x, dims, op)
    kernel = _kernel_of(weight, dims, op)
    size, window = _transposed(dims, op, image.shape[4 - dims :], kernel, stride, padding, output_padding, dilation)
    w = weight if dims == 2 else reshape_p(weight, shape=(*weight.shape[:2], 1, kernel[0]))
    size = size if dims == 2 else (1, *size)
    y = conv2d_input_p(image, w, size=size, **_flat(window, dims), groups=int(groups))
    return back(y if bias is None else y + reshape_p(bias, shape=(bias.shape[0], 1, 1)))


def _transposed(
    dims: int,
    op: str,
    before: Sequence[int],
    kernel: Sequence[int],
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
) -> tuple[tuple[int, ...], Window]:
    """Return the transpose's output sizes for inputs of size `before`, and the windows of its convolution."""
    steps, spread = _several(stride, dims, "stride", op), _several(dilation, dims, "dilation", op)
    border, extra = _several(padding, dims, "padding", op), _several(output_padding, dims, "output_padding", op)
    if any(e >= max(s, d) for e, s, d in zip(extra, steps, spread, strict=True)):
        raise bad_option(op, "output_padding", output_padding, "less than the stride or the dilation")
    size = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, s, p, d, k, e in zip(before, steps, border, spread, kernel, extra, strict=True)
    )
    # The extra rows at the end are rows that the convolution does not read.
    pads = tuple((p, p - e) for p, e in zip(border, extra, strict=True))
    return size, {"stride": steps, "padding": pads, "dilation": spread}


@takes_complex
def conv_transpose1d(
    input: Array,
    weight: Array,
    bias: Any = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Array:
    """The transpose of `conv1d`: (N, C, L) with `weight` (C, O/groups, k) to (N, O, L')."""
    return _conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@takes_complex
def conv_transpose2d(
    input: Array,
    weight: Array,
    bias: Any = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Array:
    """The transpose of `conv2d`: (N, C, H, W) with `weight` (C, O/groups, kh, kw) to (N, O, H', W').

    H' = (H - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1.
    """
    return _conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


# --- pooling --------------------------------------------------------------------------------------


def _pool_window(dims: int, op: str, kernel: Ints, stride: Any, padding: Ints, dilation: Ints) -> Window:
    size = _several(kernel, dims, "kernel_size", op)
    steps = size if stride is None or stride in ([], ()) else _several(stride, dims, "stride", op)
    border = _several(padding, dims, "padding", op)
    spread = _several(dilation, dims, "dilation", op)
    if any(p > (d * (k - 1) + 1) // 2 for p, k, d in zip(border, size, spread, strict=True)):
        raise bad_option(op, "padding", padding, "at most half of kernel_size")
    pads = [(p, p) for p in border]
    return {"kernel": size, "stride": steps, "padding": tuple(pads), "dilation": spread}


def _max_pool(
    dims: int, x: Array, kernel: Ints, stride: Any, padding: Ints, dilation: Ints, ceil: bool, indices: bool
) -> Any:
    op = f"max_pool{dims}d"
    image, back = _as_images(x, dims, op)
    window = _flat(_pool_window(dims, op, kernel, stride, padding, dilation), dims) | {"ceil": bool(ceil)}
    y = max_pool2d_p(image, **window)
    return (back(y), back(max_pool2d_index_p(image, y, **window))) if indices else back(y)


def max_pool1d(
    input: Array,
    kernel_size: Ints,
    stride: Any = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Largest element of each window of (N, C, L); with `return_indices` also its position."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Array,
    kernel_size: Ints,
    stride: Any = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Largest element of each window of (N, C, H, W); on ties the first gets the gradient.

    `stride` is `kernel_size` unless given. With `return_indices` the positions h W + w come as well.

    Example:
        >>> import glassgrad as gg
        >>> gg.max_pool2d(gg.arange(16.0).reshape(1, 1, 4, 4), 2).tolist()
        [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _avg_pool(
    dims: int, x: Array, kernel: Ints, stride: Any, padding: Ints, ceil: bool, include_pad: bool, divisor: int | None
) -> Array:
    op = f"avg_pool{dims}d"
    image, back = _as_images(x, dims, op)
    window = _flat(_pool_window(dims, op, kernel, stride, padding, 1), dims) | {"ceil": bool(ceil)}
    _expect_averages(x, op)
    total = sum_pool2d_p(image, **window)
    if divisor is not None:
        return back(_mean_of(total, np.asarray(divisor)))
    steps, pads = window["stride"], window["padding"]
    counts = [
        _window_sizes(image.shape[2 + a], window["kernel"][a], steps[a], pads[a], ceil, include_pad) for a in (0, 1)
    ]
    area = np.outer(counts[0], counts[1])
    if (area == area.flat[0]).all():
        area = area.flat[0]
    return back(_mean_of(total, area))


def _expect_averages(x: Array, op: str) -> None:
    """Refuse integers other than int64, as PyTorch does: their sums could overflow."""
    if x.dtype.kind in "biu" and x.dtype != np.int64:
        raise errors.IMAGE_DTYPE(op=op, given=x.dtype, expected="floating-point or int64", where=provenance.here())


def _expect_floats(x: Array, op: str) -> None:
    if x.dtype.kind in "biu":
        raise errors.IMAGE_DTYPE(op=op, given=x.dtype, expected="floating-point", where=provenance.here())


def _mean_of(total: Array, count: Any) -> Array:
    """The total over a count; for integers the quotient truncated, as in PyTorch."""
    if total.dtype.kind in "iu":
        return divide(total, count, rounding_mode="trunc")
    return total * (float(1 / count) if not np.ndim(count) else (1 / count).astype(total.dtype))


def _window_sizes(size: int, kernel: int, stride: int, pad: tuple[int, int], ceil: bool, include_pad: bool) -> Any:
    """How many elements of one axis each window averages."""
    starts = np.arange(out_size(size, kernel, stride, pad, 1, ceil)) * stride - pad[0]
    stops = np.minimum(starts + kernel, size + pad[1])
    if not include_pad:
        starts, stops = np.maximum(starts, 0), np.minimum(stops, size)
    return stops - starts


def avg_pool1d(
    input: Array,
    kernel_size: Ints,
    stride: Any = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """Mean of each window of (N, C, L)."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Array,
    kernel_size: Ints,
    stride: Any = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Mean of each window of (N, C, H, W); padding counts as zeros unless `count_include_pad` is False."""
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _sizes_of(given: Any, shape: Sequence[int], op: str) -> tuple[int, ...]:
    """The requested sizes; None keeps the input's."""
    wanted = (given,) * len(shape) if given is None or isinstance(given, int | np.integer) else tuple(given)
    if len(wanted) == 1:
        wanted *= len(shape)
    if len(wanted) != len(shape):
        raise bad_option(op, "output_size", given, f"a number or {len(shape)} of them")
    return tuple(n if one is None else int(one) for one, n in zip(wanted, shape, strict=True))


def adaptive_avg_pool1d(input: Array, output_size: Any) -> Array:
    """Mean over each of `output_size` nearly equal parts of (N, C, L)."""
    image, back = _as_images(input, 1, "adaptive_avg_pool1d")
    return back(_adaptive(image, (1, *_several(output_size, 1, "output_size", "adaptive_avg_pool1d"))))


def adaptive_avg_pool2d(input: Array, output_size: Any) -> Array:
    """Mean over a grid of about equal parts of (N, C, H, W); None in `output_size` keeps an axis.

    Part i of an axis of n elements cut into m is [floor(i n / m), ceil((i + 1) n / m)).
    """
    image, back = _as_images(input, 2, "adaptive_avg_pool2d")
    return back(_adaptive(image, _sizes_of(output_size, image.shape[2:], "adaptive_avg_pool2d")))


def _adaptive(image: Array, sizes: tuple[int, ...]) -> Array:
    _expect_floats(image, "adaptive_avg_pool")
    height, width = image.shape[2:]
    if sizes == (1, 1):
        return sum_p(image, axis=(2, 3), keepdims=True) * (1 / (height * width) if height * width else math.nan)
    if height % sizes[0] == 0 and width % sizes[1] == 0:
        tile = (height // sizes[0], width // sizes[1])
        none = ((0, 0), (0, 0))
        total = sum_pool2d_p(image, kernel=tile, stride=tile, padding=none, dilation=(1, 1), ceil=False)
        return total * (1 / math.prod(tile))
    rows, columns = (_averaging(n, m, image.dtype) for n, m in zip((height, width), sizes, strict=True))
    return matmul(matmul(rows, image), columns.T)


def _averaging(before: int, after: int, dtype: Any) -> Any:
    """The matrix (after, before) that averages parts of an axis."""
    part = np.arange(after)[:, None]
    place = np.arange(before)
    inside = (place >= part * before // after) & (place < -(-(part + 1) * before // after))
    return (inside / inside.sum(axis=1, keepdims=True)).astype(dtype)


# --- windows as columns ---------------------------------------------------------------------------


@takes_complex
def im2col(input: Array, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Array:
    """Every window of (N, C, H, W) as a column: (N, C kh kw, positions). PyTorch's `F.unfold`."""
    image = _as_images(input, 2, "im2col")[0]
    window = _column_window(kernel_size, dilation, padding, stride, "im2col")
    columns = unfold_p(image, **window)
    return columns if len(input.shape) == 4 else reshape_p(columns, shape=tuple(columns.shape[1:]))


@takes_complex
def col2im(
    input: Array, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Array:
    """Add columns (N, C kh kw, positions) at the windows of an image of `output_size`. PyTorch's `F.fold`."""
    size = _several(output_size, 2, "output_size", "col2im")
    window = _column_window(kernel_size, dilation, padding, stride, "col2im")
    columns = input if len(input.shape) == 3 else reshape_p(input, shape=(1, *input.shape))
    image = fold_p(columns, size=size, **window)
    return image if len(input.shape) == 3 else reshape_p(image, shape=tuple(image.shape[1:]))


def _column_window(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints, op: str) -> dict[str, Any]:
    border = _several(padding, 2, "padding", op)
    return {
        "kernel": _several(kernel, 2, "kernel_size", op),
        "dilation": _several(dilation, 2, "dilation", op),
        "padding": ((border[0], border[0]), (border[1], border[1])),
        "stride": _several(stride, 2, "stride", op),
        "ceil": False,
    }
