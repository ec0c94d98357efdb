"""The public functions of convolution and unfolding, over any number of axes, with PyTorch's signatures.

The primitives work on two axes. With more, the slices that a window covers along the first axis become channels, so
each position along that axis is a convolution over one axis less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.conv import conv2d_input_p, conv2d_p
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.narrow import beside
from glassgrad.ops.pool import fold_p, unfold_p
from glassgrad.ops.shape import pad_p, permute_p, reshape_p
from glassgrad.ops.strided import overlap_add_p
from glassgrad.ops.strided import unfold_p as slide_p
from glassgrad.ops.vmap import conv_rules as _conv_batching  # noqa: F401 - registers the batching rules of convolutions
from glassgrad.ops.window_arguments import (
    Ints,
    Window,
    as_images,
    conv_window,
    first_and_rest,
    on_images,
    over_axes,
    several,
)

# --- convolution ----------------------------------------------------------------------------------


def _conv(dims: int) -> Callable[..., Array]:
    op = f"conv{dims}d"

    @takes_complex
    def conv(
        input: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Ints = 1,
        padding: Any = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Array:
        """Cross-correlation of (N, C, {sizes}) with `weight` (O, C/groups, {kernel}): shape (N, O, {after}).

        `padding` is a number, one per axis, "same" or "valid".
        {first}' = ({first} + 2 padding - dilation ({window} - 1) - 1) // stride + 1.

        Example:
            >>> import glassgrad as gg
            >>> gg.conv{dims}d(gg.ones(1, 1, {threes}), gg.ones(2, 1, {twos})).shape
            (1, 2, {twos})
        """
        image, back = as_images(input, dims, op)
        kernel = _kernel_of(weight, dims, op)
        window = conv_window(dims, op, kernel, stride, padding, dilation)
        y = _correlated(image, weight if dims > 1 else _as_rows(weight), window, int(groups))
        return back(
            y if bias is None else y + reshape_p(beside(bias, y), shape=(bias.shape[0], *_ONES[: max(dims, 2)]))
        )

    return conv


_ONES = (1, 1, 1)


def _kernel_of(weight: Array, dims: int, op: str) -> tuple[int, ...]:
    if len(weight.shape) != dims + 2:
        raise errors.CONV_WEIGHT(op=op, given=tuple(weight.shape), dims=dims + 2, where=provenance.here())
    return tuple(weight.shape[2:])


def _as_rows(weight: Array) -> Array:
    """Turn kernels of signals into kernels of images of height 1."""
    return reshape_p(weight, shape=(*weight.shape[:2], 1, weight.shape[2]))


class _Along(NamedTuple):
    """The windows along the first axis."""

    kernel: int
    stride: int
    pad: tuple[int, int]
    dilation: int

    @property
    def reach(self) -> int:
        return self.dilation * (self.kernel - 1) + 1


def _parted(window: Window, kernel: int) -> tuple[_Along, Window]:
    first, rest = first_and_rest(window)
    return _Along(kernel, *[along[0] for along in first.values()]), rest


def _correlated(x: Array, weight: Array, window: Window, groups: int) -> Array:
    if len(window["stride"]) == 2:
        return conv2d_p(x, weight, **window, groups=groups)
    outputs, inputs, kernel, *rest = weight.shape
    op, n = f"conv{len(rest) + 1}d", x.shape[0]
    _check_channels(op, x, weight, inputs * groups, groups)
    along, within = _parted(window, kernel)
    images = _slices(x, along, op)
    flat = reshape_p(weight, shape=(outputs, inputs * kernel, *rest))
    y = _correlated(images, flat, within, groups)
    y = reshape_p(y, shape=(n, images.shape[0] // n if n else 0, *y.shape[1:]))
    return permute_p(y, axes=(0, 2, 1, *range(3, 3 + len(rest))))


def _check_channels(op: str, x: Array, weight: Array, channels: int, groups: int) -> None:
    """Check the channels of the original input: the slices have others."""
    if x.shape[1] != channels or weight.shape[0] % groups:
        expected = f"{channels} channels for a weight {tuple(weight.shape)} with groups={groups}"
        raise bad_option(op, "input", tuple(x.shape), expected)


def _slices(x: Array, along: _Along, op: str) -> Array:
    """Gather the slices of each window: (N, C, D, ...) to (N * positions, C * kernel, ...)."""
    n, c, depth, *rest = x.shape
    if any(along.pad):
        depth += sum(along.pad)
        x = pad_p(x, widths=((0, 0), (0, 0), along.pad, *[(0, 0)] * len(rest)), value=0)
    if depth < along.reach:
        raise bad_option(op, "kernel_size", along.kernel, f"windows that fit into {depth} slices")
    windows = slide_p(x, axis=2, size=along.reach, step=along.stride)[..., :: along.dilation]
    count, last = windows.shape[2], 3 + len(rest)
    ordered = permute_p(windows, axes=(0, 2, 1, last, *range(3, last)))
    return reshape_p(ordered, shape=(n * count, c * along.kernel, *rest))


conv1d, conv2d, conv3d = over_axes("conv{}d", _conv)


# --- transposes -----------------------------------------------------------------------------------


def _conv_transpose(dims: int) -> Callable[..., Array]:
    op = f"conv_transpose{dims}d"

    @takes_complex
    def conv_transpose(
        input: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        dilation: Ints = 1,
    ) -> Array:
        """The transpose of `conv{dims}d`: (N, C, {sizes}) with `weight` (C, O/groups, {kernel}) to (N, O, {after}).

        {first}' = ({first} - 1) stride - 2 padding + dilation ({window} - 1) + output_padding + 1.

        Example:
            >>> import glassgrad as gg
            >>> gg.conv_transpose{dims}d(gg.ones(1, 2, {twos}), gg.ones(2, 1, {twos})).shape
            (1, 1, {threes})
        """
        image, back = as_images(input, dims, op)
        kernel = _kernel_of(weight, dims, op)
        before = image.shape[-dims:]
        size, window = _transposed(dims, op, before, kernel, stride, padding, output_padding, dilation)
        y = _spread_back(image, weight if dims > 1 else _as_rows(weight), size, window, int(groups))
        return back(
            y if bias is None else y + reshape_p(beside(bias, y), shape=(bias.shape[0], *_ONES[: max(dims, 2)]))
        )

    return conv_transpose


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
    """Return the sizes of images after the transpose, `before` being those of inputs, and the convolution's windows."""
    steps, spread = several(stride, dims, "stride", op), several(dilation, dims, "dilation", op)
    border, extra = several(padding, dims, "padding", op), several(output_padding, dims, "output_padding", op)
    if any(e >= max(s, d) for e, s, d in zip(extra, steps, spread, strict=True)):
        raise bad_option(op, "output_padding", output_padding, "less than the stride or the dilation")
    size = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, s, p, d, k, e in zip(before, steps, border, spread, kernel, extra, strict=True)
    )
    # The convolution does not read the extra rows at the end.
    pads = tuple((p, p - e) for p, e in zip(border, extra, strict=True))
    window: Window = {"stride": steps, "padding": pads, "dilation": spread}
    return (size, window) if dims > 1 else ((1, *size), on_images(window))


