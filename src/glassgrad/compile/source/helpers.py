"""Functions that NumPy lacks, for printed programs: their source is copied in front of a program that needs them.

So nothing here may use anything but `np`, `math` and the functions above it; annotations are left out.
"""

# Readers of generated programs would see annotations, so there are none:
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# ruff: noqa: ANN001, ANN201 - the text is shown to readers of generated programs

import math

import numpy as np


def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def erf(x):
    """The error function, element by element."""
    return np.array([math.erf(v) for v in np.ravel(x).tolist()], dtype=x.dtype).reshape(x.shape)


def erfc(x):
    """1 - erf(x), accurate where erf(x) is close to 1."""
    return np.array([math.erfc(v) for v in np.ravel(x).tolist()], dtype=x.dtype).reshape(x.shape)


def gammaln(x):
    """log(|Gamma(x)|), element by element."""
    return np.array([math.lgamma(v) for v in np.ravel(x).tolist()], dtype=x.dtype).reshape(x.shape)


def softmax(x, axis):
    """exp(x) / sum(exp(x))."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax(x, axis):
    """x - log(sum(exp(x)))."""
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def logsumexp(x, axis, keepdims):
    """log(sum(exp(x))), -inf where every x is."""
    top = x.max(axis=axis, keepdims=True)
    shift = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        y = np.log(np.exp(x - shift).sum(axis=axis, keepdims=True)) + shift
    return y if keepdims else y.reshape([n for d, n in enumerate(x.shape) if d not in axis])


def put_add(g, index, shape):
    """Zeros with g added at the index; equal indices add up."""
    out = np.zeros(shape, g.dtype)
    np.add.at(out, index, g)
    return out


def at_set(x, index, value):
    """x with another value at the index."""
    out = np.array(x)
    out[index] = value
    return out


def along(index, axis):
    """The index that picks `index` along one axis and everything along the others."""
    places = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    places[axis] = index
    return tuple(places)


def take_along_axis(x, index, axis):
    """x[..., index, ...] along one axis; the others may be cut short."""
    return x[along(index, axis)]


def put_along_add(g, index, shape, axis):
    """Zeros with g added at the index along one axis."""
    out = np.zeros(shape, g.dtype)
    np.add.at(out, along(index, axis), g)
    return out


def bordered(x, padding, value=0):
    """x (..., H, W) with a border; a negative width cuts instead."""
    cut = tuple(slice(max(-a, 0), x.shape[d - 2] - max(-b, 0)) for d, (a, b) in enumerate(padding))
    wide = [(0, 0)] * (x.ndim - 2) + [(max(a, 0), max(b, 0)) for a, b in padding]
    return np.pad(x[(..., *cut)], wide, constant_values=value)


def windows(x, kernel, stride, dilation, out):
    """The windows of x (..., H, W): shape (..., *out, *kernel)."""
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, span, axis=(-2, -1))
    view = view[..., :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    return view[..., : out[0], : out[1], :, :]


def grouped(x, groups, axis):
    """x with one axis split into (groups, rest)."""
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


def conv2d(x, w, *, out, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1):
    """y[n, o, i, j] = sum of x[n, c, s i + d a - p, s j + d b - p] w[o, c, a, b]."""
    seen = windows(bordered(x, padding), w.shape[2:], stride, dilation, out)
    y = np.einsum("ngchwab,gocab->ngohw", grouped(seen, groups, 1), grouped(w, groups, 0), optimize=True)
    return y.reshape(x.shape[0], w.shape[0], *out)


def conv2d_weight(x, g, *, kernel, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1):
    """Every window of x times the cotangent of its result."""
    seen = windows(bordered(x, padding), kernel, stride, dilation, g.shape[2:])
    dw = np.einsum("ngchwab,ngohw->gocab", grouped(seen, groups, 1), grouped(g, groups, 1), optimize=True)
    return dw.reshape(g.shape[1], x.shape[1] // groups, *kernel)


def taps(kernel, stride, dilation, out):
    """For each position in a window: the position, and the elements of the image that stand there."""
    for i, j in np.ndindex(*kernel):
        rows = slice(i * dilation[0], i * dilation[0] + stride[0] * (out[0] - 1) + 1, stride[0])
        columns = slice(j * dilation[1], j * dilation[1] + stride[1] * (out[1] - 1) + 1, stride[1])
        yield (i, j), (..., rows, columns)


def frame(size, kernel, stride, padding, dilation, out):
    """The border that the windows need, beyond the image too where they hang over its end."""
    last = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(out, stride, kernel, dilation, strict=True)]
    return tuple((a, max(end - a - n, b)) for end, n, (a, b) in zip(last, size, padding, strict=True))


def inside(full, padding, size):
    """An image (..., H, W) without its border; what the border cut off is 0."""
    back = tuple((-a, n - full.shape[d - 2] + a) for d, (n, (a, _)) in enumerate(zip(size, padding, strict=True)))
    return bordered(full, back)


def conv2d_input(g, w, *, size, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1):
    """Every cotangent, times the kernel, added where its window was."""
    out, kernel = g.shape[2:], w.shape[2:]
    rows, columns = ((n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(out, stride, kernel, dilation, strict=True))
    full = np.zeros((g.shape[0], w.shape[1] * groups, rows, columns), g.dtype)
    gs, ws = grouped(g, groups, 1), grouped(w, groups, 0)
    for (i, j), place in taps(kernel, stride, dilation, out):
        part = np.einsum("ngohw,goc->ngchw", gs, ws[..., i, j], optimize=True)
        full[place] += part.reshape(g.shape[0], -1, *out)
    return inside(full, padding, size)


def max_pool2d(x, *, kernel, out, stride, padding=((0, 0), (0, 0)), dilation=(1, 1)):
    """The largest element of each window."""
    border = frame(x.shape[-2:], kernel, stride, padding, dilation, out)
    return windows(bordered(x, border, -np.inf), kernel, stride, dilation, out).max(axis=(-2, -1))


def max_pool2d_scatter(g, x, y, *, kernel, stride, padding=((0, 0), (0, 0)), dilation=(1, 1)):
    """Zeros, with g at the first largest element of each window."""
    border = frame(x.shape[-2:], kernel, stride, padding, dilation, y.shape[-2:])
    wide = bordered(x, border, np.nan)  # no element of the border equals the largest
    full, free = np.zeros_like(wide), np.ones(y.shape, bool)
    for _, place in taps(kernel, stride, dilation, y.shape[-2:]):
        first = free & (wide[place] == y)
        full[place] += np.where(first, g, 0)
        free &= ~first
    return inside(full, border, x.shape[-2:])


def sum_pool2d(x, *, kernel, out, stride, padding=((0, 0), (0, 0)), dilation=(1, 1)):
    """The sum of each window."""
    border = frame(x.shape[-2:], kernel, stride, padding, dilation, out)
    return windows(bordered(x, border), kernel, stride, dilation, out).sum(axis=(-2, -1))


def sum_spread2d(g, *, size, kernel, stride, padding=((0, 0), (0, 0)), dilation=(1, 1)):
    """g added all over its window."""
    border = frame(size, kernel, stride, padding, dilation, g.shape[-2:])
    full = np.zeros((*g.shape[:-2], *(n + a + b for n, (a, b) in zip(size, border, strict=True))), g.dtype)
    for _, place in taps(kernel, stride, dilation, g.shape[-2:]):
        full[place] += g
    return inside(full, border, size)


def reading_order(x, reverse, batch_first):
    """Return x with time in front, from the step that is read first."""
    x = np.swapaxes(x, 0, 1) if batch_first else x
    return x[::-1] if reverse else x


def lstm_scan(a, h, c, w, reverse=False, batch_first=False):
    """Run an LSTM on what its inputs give to the gates: y, the last h and c, all c, and the gates."""
    y, cells = np.empty((2, *a.shape[:2], w.shape[1]), a.dtype)
    gates = np.empty_like(a)
    in_order = [reading_order(x, reverse, batch_first) for x in (a, y, cells, gates)]
    for a_t, y_t, c_t, gates_t in zip(*in_order, strict=True):
        i, f, g, o = np.split(a_t + h @ w.T, 4, axis=1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        c = f * c + i * g
        h = o * np.tanh(c)
        y_t[...], c_t[...], gates_t[...] = h, c, np.concatenate([i, f, g, o], axis=1)
    return y, h, c, cells, gates


def lstm_scan_back(cells, gates, c, w, dy=0, dh=0, dc=0, reverse=False, batch_first=False):
    """Return the cotangents of a, and of the first h and c."""
    da = np.empty_like(gates)
    before = [c, *reading_order(cells, reverse, batch_first)[:-1]]
    dy = np.broadcast_to(np.asarray(dy, cells.dtype), cells.shape)
    in_order = [reading_order(x, reverse, batch_first) for x in (da, cells, gates, dy)]
    for da_t, c_t, gates_t, dy_t, before_t in reversed(list(zip(*in_order, before, strict=True))):
        i, f, g, o = np.split(gates_t, 4, axis=1)
        squashed = np.tanh(c_t)
        dh = dh + dy_t
        dc = dc + dh * o * (1 - squashed**2)
        di, df = dc * g * i * (1 - i), dc * before_t * f * (1 - f)
        dg, do = dc * i * (1 - g**2), dh * squashed * o * (1 - o)
        da_t[...] = np.concatenate([di, df, dg, do], axis=1)
        dh, dc = da_t @ w, dc * f
    return da, dh, dc


def gru_scan(a, h, w, b=0, reverse=False, batch_first=False):
    """Run a GRU on what its inputs give to the gates: y, the last h, the gates and h's part of the last one."""
    n = w.shape[1]
    y, gates = np.empty((*a.shape[:2], n), a.dtype), np.empty((*a.shape[:2], 4 * n), a.dtype)
    in_order = [reading_order(x, reverse, batch_first) for x in (a, y, gates)]
    for a_t, y_t, gates_t in zip(*in_order, strict=True):
        from_h = h @ w.T + b
        r, z = np.split(sigmoid(a_t[:, : 2 * n] + from_h[:, : 2 * n]), 2, axis=1)
        inner = from_h[:, 2 * n :]
        new = np.tanh(a_t[:, 2 * n :] + r * inner)
        h = new + z * (h - new)
        y_t[...], gates_t[...] = h, np.concatenate([r, z, new, inner], axis=1)
    return y, h, gates


