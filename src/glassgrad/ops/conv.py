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

BLAS multiplies gathered windows (`ops/kernels/windows.py`). Results have the usual axis order, but their channels are
innermost in memory. NumPy's elementwise functions keep this layout for the next convolution.
"""

from __future__ import annotations

import functools
import math
import operator
from types import ModuleType
from typing import Any

from glassgrad.ops.core import Array, Linear, linear
from glassgrad.ops.kernels import native, parallel
from glassgrad.ops.kernels.products import matmul
from glassgrad.ops.kernels.windows import ALL, Gatherer, Images, Pads, Pair, Plan, Shape, blocks, plan_of
from glassgrad.ops.samples import S

# From this many positions on, an image's product with the cotangent is large enough to run on its own.
_MANY = 64

# NumPy's nanoseconds for one multiply-add, and for transposing or gathering one element.
_NS_A_PRODUCT, _NS_A_COPY = 0.05, 1.0


def _check_channels(channels: int, outputs: int, weight: Shape, groups: int) -> None:
    if channels != weight[1] * groups:
        expected = f"{weight[1]}" if groups == 1 else f"{weight[1]} * {groups} groups = {weight[1] * groups}"
        raise ValueError(f"the input has {channels} channels, the weight of shape {tuple(weight)} expects {expected}")
    if outputs % groups:
        raise ValueError(f"{outputs} output channels cannot be cut into {groups} groups")


def _cropped(padded: Array, padding: Pads) -> Array:
    """View padded (N, H, W, C) as (N, C, H, W) without the padding."""
    (top, bottom), (left, right) = padding
    return padded[:, top : padded.shape[1] - bottom, left : padded.shape[2] - right].transpose(0, 3, 1, 2)


def _weight_matrix(xp: ModuleType, w: Array, groups: int) -> Array:
    """(O, C/G, kh, kw) to (kh kw C/G, O), with groups (G, kh kw C/G, O/G)."""
    o, c, kh, kw = w.shape
    if groups == 1:
        return xp.ascontiguousarray(w.transpose(2, 3, 1, 0)).reshape(kh * kw * c, o)
    split = w.reshape(groups, o // groups, c, kh, kw)
    return xp.ascontiguousarray(split.transpose(0, 3, 4, 2, 1)).reshape(groups, kh * kw * c, o // groups)


def _rows(xp: ModuleType, y: Array, groups: int) -> Array:
    """(N, O, oh, ow) to (rows, O), with groups a view (G, rows, O/G)."""
    n, o, oh, ow = y.shape
    flat = xp.ascontiguousarray(y.transpose(0, 2, 3, 1)).reshape(n * oh * ow, o)
    return flat if groups == 1 else flat.reshape(n * oh * ow, groups, o // groups).transpose(1, 0, 2)


def _is_depthwise(w: Shape, groups: int) -> bool:
    return groups > 1 and w[1] == 1


def _compiled(op: str, arrays: tuple[Array, Array], sizes: tuple[int, int, int], plan: Plan) -> Array | None:
    """The result of native code, or None if the work is too small; `sizes` are images, channels and outputs."""
    n, c, o = sizes
    windows = n * math.prod(plan.out) * math.prod(plan.kernel) * c
    copied = windows + n * (c * math.prod(plan.size) + o * math.prod(plan.out))
    work = _NS_A_PRODUCT * windows * o / plan.groups + _NS_A_COPY * copied
    if not native.pays(native.WINDOWS * work):
        return None
    shape, own = {
        "conv2d": ((n, o, *plan.out), {}),
        "conv2d_input": ((n, c, *plan.size), {"size": plan.size}),
        "conv2d_weight": ((o, c // plan.groups, *plan.kernel), {"kernel": plan.kernel}),
    }[op]
    params = {**own, **_settings(plan.stride, plan.padding, plan.dilation, plan.groups)}
    return native.result(op, arrays, shape, params)


# --- forward --------------------------------------------------------------------------------------


def _conv(xp: ModuleType, x: Array, w: Array, *, stride: Pair, padding: Pads, dilation: Pair, groups: int) -> Array:
    plan = plan_of(x.shape[2:], w.shape[2:], stride, padding, dilation, groups)
    _check_channels(x.shape[1], w.shape[0], w.shape, groups)
    dtype = xp.result_type(x.dtype, w.dtype)
    n, o = x.shape[0], w.shape[0]
    ready = _compiled("conv2d", (x, w), (n, x.shape[1], o), plan)
    if ready is not None:
        return ready
    if _is_depthwise(w.shape, groups):
        return _depthwise(xp, x, w, plan, dtype)
    out = xp.empty((n, *plan.out, o), dtype)
    matrix = _weight_matrix(xp, w, groups)
    windows = math.prod(plan.out) * math.prod(plan.kernel) * x.shape[1]

    def work(first: int, last: int) -> None:
        gather = Gatherer(xp, x, plan)
        for start, stop in blocks(first, last, windows):
            block = out[start:stop].reshape(-1, o)
            if groups > 1:
                block = block.reshape(-1, groups, o // groups).transpose(1, 0, 2)
            xp.matmul(gather(start, stop), matrix, out=block)

    parallel.shares.run(work, n, n * windows * o // groups)
    return out.transpose(0, 3, 1, 2)


def _taps(xp: ModuleType, w: Array, c: int, wide: int) -> Array:
    """Depthwise weights (O, 1, kh, kw) as (kh kw, wide, C, O/C), repeated along the image's row.

    Repeating makes the inner loops as long as a row of the image times its channels.
    """
    taps = w.reshape(c, w.shape[0] // c, -1).transpose(2, 0, 1)[:, None]
    return xp.ascontiguousarray(xp.broadcast_to(taps, (taps.shape[0], wide, *taps.shape[2:])))


def _depthwise(xp: ModuleType, x: Array, w: Array, plan: Plan, dtype: Any) -> Array:
    """One input channel per group: a weighted sum of kh*kw shifted images, without a matrix product."""
    n, c = x.shape[:2]
    images = Images(xp, x, plan.padding)
    several = w.shape[0] // c
    taps = _taps(xp, w, c, plan.out[1])
    out = xp.zeros((n, *plan.out, c, several), dtype)
    per_sample = math.prod(plan.out) * w.shape[0]
    for start, stop in blocks(0, n, 4 * per_sample):
        part, block = images(start, stop), out[start:stop]
        buffer = xp.empty(block.shape, dtype)
        for (i, j), tap in zip(plan.taps, taps, strict=True):
            block += xp.multiply(plan.at(part, (i, j), ALL)[..., None], tap, out=buffer)
    return out.reshape(n, *plan.out, w.shape[0]).transpose(0, 3, 1, 2)


# --- transposes -----------------------------------------------------------------------------------


def _conv_input(
    xp: ModuleType, g: Array, w: Array, *, size: Pair, stride: Pair, padding: Pads, dilation: Pair, groups: int
) -> Array:
    plan = plan_of(size, w.shape[2:], stride, padding, dilation, groups)
    if g.shape[1] != w.shape[0] or tuple(g.shape[2:]) != plan.out:
        raise ValueError(
            f"expected an input with {w.shape[0]} channels of size {plan.out}, "
            f"given {g.shape[1]} of {tuple(g.shape[2:])}"
        )
    if min(padding[0] + padding[1]) < 0:
        return _conv_input_cut(xp, g, w, plan)
    c = w.shape[1] * groups
    depthwise = _is_depthwise(w.shape, groups)
    ready = _compiled("conv2d_input", (g, w), (g.shape[0], c, w.shape[0]), plan)
    if ready is not None:
        return ready
    if not depthwise and groups > 1 and stride == (1, 1):
        return _conv_input_turned(xp, g, w, plan)
    if not depthwise and groups == 1 and stride[1] == 1:
        return _conv_input_by_rows(xp, g, w, plan)
    dtype = xp.result_type(g.dtype, w.dtype)
    # With a stride, the last windows may end before the input; its last rows get zeros.
    padded = xp.zeros((g.shape[0], *plan.full, c), dtype)
    if depthwise:
        _add_windows_depthwise(xp, padded, g, w, plan)
    else:
        _add_windows(xp, padded, g, w, plan)
    return _cropped(padded, padding)


def _conv_input_cut(xp: ModuleType, g: Array, w: Array, plan: Plan) -> Array:
    """Negative padding: cropped rows and columns of the input get zeros."""
    seen = [(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(plan.size, plan.padding, strict=True)]
    inner = _conv_input(
        xp,
        g,
        w,
        size=(seen[0][1] - seen[0][0], seen[1][1] - seen[1][0]),
        stride=plan.stride,
        padding=tuple((max(a, 0), max(b, 0)) for a, b in plan.padding),  # type: ignore[arg-type]  # two pairs
        dilation=plan.dilation,
        groups=plan.groups,
    )
    out = xp.zeros((*inner.shape[:2], *plan.size), inner.dtype)
    out[:, :, slice(*seen[0]), slice(*seen[1])] = inner
    return out


def _conv_input_turned(xp: ModuleType, g: Array, w: Array, plan: Plan) -> Array:
    """At stride 1 the transpose is the convolution with the flipped kernel, inputs and outputs swapped."""
    o, c, kh, kw = w.shape
    groups = plan.groups
    turned = w.reshape(groups, o // groups, c, kh, kw)[..., ::-1, ::-1].transpose(0, 2, 1, 3, 4)
    turned = turned.reshape(groups * c, o // groups, kh, kw)
    (top, bottom), (left, right) = plan.padding
    high, wide = plan.reach(0) - 1, plan.reach(1) - 1
    padding = ((high - top, high - bottom), (wide - left, wide - right))
    return _conv(xp, g, turned, stride=(1, 1), padding=padding, dilation=plan.dilation, groups=groups)


def _conv_input_by_rows(xp: ModuleType, g: Array, w: Array, plan: Plan) -> Array:
    """At stride 1 along rows, gather windows along the rows only and add up kernel rows afterwards.

    Compared with gathering whole windows, this copies kh times less. The product has kh times more columns, which BLAS
    multiplies faster than the few channels of an early layer.
    """
    o, c, kh, kw = w.shape
    wide = plan.reach(1) - 1
    left, right = plan.padding[1]
    n, width = g.shape[0], plan.size[1]
    border = ((0, 0), (wide - left, wide - right))
    along = plan._replace(kernel=(1, kw), out=(plan.out[0], width), stride=(1, 1), padding=border)
    # Row (j, o) of the matrix multiplies the element j steps to the right, so the kernel is flipped along j.
    matrix = xp.ascontiguousarray(w[:, :, :, ::-1].transpose(3, 0, 2, 1)).reshape(kw * o, kh * c)
    # Few channels go outermost, to keep the inner loops of the additions long.
    channels_first = c < 16 and c < width
    dtype = xp.result_type(g.dtype, w.dtype)
    out = xp.empty((c, n, plan.size[0], width) if channels_first else (n, plan.size[0], width, c), dtype)
    reach = _reached_rows(plan)

    def work(first: int, last: int) -> None:
        gather = Gatherer(xp, g, along)
        for start, stop in blocks(first, last, plan.out[0] * width * max(kw * o, kh * c)):
            columns = gather(start, stop)
            if channels_first:
                rows = (matrix.T @ columns.T).reshape(kh, c, stop - start, plan.out[0], width)
                parts = [rows[i].transpose(2, 0, 1, 3) for i in range(kh)]
                target = out[:, start:stop].transpose(2, 0, 1, 3)
            else:
                rows = (columns @ matrix).reshape(stop - start, plan.out[0], width, kh, c)
                parts, target = [rows[:, :, :, i].swapaxes(0, 1) for i in range(kh)], out[start:stop].swapaxes(0, 1)
            _add_rows(parts, target, reach)

    parallel.shares.run(work, n, n * plan.out[0] * width * matrix.size)
    return out.transpose(1, 0, 2, 3) if channels_first else out.transpose(0, 3, 1, 2)


def _reached_rows(plan: Plan) -> list[tuple[slice, slice]]:
    """For every row of the kernel, the rows of the output and the rows of the input that it connects."""
    found = []
    for i in range(plan.kernel[0]):
        step, (first, last) = plan.stride[0], plan.inside(0, i)
        begin = i * plan.dilation[0] - plan.padding[0][0] + first * step
        found.append((slice(first, last), slice(begin, max(begin, begin + (last - first - 1) * step + 1), step)))
    return found


def _add_rows(parts: list[Array], target: Array, reach: list[tuple[slice, slice]]) -> None:
    """target[row] = sum of the parts that reach the row; rows are the leading axis."""
    whole = next((at for at, (_, rows) in enumerate(reach) if rows == slice(0, len(target), 1)), None)
    if whole is None:
        target[...] = 0
    else:
        target[...] = parts[whole][reach[whole][0]]
    for at, (part, (outputs, rows)) in enumerate(zip(parts, reach, strict=True)):
        if at != whole:
            target[rows] += part[outputs]


def _add_windows(xp: ModuleType, padded: Array, g: Array, w: Array, plan: Plan) -> None:
    """Add every cotangent times the kernel at its window: a product, then col2im."""
    groups, c = plan.groups, padded.shape[3]
    matrix = _weight_matrix(xp, w, groups).swapaxes(-1, -2)
    positions = math.prod(plan.out)
    for start, stop in blocks(0, g.shape[0], positions * math.prod(plan.kernel) * c):
        shape = (stop - start, *plan.out, *plan.kernel)
        columns = matmul(_rows(xp, g[start:stop], groups), matrix)
        if groups > 1:
            columns = columns.reshape(groups, *shape, c // groups).transpose(1, 2, 3, 4, 5, 0, 6)
        columns = columns.reshape(*shape, c)
        target = padded[start:stop]
        for i, j in plan.taps:
            plan.at(target, (i, j), ALL)[...] += columns[:, :, :, i, j]


def _add_windows_depthwise(xp: ModuleType, padded: Array, g: Array, w: Array, plan: Plan) -> None:
    n, c = padded.shape[0], padded.shape[3]
    several = w.shape[0] // c
    taps = _taps(xp, w, c, plan.out[1])
    for start, stop in blocks(0, n, 4 * math.prod(plan.out) * w.shape[0]):
        part, target = _rows(xp, g[start:stop], 1).reshape(-1, *plan.out, c, several), padded[start:stop]
        buffer = xp.empty(part.shape, padded.dtype)
        for (i, j), tap in zip(plan.taps, taps, strict=True):
            xp.multiply(part, tap, out=buffer)
            plan.at(target, (i, j), ALL)[...] += buffer[..., 0] if several == 1 else buffer.sum(-1)


def _conv_weight(
    xp: ModuleType, x: Array, g: Array, *, kernel: Pair, stride: Pair, padding: Pads, dilation: Pair, groups: int
) -> Array:
    plan = plan_of(x.shape[2:], kernel, stride, padding, dilation, groups)
    n, c, o = x.shape[0], x.shape[1], g.shape[1]
    shape = (o, c // groups, *kernel)
    dtype = xp.result_type(x.dtype, g.dtype)
    ready = _compiled("conv2d_weight", (x, g), (n, c, o), plan)
    if ready is not None:
        return ready
    if _is_depthwise(shape, groups):
        return _depthwise_weight(xp, x, g, plan, dtype).reshape(shape)
    if groups == 1 and stride[0] == 1 and math.prod(plan.out) >= _MANY and kernel[1] * c >= 16:
        return _conv_weight_by_rows(xp, x, g, plan, dtype)
    lead = () if groups == 1 else (groups,)
    windows = math.prod(plan.out) * math.prod(kernel) * c
    sums: dict[int, Array] = {}

    def work(first: int, last: int) -> None:
        total = xp.zeros((*lead, o // groups, math.prod(kernel) * shape[1]), dtype)
        part = xp.empty(total.shape, dtype)
        gather = Gatherer(xp, x, plan)
        for start, stop in blocks(first, last, windows):
            rows = _rows(xp, g[start:stop], groups).swapaxes(-1, -2)
            total += xp.matmul(rows, gather(start, stop), out=part)
        sums[first] = total

    parallel.shares.run(work, n, n * windows * o // groups)
    total = _added_up(sums)
    # (G, O/G, kh, kw, C/G), the groups and their outputs in order
    return xp.ascontiguousarray(total.reshape(o, *kernel, shape[1]).transpose(0, 3, 1, 2))


def _conv_weight_by_rows(xp: ModuleType, x: Array, g: Array, plan: Plan, dtype: Any) -> Array:
    """At stride 1 along columns, reuse the windows along the rows for every kernel row, with a shift.

    Compared with gathering whole windows this copies kh times less, and g keeps its memory layout.
    """
    n, c, o = x.shape[0], x.shape[1], g.shape[1]
    (oh, ow), (kh, kw), high = plan.out, plan.kernel, plan.full[0]
    along = plan._replace(kernel=(1, kw), out=(high, ow))
    inner = g.transpose(0, 2, 3, 1)
    rows = inner.reshape(n, oh * ow, o).swapaxes(1, 2) if inner.flags.c_contiguous else g.reshape(n, o, oh * ow)
    sums: dict[int, Array] = {}

    def work(first: int, last: int) -> None:
        total = xp.zeros((kh, o, kw * c), dtype)
        gather = Gatherer(xp, x, along)
        for start, stop in blocks(first, last, high * ow * kw * c):
            columns = gather(start, stop).reshape(stop - start, high, ow * kw * c)
            for i in range(kh):
                moved = columns[:, i * plan.dilation[0] : i * plan.dilation[0] + oh]
                total[i] += (rows[start:stop] @ moved.reshape(stop - start, oh * ow, kw * c)).sum(0)
        sums[first] = total

    parallel.shares.run(work, n, n * oh * ow * kh * kw * c * o)
    return xp.ascontiguousarray(_added_up(sums).reshape(kh, o, kw, c).transpose(1, 3, 0, 2))


def _added_up(sums: dict[int, Array]) -> Array:
    """The sum over the shares in the order of the samples, independent of which finished first."""
    total: Array = functools.reduce(operator.iadd, (sums[first] for first in sorted(sums)))
    return total


def _depthwise_weight(xp: ModuleType, x: Array, g: Array, plan: Plan, dtype: Any) -> Array:
    """(C, O/C, kh, kw): shifted images times g, added up over long rows first."""
    n, c = x.shape[:2]
    several = g.shape[1] // c
    images = Images(xp, x, plan.padding)
    total = xp.zeros((len(plan.taps), plan.out[1], c, several), dtype)
    for start, stop in blocks(0, n, 4 * math.prod(plan.out) * g.shape[1]):
        source, part = images(start, stop), _rows(xp, g[start:stop], 1).reshape(-1, *plan.out, c, several)
        buffer = xp.empty(part.shape, dtype)
        for at, (i, j) in enumerate(plan.taps):
            xp.multiply(plan.at(source, (i, j), ALL)[..., None], part, out=buffer)
            total[at] += buffer.sum(axis=(0, 1))
    return xp.ascontiguousarray(total.sum(axis=1).transpose(1, 2, 0))


# --- entries --------------------------------------------------------------------------------------


def _conv_shape(x: Array, w: Array, *, stride: Pair, padding: Pads, dilation: Pair, groups: int) -> Shape:
    _check_channels(x.shape[1], w.shape[0], w.shape, groups)
    return (x.shape[0], w.shape[0], *plan_of(x.shape[2:], w.shape[2:], stride, padding, dilation, groups).out)


def _settings(stride: Pair, padding: Pads, dilation: Pair, groups: int) -> dict[str, Any]:
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


_PLAIN = _settings((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
_PADDED = _settings((1, 1), ((1, 1), (0, 2)), (1, 1), 1)
_STRIDED = _settings((2, 1), ((1, 0), (1, 1)), (1, 2), 1)
_GROUPED = _settings((1, 2), ((0, 0), (1, 1)), (1, 1), 2)
_CUT = _settings((2, 1), ((1, -1), (0, 0)), (1, 1), 1)
_DEPTHWISE = _settings((2, 1), ((1, 1), (0, 0)), (1, 1), 2)

conv2d_p: Linear = linear(
    "conv2d",
    _conv,
    (
        lambda g, x, w, **p: conv2d_input_p(g, w, size=tuple(x.shape[2:]), **p),
        lambda g, x, w, **p: conv2d_weight_p(x, g, kernel=tuple(w.shape[2:]), **p),
    ),
    saves="x",
    shape=_conv_shape,
)
conv2d_p.describe(
    "y[n,o,i,j] = sum x[n,c,s i + d a - p, s j + d b - p] w[o,c,a,b]", "g spread by the kernel, windows of x times g"
)
conv2d_p.samples = [
    S((2, 2, 4, 3), (3, 2, 2, 2), **_PLAIN),
    S((1, 1, 3, 4), (2, 1, 3, 2), **_PADDED),
    S((1, 2, 4, 4), (2, 2, 3, 2), **_STRIDED),
    S((1, 4, 3, 4), (4, 2, 2, 2), **_GROUPED),
    S((1, 2, 4, 3), (4, 1, 2, 2), **_DEPTHWISE),
]

conv2d_input_p: Linear = linear(
    "conv2d_input",
    _conv_input,
    (
        lambda c, g, w, *, size, **p: conv2d_p(c, w, **p),
        lambda c, g, w, *, size, **p: conv2d_weight_p(c, g, kernel=tuple(w.shape[2:]), **p),
    ),
    saves="x",
    shape=lambda g, w, *, size, groups, **p: (g.shape[0], w.shape[1] * groups, *size),
)
conv2d_input_p.describe("the transpose of conv2d in x: a transposed convolution", "conv2d(g, w), windows of g times x")
conv2d_input_p.samples = [
    S((2, 3, 3, 2), (3, 2, 2, 2), size=(4, 3), **_PLAIN),
    S((1, 2, 2, 2), (2, 2, 3, 2), size=(4, 2), **_STRIDED),
    S((1, 9, 3, 2), (9, 2, 2, 2), size=(4, 3), **_PLAIN),
    S((1, 2, 2, 2), (2, 1, 2, 2), size=(4, 3), **_CUT),
    S((1, 4, 2, 3), (4, 2, 2, 2), size=(3, 4), **_GROUPED),
    S((1, 4, 3, 2), (4, 1, 2, 2), size=(4, 3), **_DEPTHWISE),
]
conv2d_weight_p: Linear = linear(
    "conv2d_weight",
    _conv_weight,
    (
        lambda c, x, g, *, kernel, **p: conv2d_input_p(g, c, size=tuple(x.shape[2:]), **p),
        lambda c, x, g, *, kernel, **p: conv2d_p(x, c, **p),
    ),
    saves="x",
    shape=lambda x, g, *, kernel, groups, **p: (g.shape[1], x.shape[1] // groups, *kernel),
)
conv2d_weight_p.describe("the transpose of conv2d in w", "g as a kernel, transposed and plain")
conv2d_weight_p.samples = [
    S((2, 2, 4, 3), (2, 3, 3, 2), kernel=(2, 2), **_PLAIN),
    S((1, 4, 3, 4), (1, 4, 2, 3), kernel=(2, 2), **_GROUPED),
    S((1, 2, 4, 3), (1, 4, 3, 2), kernel=(2, 2), **_DEPTHWISE),
]