def _spread_back(x: Array, weight: Array, size: tuple[int, ...], window: Window, groups: int) -> Array:
    if len(window["stride"]) == 2:
        return conv2d_input_p(x, weight, size=size, **window, groups=groups)
    inputs, outputs, kernel, *rest = weight.shape
    _check_channels(f"conv_transpose{len(rest) + 1}d", x, weight, inputs, groups)
    along, within = _parted(window, kernel)
    n, c, depth, *before = x.shape
    last = 3 + len(rest)
    images = permute_p(x, axes=(0, 2, 1, *range(3, last)))
    images = reshape_p(images, shape=(n * depth, c, *before))
    flat = reshape_p(weight, shape=(inputs, outputs * kernel, *rest))
    y = _spread_back(images, flat, size[1:], within, groups)
    y = reshape_p(y, shape=(n, depth, outputs * groups, kernel, *size[1:]))
    return _stacked_up(permute_p(y, axes=(0, 2, 1, *range(4, last + 1), 3)), along)


def _stacked_up(y: Array, along: _Along) -> Array:
    """Add up the slices (N, O, D, ..., kernel) at their windows, without the padding."""
    kernel, dilation = along.kernel, along.dilation
    none = ((0, 0),) * len(y.shape)
    if dilation > 1:
        apart = reshape_p(y, shape=(*y.shape, 1))
        apart = pad_p(apart, widths=(*none, (0, dilation - 1)), value=0)
        y = reshape_p(apart, shape=(*y.shape[:-1], kernel * dilation))[..., : along.reach]
    length = (y.shape[2] - 1) * along.stride + along.reach
    total = overlap_add_p(y, axis=2, step=along.stride, length=length)
    before, after = along.pad
    total = total[:, :, before : length - max(after, 0)]
    return pad_p(total, widths=((0, 0), (0, 0), (0, -after), *none[4:]), value=0) if after < 0 else total


conv_transpose1d, conv_transpose2d, conv_transpose3d = over_axes("conv_transpose{}d", _conv_transpose)


# --- windows as columns ---------------------------------------------------------------------------


@takes_complex
def im2col(input: Array, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Array:
    """Every window of (N, C, H, W) as a column: (N, C kh kw, positions). PyTorch's `F.unfold`."""
    image = as_images(input, 2, "im2col")[0]
    window = _column_window(kernel_size, dilation, padding, stride, "im2col")
    columns = unfold_p(image, **window)
    return columns if len(input.shape) == 4 else reshape_p(columns, shape=tuple(columns.shape[1:]))


@takes_complex
def col2im(
    input: Array, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Array:
    """Add columns (N, C kh kw, positions) at the windows of an image of `output_size`. PyTorch's `F.fold`."""
    size = several(output_size, 2, "output_size", "col2im")
    window = _column_window(kernel_size, dilation, padding, stride, "col2im")
    columns = input if len(input.shape) == 3 else reshape_p(input, shape=(1, *input.shape))
    image = fold_p(columns, size=size, **window)
    return image if len(input.shape) == 3 else reshape_p(image, shape=tuple(image.shape[1:]))


def _column_window(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints, op: str) -> dict[str, Any]:
    border = several(padding, 2, "padding", op)
    return {
        "kernel": several(kernel, 2, "kernel_size", op),
        "dilation": several(dilation, 2, "dilation", op),
        "padding": tuple((p, p) for p in border),
        "stride": several(stride, 2, "stride", op),
        "ceil": False,
    }
