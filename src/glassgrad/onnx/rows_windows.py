"""Rows of convolutions, pooling, resizing and recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad.onnx.rows_elementwise import Row
from glassgrad.onnx.rows_shape import reshaped, sliced
from glassgrad.onnx.traced import Step
from glassgrad.onnx.writer import Value, Writer
from glassgrad.ops.resample import Resizing, neighbours

Ints = Sequence[int]
Pads = tuple[tuple[int, int], tuple[int, int]]


def _ends(padding: Pads) -> list[int]:
    return [before for before, _ in padding] + [after for _, after in padding]


def _bordered(w: Writer, x: Value, padding: Sequence[tuple[int, int]], value: float = 0) -> Value:
    """Return images with a border, which may be negative."""
    if not any(map(any, padding)):
        return x
    ends = [0, 0, *(before for before, _ in padding), 0, 0, *(after for _, after in padding)]
    return w.op("Pad", x, w.ints(*ends), w.cast(value, x.dtype))


# --- convolutions ---------------------------------------------------------------------------------


def _conv(
    w: Writer,
    step: Step,
    x: Value,
    weight: Value,
    *,
    stride: Ints,
    padding: Pads,
    dilation: Ints,
    groups: int,
) -> Value:
    x, weight = w.alike((x, weight), step.out.dtype)
    if min(map(min, padding)) < 0:
        x, padding = _bordered(w, x, padding), ((0, 0), (0, 0))
    return w.op(
        "Conv",
        x,
        weight,
        shape=step.out.shape,
        strides=list(stride),
        pads=_ends(padding),
        dilations=list(dilation),
        group=groups,
    )


def _conv_input(
    w: Writer,
    step: Step,
    g: Value,
    weight: Value,
    *,
    size: Ints,
    stride: Ints,
    padding: Pads,
    dilation: Ints,
    groups: int,
) -> Value:
    """A transposed convolution, cropped to the image, with zeros where no window reaches."""
    g, weight = w.alike((g, weight), step.out.dtype)
    kernel, before = w.fixed((weight.shape or ())[2:]), w.fixed((g.shape or ())[2:])
    whole = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(before, stride, dilation, kernel, strict=True)]
    y = w.op("ConvTranspose", g, weight, strides=list(stride), dilations=list(dilation), group=groups)
    after = [extent + low - reach for extent, reach, (low, _) in zip(w.fixed(size), whole, padding, strict=True)]
    cut = [(-low, end) for (low, _), end in zip(padding, after, strict=True)]
    y = _bordered(w, y, cut)
    y.shape = step.out.shape
    return y


# --- pooling --------------------------------------------------------------------------------------


def _as_images(w: Writer, x: Value) -> Value:
    """Return (..., H, W) as (N, 1, H, W), unless it has four axes."""
    return x if x.ndim == 4 else reshaped(w, x, (-1, 1, *(x.shape or ())[-2:]))


def _hanging(
    w: Writer,
    step: Step,
    x: Value,
    kernel: Ints,
    stride: Ints,
    padding: Pads,
    dilation: Ints,
) -> Pads:
    """Return the border, enlarged for windows that reach beyond the end."""
    before, after = (x.shape or ())[-2:], step.out.shape[-2:]
    if not all(isinstance(dim, int) for dim in (*before, *after)):
        return padding
    found = []
    for n, m, k, s, d, (low, _) in zip(w.fixed(before), w.fixed(after), kernel, stride, dilation, padding, strict=True):
        found.append((low, max((m - 1) * s + d * (k - 1) + 1 - n - low, 0)))
    return found[0], found[1]


def _pooled(
    w: Writer,
    step: Step,
    x: Value,
    kernel: Ints,
    stride: Ints,
    padding: Pads,
    dilation: Ints,
) -> tuple[Value, Any]:
    """Return the image, bordered by the lowest number, and the attributes of the windows."""
    padding = _hanging(w, step, x, kernel, stride, padding, dilation)
    attributes: dict[str, Any] = {"kernel_shape": list(kernel), "strides": list(stride), "dilations": list(dilation)}
    if all(end < k for k, ends in zip(kernel, padding, strict=True) for end in ends):
        return _as_images(w, x), {**attributes, "pads": _ends(padding)}
    return _bordered(w, _as_images(w, x), padding, float(np.finfo(x.dtype).min)), attributes


def _max_pool(
    w: Writer,
    step: Step,
    x: Value,
    *,
    kernel: Ints,
    stride: Ints,
    padding: Pads,
    dilation: Ints,
    ceil: bool,
) -> Value:
    image, attributes = _pooled(w, step, x, kernel, stride, padding, dilation)
    return reshaped(w, w.op("MaxPool", image, **attributes), step.out.shape)


def _max_index(
    w: Writer,
    step: Step,
    x: Value,
    _y: Value,
    *,
    kernel: Ints,
    stride: Ints,
    padding: Pads,
    dilation: Ints,
    ceil: bool,
) -> Value:
    image, attributes = _pooled(w, step, x, kernel, stride, padding, dilation)
    if "pads" not in attributes:
        raise w.refused("positions in a border as wide as the window have no operator")
    found = w.ops("MaxPool", [image], [(x.dtype, None), (np.int64, None)], **attributes)[1]
    # ONNX counts positions over all images.
    height, width = w.fixed((x.shape or ())[-2:])
    return reshaped(w, w.op("Mod", found, w.constant(np.int64(height * width))), step.out.shape)


def _sum_pool(
    w: Writer,
    step: Step,
    x: Value,
    *,
    kernel: Ints,
    stride: Ints,
    padding: Pads,
    dilation: Ints,
    ceil: bool,
) -> Value:
    if tuple(dilation) != (1, 1):
        w.needs(19)
    spread = {} if tuple(dilation) == (1, 1) else {"dilations": list(dilation)}
    image = _bordered(w, _as_images(w, x), _hanging(w, step, x, kernel, stride, padding, dilation))
    mean = w.op("AveragePool", image, kernel_shape=list(kernel), strides=list(stride), **spread)
    total = w.op("Mul", mean, w.cast(float(kernel[0] * kernel[1]), x.dtype))
    return reshaped(w, total, step.out.shape)


def _im2col(
    w: Writer,
    step: Step,
    x: Value,
    *,
    kernel: Ints,
    dilation: Ints,
    padding: Pads,
    stride: Ints,
    ceil: bool,
) -> Value:
    """A convolution with one-hot kernels, one for each position of a window and each channel."""
    (channels,) = w.fixed((x.shape or ())[1:2])
    area = kernel[0] * kernel[1]
    ones = np.tile(np.eye(area, dtype=x.dtype).reshape(area, 1, *kernel), (channels, 1, 1, 1))
    y = w.op(
        "Conv", x, w.constant(ones), strides=list(stride), pads=_ends(padding), dilations=list(dilation), group=channels
    )
    return reshaped(w, y, step.out.shape)


def _col2im(
    w: Writer,
    step: Step,
    x: Value,
    *,
    size: Ints,
    kernel: Ints,
    dilation: Ints,
    padding: Pads,
    stride: Ints,
    ceil: bool,
) -> Value:
    return w.op(
        "Col2Im",
        x,
        w.ints(*size),
        w.ints(*kernel),
        shape=step.out.shape,
        strides=list(stride),
        pads=_ends(padding),
        dilations=list(dilation),
    )


def _resample(w: Writer, step: Step, x: Value, *, axis: int, how: Resizing) -> Value:
    """The weighted sum of neighbours along the axis."""
    w.fixed(how[1:3])
    total = None
    for index, weight in neighbours(how):
        part = w.op("Gather", x, w.constant(index.astype(np.int64)), axis=axis)
        if weight is not None:
            beside = weight.astype(x.dtype).reshape(-1, *(1,) * (x.ndim - axis - 1))
            part = w.op("Mul", part, w.constant(beside))
        total = part if total is None else w.op("Add", total, part)
    assert total is not None
    total.shape = step.out.shape
    return total


# --- recurrent layers -----------------------------------------------------------------------------

# The order of ONNX's gates: its i o f c from our i f g o, its z r h from our r z n.
_ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _gates(w: Writer, kind: str, weight: Value) -> Value:
    """Return a weight (gates * hidden, ...) with its gates in ONNX's order; the state_dict keeps ours."""
    order = _ORDER[kind]
    (rows,) = w.fixed((weight.shape or ())[:1])
    n = rows // len(order)
    if len(order) == 1:
        return weight
    parts = [sliced(w, weight, [(0, at * n, (at + 1) * n, 1)]) for at in order]
    return w.op("Concat", *parts, axis=0, shape=weight.shape)


