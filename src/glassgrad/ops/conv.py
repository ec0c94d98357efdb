"""Convolution (cross-correlation, as in deep learning) in two spatial dimensions, and its transposes.

Three primitives, each linear in both arguments, are closed under transposition, so derivatives of any
order are convolutions again:

=============  ==================  =====================================
primitive      computes            transposes
=============  ==================  =====================================
conv2d         y from x, w         x: conv2d_input, w: conv2d_weight
conv2d_input   x from y, w         y: conv2d,       w: conv2d_weight
conv2d_weight  w from x, y         x: conv2d_input, y: conv2d
=============  ==================  =====================================

Arrays are (N, C, H, W) to the outside. Inside, channels lie innermost: a window is then a few long runs
of memory, so gathering windows (im2col) is a cheap copy and the work is one matrix product, done by BLAS in
blocks that stay in the cache. Results keep that layout behind the usual axis order; NumPy's elementwise
functions carry it on, and the next convolution finds it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops.core import Array, Linear, linear
from glassgrad.ops.samples import S

Shape = tuple[int, ...]
Pair = tuple[int, int]
Pads = tuple[Pair, Pair]

# Elements of windows gathered at a time: about 1 MB of float32, so that the product finds them in the cache.
BLOCK = 1 << 18


class _Plan(NamedTuple):
    """The sizes of one convolution: how y (N, O, *out) is computed from x (N, C, *size)."""

    size: Pair
    kernel: Pair
    out: Pair
    stride: Pair
    padding: Pads
    dilation: Pair
    groups: int

    @property
    def full(self) -> Pair:
        """The size of the input with its padding."""
        (top, bottom), (left, right) = self.padding
        return self.size[0] + top + bottom, self.size[1] + left + right

    @property
    def taps(self) -> list[Pair]:
        """The positions in the kernel."""
        return [(i, j) for i in range(self.kernel[0]) for j in range(self.kernel[1])]

    def reach(self, axis: int) -> int:
        """How far a window reaches along an axis."""
        return self.dilation[axis] * (self.kernel[axis] - 1) + 1

    def view(self, padded: Array, i: int, j: int) -> Array:
        """What the kernel's element (i, j) meets: a strided view of `padded` (N, H, W, C)."""
        parts = []
        for axis, tap in enumerate((i, j)):
            start = tap * self.dilation[axis]
            stop = start + (self.out[axis] - 1) * self.stride[axis] + 1
            parts.append(slice(start, max(stop, start), self.stride[axis]))
        return padded[:, parts[0], parts[1]]