def gru_scan_back(y, gates, h, w, dy=0, dh=0, reverse=False, batch_first=False):
    """Return the cotangents of a, of what h gives to the gates, and of the first h."""
    da, dhidden = np.empty((2, *y.shape[:2], w.shape[0]), y.dtype)
    before = [h, *reading_order(y, reverse, batch_first)[:-1]]
    dy = np.broadcast_to(np.asarray(dy, y.dtype), y.shape)
    in_order = [reading_order(x, reverse, batch_first) for x in (da, dhidden, gates, dy)]
    for da_t, dhidden_t, gates_t, dy_t, before_t in reversed(list(zip(*in_order, before, strict=True))):
        r, z, new, inner = np.split(gates_t, 4, axis=1)
        dh = dh + dy_t
        dnew = dh * (1 - z) * (1 - new**2)
        dz, dr = dh * (before_t - new) * z * (1 - z), dnew * inner * r * (1 - r)
        da_t[...] = np.concatenate([dr, dz, dnew], axis=1)
        dhidden_t[...] = np.concatenate([dr, dz, dnew * r], axis=1)
        dh = dhidden_t @ w + dh * z
    return da, dhidden, dh


def rnn_scan(a, h, w, reverse=False, batch_first=False, rectified=False):
    """Run a plain recurrent layer on what its inputs give: y and the last h."""
    y = np.empty((*a.shape[:2], w.shape[1]), a.dtype)
    in_order = [reading_order(x, reverse, batch_first) for x in (a, y)]
    for a_t, y_t in zip(*in_order, strict=True):
        h = np.maximum(a_t + h @ w.T, 0) if rectified else np.tanh(a_t + h @ w.T)
        y_t[...] = h
    return y, h


def rnn_scan_back(y, w, dy=0, dh=0, reverse=False, batch_first=False, rectified=False):
    """Return the cotangents of a and of the first h."""
    da = np.empty_like(y)
    dy = np.broadcast_to(np.asarray(dy, y.dtype), y.shape)
    in_order = [reading_order(x, reverse, batch_first) for x in (da, y, dy)]
    for da_t, y_t, dy_t in reversed(list(zip(*in_order, strict=True))):
        da_t[...] = (dh + dy_t) * ((y_t > 0) if rectified else 1 - y_t**2)
        dh = da_t @ w
    return da, dh