def _swapped(shape: Any) -> Any:
    return None if shape is None else (shape[1], shape[0], *shape[2:])


def _turned(w: Writer, x: Value) -> Value:
    """Swap batch and time."""
    return w.op("Transpose", x, shape=_swapped(x.shape), perm=[1, 0, 2])


def _recurrent(kind: str, states: int) -> Row:
    def row(
        w: Writer,
        step: Step,
        x: Value,
        *rest: Value,
        reverse: bool,
        biased: bool,
        ragged: bool,
        batch_first: bool,
        rectified: bool = False,
    ) -> tuple[Value, ...]:
        before, (w_ih, w_hh, *parts) = rest[:states], rest[states:]
        front = w.ints(0)
        weights = [w.op("Unsqueeze", _gates(w, kind, one), front) for one in (w_ih, w_hh)]
        bias = None
        if biased:
            both = w.op("Concat", *[_gates(w, kind, one) for one in parts[:2]], axis=0)
            bias = w.op("Unsqueeze", both, front)
        lengths = w.cast(parts[-1], np.int32) if ragged else None
        initial = [w.op("Unsqueeze", one, front) for one in before]
        attributes: dict[str, Any] = {"hidden_size": w.fixed((w_hh.shape or ())[1:])[0]}
        if reverse:
            attributes["direction"] = "reverse"
        if kind == "GRU":
            attributes["linear_before_reset"] = 1
        if rectified:
            attributes["activations"] = ["Relu"]
        if batch_first:  # few runtimes know the attribute `layout`
            x = _turned(w, x)
        found = w.ops(kind, [x, *weights, bias, lengths, *initial], [(x.dtype, None)] * (1 + states), **attributes)
        shapes = [one.shape for one in step.outputs]
        y = w.op("Squeeze", found[0], w.ints(1), shape=_swapped(shapes[0]) if batch_first else shapes[0])
        y = _turned(w, y) if batch_first else y
        return y, *[w.op("Squeeze", one, front, shape=shape) for one, shape in zip(found[1:], shapes[1:], strict=True)]

    return row


WINDOWS: dict[str, Row] = {
    "conv2d": _conv,
    "conv2d_input": _conv_input,
    "max_pool2d": _max_pool,
    "max_pool2d_index": _max_index,
    "sum_pool2d": _sum_pool,
    "im2col": _im2col,
    "col2im": _col2im,
    "resample": _resample,
    "lstm": _recurrent("LSTM", 2),
    "gru": _recurrent("GRU", 1),
    "rnn": _recurrent("RNN", 1),
}