def out_size(size: int, kernel: int, stride: int, pad: Pair, dilation: int, ceil: bool = False) -> int:
    """Number of window positions along one axis."""
    span = size + pad[0] + pad[1] - dilation * (kernel - 1) - 1
    if not ceil:
        return span // stride + 1
    count = -(-span // stride) + 1
    # A window may hang over the end, but has to begin inside the input or its left border.
    return count - 1 if (count - 1) * stride >= size + pad[0] else count


def _plan(size: Shape, kernel: Shape, stride: Pair, padding: Pads, dilation: Pair, groups: int) -> _Plan:
    out = tuple(out_size(size[a], kernel[a], stride[a], padding[a], dilation[a]) for a in (0, 1))
    if min(out) < 0 or (min(out) == 0 and min(size) > 0):
        raise ValueError(
            f"the kernel {kernel[0]}x{kernel[1]} (dilation {dilation}) is larger than the input "
            f"{size[0]}x{size[1]} with its padding {padding}"
        )
    return _Plan((size[0], size[1]), (kernel[0], kernel[1]), (out[0], out[1]), stride, padding, dilation, groups)


def _check_channels(channels: int, outputs: int, weight: Shape, groups: int) -> None:
    if channels != weight[1] * groups:
        expected = f"{weight[1]}" if groups == 1 else f"{weight[1]} * {groups} groups = {weight[1] * groups}"
        raise ValueError(f"the input has {channels} channels, the weight of shape {tuple(weight)} expects {expected}")
    if outputs % groups:
        raise ValueError(f"{outputs} output channels cannot be cut into {groups} groups")


# --- layouts --------------------------------------------------------------------------------------


def pad_last(xp: Any, x: Array, padding: Pads, fill: float = 0) -> Array:
    """(N, C, H, W) to a contiguous (N, H, W, C) with a border; negative widths cut instead."""
    (top, bottom), (left, right) = padding
    if top == bottom == left == right == 0:
        return xp.ascontiguousarray(x.transpose(0, 2, 3, 1))
    n, c, h, w = x.shape
    shape = (n, h + top + bottom, w + left + right, c)
    out = xp.zeros(shape, x.dtype) if fill == 0 else xp.full(shape, fill, x.dtype)
    source = x[:, :, max(-top, 0) : h - max(-bottom, 0), max(-left, 0) : w - max(-right, 0)]
    inner = out[:, max(top, 0) : shape[1] - max(bottom, 0), max(left, 0) : shape[2] - max(right, 0)]
    inner[...] = source.transpose(0, 2, 3, 1)
    return out


def crop_first(padded: Array, padding: Pads) -> Array:
    """Undo `pad_last`: (N, H, W, C) with a border to a view (N, C, H, W) without."""
    (top, bottom), (left, right) = padding
    return padded[:, top : padded.shape[1] - bottom, left : padded.shape[2] - right].transpose(0, 3, 1, 2)


def _channels_last(g: Array) -> Array:
    """The same array with the memory of (N, H, W, C), so that both transposes find it as they want it."""
    return np.ascontiguousarray(g.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) if type(g) is np.ndarray else g


def _windows(xp: Any, padded: Array, plan: _Plan) -> Array:
    """All windows as a view (N, oh, ow, kh, kw, C) of `padded` (N, H, W, C)."""
    n, _, _, c = padded.shape
    sn, sh, sw, sc = padded.strides
    strides = (
        sn, sh * plan.stride[0], sw * plan.stride[1], sh * plan.dilation[0], sw * plan.dilation[1], sc,
    )  # fmt: skip
    return xp.lib.stride_tricks.as_strided(padded, (n, *plan.out, *plan.kernel, c), strides)


class _Gatherer:
    """Copies windows (n, oh, ow, kh, kw, C) into a matrix for BLAS, block after block into one buffer.

    The matrix is (rows, kh kw C), with groups (G, rows, kh kw C/G).
    """

    def __init__(self, xp: Any, windows: Array, groups: int) -> None:
        self.xp = xp
        self.groups = groups
        ow, kh, kw, c = windows.shape[2:]
        # With few channels, runs along the rows of the image are longer than those within a window.
        self.order: Shape = (3, 4, 5, 0, 1, 2) if kw * c < min(16, ow) else (0, 1, 2, 3, 4, 5)
        if groups > 1:
            self.order = (5, 0, 1, 2, 3, 4, 6)
            strides = windows.strides
            shape = (*windows.shape[:5], groups, c // groups)
            strides = (*strides[:5], strides[5] * (c // groups), strides[5])
            windows = xp.lib.stride_tricks.as_strided(windows, shape, strides)
        self.windows = windows
        self.in_place = kh == kw == 1 and groups == 1 and windows.flags.c_contiguous
        self.buffer: Any = None

    def __call__(self, start: int, stop: int) -> Array:
        part = self.windows[start:stop]
        n, oh, ow, kh, kw, *channels = part.shape
        rows, width = n * oh * ow, kh * kw * channels[-1]
        if self.in_place:
            return part.reshape(rows, width)
        source = part.transpose(self.order)
        if self.buffer is None or self.buffer.shape != source.shape:
            self.buffer = self.xp.empty(source.shape, source.dtype)
        self.buffer[...] = source
        if self.groups > 1:
            return self.buffer.reshape(self.groups, rows, width)
        return self.buffer.reshape(rows, width) if self.order[0] == 0 else self.buffer.reshape(width, rows).T


def _blocks(count: int, per_sample: int) -> list[Pair]:
    """Cut `count` samples into blocks (start, stop) of about BLOCK elements."""
    step = max(1, BLOCK // max(1, per_sample))
    return [(start, min(start + step, count)) for start in range(0, count, step)]


def _weight_matrix(xp: Any, w: Array, groups: int) -> Array:
    """(O, C/G, kh, kw) to (kh kw C/G, O), with groups (G, kh kw C/G, O/G)."""
    o, c, kh, kw = w.shape
    if groups == 1:
        return xp.ascontiguousarray(w.transpose(2, 3, 1, 0)).reshape(kh * kw * c, o)
    split = w.reshape(groups, o // groups, c, kh, kw)
    return xp.ascontiguousarray(split.transpose(0, 3, 4, 2, 1)).reshape(groups, kh * kw * c, o // groups)


def _rows(xp: Any, y: Array, groups: int) -> Array:
    """(N, O, oh, ow) to (rows, O), with groups a view (G, rows, O/G)."""
    n, o, oh, ow = y.shape
    flat = xp.ascontiguousarray(y.transpose(0, 2, 3, 1)).reshape(n * oh * ow, o)
    return flat if groups == 1 else flat.reshape(n * oh * ow, groups, o // groups).transpose(1, 0, 2)


def _is_depthwise(w: Shape, groups: int) -> bool:
    return groups > 1 and w[1] == 1


# --- forward --------------------------------------------------------------------------------------


def _conv(xp: Any, x: Array, w: Array, *, stride: Pair, padding: Pads, dilation: Pair, groups: int) -> Array:
    plan = _plan(x.shape[2:], w.shape[2:], stride, padding, dilation, groups)
    _check_channels(x.shape[1], w.shape[0], w.shape, groups)
    padded = pad_last(xp, x, padding)
    dtype = xp.result_type(x.dtype, w.dtype)
    if _is_depthwise(w.shape, groups):
        return _depthwise(xp, padded, w, plan, dtype)
    n, o = x.shape[0], w.shape[0]
    out = xp.empty((n, *plan.out, o), dtype)
    matrix = _weight_matrix(xp, w, groups)
    gather = _Gatherer(xp, _windows(xp, padded, plan), groups)
    for start, stop in _blocks(n, math.prod(plan.out) * math.prod(plan.kernel) * x.shape[1]):
        block = out[start:stop].reshape(-1, o)
        if groups > 1:
            block = block.reshape(-1, groups, o // groups).transpose(1, 0, 2)
        xp.matmul(gather(start, stop), matrix, out=block)
    return out.transpose(0, 3, 1, 2)


def _taps(xp: Any, w: Array, c: int, wide: int) -> Array:
    """Depthwise weights (O, 1, kh, kw) as (kh kw, wide, C, O/C), repeated along the image's row.

    Repeating makes the inner loops as long as a row of the image times its channels.
    """
    taps = w.reshape(c, w.shape[0] // c, -1).transpose(2, 0, 1)[:, None]
    return xp.ascontiguousarray(xp.broadcast_to(taps, (taps.shape[0], wide, *taps.shape[2:])))


def _depthwise(xp: Any, padded: Array, w: Array, plan: _Plan, dtype: Any) -> Array:
    """One input channel a group: a weighted sum of kh*kw shifted images, with nothing to multiply as matrices."""
    n, _, _, c = padded.shape
    several = w.shape[0] // c
    taps = _taps(xp, w, c, plan.out[1])
    out = xp.zeros((n, *plan.out, c, several), dtype)
    per_sample = math.prod(plan.out) * w.shape[0]
    for start, stop in _blocks(n, 4 * per_sample):
        part, block = padded[start:stop], out[start:stop]
        buffer = xp.empty(block.shape, dtype)
        for (i, j), tap in zip(plan.taps, taps, strict=True):
            block += xp.multiply(plan.view(part, i, j)[..., None], tap, out=buffer)
    return out.reshape(n, *plan.out, w.shape[0]).transpose(0, 3, 1, 2)


# --- transposes -----------------------------------------------------------------------------------


def _conv_input(
    xp: Any, g: Array, w: Array, *, size: Pair, stride: Pair, padding: Pads, dilation: Pair, groups: int
) -> Array:
    plan = _plan(size, w.shape[2:], stride, padding, dilation, groups)
    if g.shape[1] != w.shape[0] or tuple(g.shape[2:]) != plan.out:
        raise ValueError(
            f"expected an input with {w.shape[0]} channels of size {plan.out}, "
            f"given {g.shape[1]} of {tuple(g.shape[2:])}"
        )
    if min(padding[0] + padding[1]) < 0:
        return _conv_input_cut(xp, g, w, plan)
    c = w.shape[1] * groups
    depthwise = _is_depthwise(w.shape, groups)
    if not depthwise and groups > 1 and stride == (1, 1):
        return _conv_input_turned(xp, g, w, plan)
    if not depthwise and groups == 1 and stride[1] == 1:
        return _conv_input_by_rows(xp, g, w, plan)
    dtype = xp.result_type(g.dtype, w.dtype)
    # Windows may end before the input does (stride), so that its last rows get nothing.
    padded = xp.zeros((g.shape[0], *plan.full, c), dtype)
    if depthwise:
        _spread_depthwise(xp, padded, g, w, plan)
    else:
        _spread(xp, padded, g, w, plan)
    return crop_first(padded, padding)


def _conv_input_cut(xp: Any, g: Array, w: Array, plan: _Plan) -> Array:
    """Negative padding: rows of the input that the convolution did not see get zeros."""
    seen = [(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(plan.size, plan.padding, strict=True)]
    inner = _conv_input(
        xp, g, w, size=(seen[0][1] - seen[0][0], seen[1][1] - seen[1][0]), stride=plan.stride,
        padding=tuple((max(a, 0), max(b, 0)) for a, b in plan.padding),  # type: ignore[arg-type]  # two pairs
        dilation=plan.dilation, groups=plan.groups,
    )  # fmt: skip
    out = xp.zeros((*inner.shape[:2], *plan.size), inner.dtype)
    out[:, :, slice(*seen[0]), slice(*seen[1])] = inner
    return out


def _conv_input_turned(xp: Any, g: Array, w: Array, plan: _Plan) -> Array:
    """At stride 1 the transpose is the convolution with the kernel turned round, inputs and outputs swapped."""
    o, c, kh, kw = w.shape
    groups = plan.groups
    turned = w.reshape(groups, o // groups, c, kh, kw)[..., ::-1, ::-1].transpose(0, 2, 1, 3, 4)
    turned = turned.reshape(groups * c, o // groups, kh, kw)
    (top, bottom), (left, right) = plan.padding
    high, wide = plan.reach(0) - 1, plan.reach(1) - 1
    padding = ((high - top, high - bottom), (wide - left, wide - right))
    return _conv(xp, g, turned, stride=(1, 1), padding=padding, dilation=plan.dilation, groups=groups)


def _conv_input_by_rows(xp: Any, g: Array, w: Array, plan: _Plan) -> Array:
    """At stride 1 along rows: windows are gathered along the rows only, and kernel rows added up afterwards.

    Against gathering whole windows this copies kh times less, and the product has kh times more columns,
    which BLAS likes better than the few channels of an early layer.
    """
    o, c, kh, kw = w.shape
    wide = plan.reach(1) - 1
    left, right = plan.padding[1]
    n, width = g.shape[0], plan.size[1]
    padded = pad_last(xp, g, ((0, 0), (wide - left, wide - right)))
    along = plan._replace(kernel=(1, kw), out=(plan.out[0], width), stride=(1, 1))
    gather = _Gatherer(xp, _windows(xp, padded, along), 1)
    # Row (j, o) of the matrix meets what lies j steps to the right, so the kernel is turned along j.
    matrix = xp.ascontiguousarray(w[:, :, :, ::-1].transpose(3, 0, 2, 1)).reshape(kw * o, kh * c)
    # Few channels go outermost, to keep the runs that are added up long.
    channels_first = c < 16 and c < width
    dtype = xp.result_type(g.dtype, w.dtype)
    out = xp.zeros((c, n, plan.full[0], width) if channels_first else (n, plan.full[0], width, c), dtype)
    for start, stop in _blocks(n, plan.out[0] * width * max(kw * o, kh * c)):
        columns = gather(start, stop)
        if channels_first:
            rows = (matrix.T @ columns.T).reshape(kh, c, stop - start, plan.out[0], width)
            target = out[:, start:stop]
        else:
            rows = (columns @ matrix).reshape(stop - start, plan.out[0], width, kh, c)
            target = out[start:stop]
        for i in range(kh):
            first = i * plan.dilation[0]
            reached = slice(first, first + (plan.out[0] - 1) * plan.stride[0] + 1, plan.stride[0])
            if channels_first:
                target[:, :, reached] += rows[i]
            else:
                target[:, reached] += rows[:, :, :, i]
    top, bottom = plan.padding[0]
    if channels_first:
        return out[:, :, top : plan.full[0] - bottom].transpose(1, 0, 2, 3)
    return out[:, top : plan.full[0] - bottom].transpose(0, 3, 1, 2)


def _spread(xp: Any, padded: Array, g: Array, w: Array, plan: _Plan) -> None:
    """Add every cotangent times the kernel where its window was: the product, then col2im."""
    groups, c = plan.groups, padded.shape[3]
    matrix = _weight_matrix(xp, w, groups).swapaxes(-1, -2)
    rows = _rows(xp, g, groups)
    positions = math.prod(plan.out)
    for start, stop in _blocks(g.shape[0], positions * math.prod(plan.kernel) * c):
        shape = (stop - start, *plan.out, *plan.kernel)
        columns = rows[..., start * positions : stop * positions, :] @ matrix
        if groups > 1:
            columns = columns.reshape(groups, *shape, c // groups).transpose(1, 2, 3, 4, 5, 0, 6)
        columns = columns.reshape(*shape, c)
        target = padded[start:stop]
        for i, j in plan.taps:
            plan.view(target, i, j)[...] += columns[:, :, :, i, j]


def _spread_depthwise(xp: Any, padded: Array, g: Array, w: Array, plan: _Plan) -> None:
    n, c = padded.shape[0], padded.shape[3]
    several = w.shape[0] // c
    taps = _taps(xp, w, c, plan.out[1])
    last = _rows(xp, g, 1).reshape(n, *plan.out, c, several)
    for start, stop in _blocks(n, 4 * math.prod(plan.out) * w.shape[0]):
        part, target = last[start:stop], padded[start:stop]
        buffer = xp.empty(part.shape, padded.dtype)
        for (i, j), tap in zip(plan.taps, taps, strict=True):
            xp.multiply(part, tap, out=buffer)
            plan.view(target, i, j)[...] += buffer[..., 0] if several == 1 else buffer.sum(-1)


def _conv_weight(
    xp: Any, x: Array, g: Array, *, kernel: Pair, stride: Pair, padding: Pads, dilation: Pair, groups: int
) -> Array:
    plan = _plan(x.shape[2:], kernel, stride, padding, dilation, groups)
    n, c, o = x.shape[0], x.shape[1], g.shape[1]
    shape = (o, c // groups, *kernel)
    padded = pad_last(xp, x, padding)
    dtype = xp.result_type(x.dtype, g.dtype)
    if _is_depthwise(shape, groups):
        return _depthwise_weight(xp, padded, g, plan, dtype).reshape(shape)
    lead = () if groups == 1 else (groups,)
    total = xp.zeros((*lead, o // groups, math.prod(kernel) * shape[1]), dtype)
    part = xp.empty(total.shape, dtype)
    gather = _Gatherer(xp, _windows(xp, padded, plan), groups)
    rows = _rows(xp, g, groups).swapaxes(-1, -2)
    positions = math.prod(plan.out)
    for start, stop in _blocks(n, positions * math.prod(kernel) * c):
        total += xp.matmul(rows[..., start * positions : stop * positions], gather(start, stop), out=part)
    # (G, O/G, kh, kw, C/G), the groups and their outputs in order
    return xp.ascontiguousarray(total.reshape(o, *kernel, shape[1]).transpose(0, 3, 1, 2))


def _depthwise_weight(xp: Any, padded: Array, g: Array, plan: _Plan, dtype: Any) -> Array:
    """(C, O/C, kh kw): shifted images times g, added up over long rows first."""
    n, c = padded.shape[0], padded.shape[3]
    last = _rows(xp, g, 1).reshape(n, *plan.out, c, -1)
    total = xp.zeros((len(plan.taps), plan.out[1], c, last.shape[-1]), dtype)
    for start, stop in _blocks(n, 4 * math.prod(last.shape[1:])):
        source, part = padded[start:stop], last[start:stop]
        buffer = xp.empty(part.shape, dtype)
        for at, (i, j) in enumerate(plan.taps):
            xp.multiply(plan.view(source, i, j)[..., None], part, out=buffer)
            total[at] += buffer.sum(axis=(0, 1))
    return xp.ascontiguousarray(total.sum(axis=1).transpose(1, 2, 0))


# --- entries --------------------------------------------------------------------------------------


def _conv_shape(x: Any, w: Any, *, stride: Pair, padding: Pads, dilation: Pair, groups: int) -> Shape:
    _check_channels(x.shape[1], w.shape[0], w.shape, groups)
    return (x.shape[0], w.shape[0], *_plan(x.shape[2:], w.shape[2:], stride, padding, dilation, groups).out)


def _settings(stride: Pair, padding: Pads, dilation: Pair, groups: int) -> dict[str, Any]:
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


_PLAIN = _settings((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
_PADDED = _settings((1, 1), ((1, 1), (0, 2)), (1, 1), 1)
_STRIDED = _settings((2, 1), ((1, 0), (1, 1)), (1, 2), 1)
_GROUPED = _settings((1, 2), ((0, 0), (1, 1)), (1, 1), 2)
_CUT = _settings((2, 1), ((1, -1), (0, 0)), (1, 1), 1)
_DEPTHWISE = _settings((2, 1), ((1, 1), (0, 0)), (1, 1), 2)

conv2d_p: Linear = linear(
    "conv2d", _conv,
    (lambda g, x, w, **p: conv2d_input_p(g, w, size=tuple(x.shape[2:]), **p),
     lambda g, x, w, **p: conv2d_weight_p(x, g, kernel=tuple(w.shape[2:]), **p)),
    saves="x", formula="y[n,o,i,j] = sum x[n,c,s i + d a - p, s j + d b - p] w[o,c,a,b]",
    derivative="g spread by the kernel, windows of x times g", shape=_conv_shape,
    samples=(S((2, 2, 4, 3), (3, 2, 2, 2), **_PLAIN), S((1, 1, 3, 4), (2, 1, 3, 2), **_PADDED),
             S((1, 2, 4, 4), (2, 2, 3, 2), **_STRIDED), S((1, 4, 3, 4), (4, 2, 2, 2), **_GROUPED),
             S((1, 2, 4, 3), (4, 1, 2, 2), **_DEPTHWISE)),
)  # fmt: skip


def _conv_vjp(g: Array, needs: Sequence[bool], y: Any, x: Array, w: Array, **p: Any) -> list[Array | None]:
    """Both transposes, which share the layout of g."""
    if all(needs):
        g = _channels_last(g)
    rules = conv2d_p.transpose
    return [rule(g, x, w, **p) if needed and rule else None for rule, needed in zip(rules, needs, strict=True)]


conv2d_p.vjps, conv2d_p.joint_vjp = None, _conv_vjp
conv2d_input_p: Linear = linear(
    "conv2d_input", _conv_input,
    (lambda c, g, w, *, size, **p: conv2d_p(c, w, **p),
     lambda c, g, w, *, size, **p: conv2d_weight_p(c, g, kernel=tuple(w.shape[2:]), **p)),
    saves="x", formula="the transpose of conv2d in x: a transposed convolution",
    derivative="conv2d(g, w), windows of g times x",
    shape=lambda g, w, *, size, groups, **p: (g.shape[0], w.shape[1] * groups, *size),
    samples=(S((2, 3, 3, 2), (3, 2, 2, 2), size=(4, 3), **_PLAIN),
             S((1, 2, 2, 2), (2, 2, 3, 2), size=(4, 2), **_STRIDED),
             S((1, 9, 3, 2), (9, 2, 2, 2), size=(4, 3), **_PLAIN),
             S((1, 2, 2, 2), (2, 1, 2, 2), size=(4, 3), **_CUT),
             S((1, 4, 2, 3), (4, 2, 2, 2), size=(3, 4), **_GROUPED),
             S((1, 4, 3, 2), (4, 1, 2, 2), size=(4, 3), **_DEPTHWISE)),
)  # fmt: skip
conv2d_weight_p: Linear = linear(
    "conv2d_weight", _conv_weight,
    (lambda c, x, g, *, kernel, **p: conv2d_input_p(g, c, size=tuple(x.shape[2:]), **p),
     lambda c, x, g, *, kernel, **p: conv2d_p(x, c, **p)),
    saves="x", formula="the transpose of conv2d in w", derivative="g as a kernel, transposed and plain",
    shape=lambda x, g, *, kernel, groups, **p: (g.shape[1], x.shape[1] // groups, *kernel),
    samples=(S((2, 2, 4, 3), (2, 3, 3, 2), kernel=(2, 2), **_PLAIN),
             S((1, 4, 3, 4), (1, 4, 2, 3), kernel=(2, 2), **_GROUPED),
             S((1, 2, 4, 3), (1, 4, 3, 2), kernel=(2, 2), **_DEPTHWISE)),
)  # fmt: skip
