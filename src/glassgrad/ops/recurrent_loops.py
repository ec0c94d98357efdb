"""The loop over time of recurrent layers, without the products of the inputs: forward and backward.

``a`` holds the contributions of the inputs to the gates of all steps, (steps, batch, gates * hidden), or
(batch, steps, ...) with `batch_first`. States are (batch, hidden); the weights have PyTorch's layout. With `reverse`
the sequence is read from its end. Native code runs the loops where that pays (`kernels.recurrent`). The functions here
are NumPy's way and define the results of the native code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops.core import Array
from glassgrad.ops.kernels import recurrent
from glassgrad.ops.kernels.recurrent import Form
from glassgrad.ops.shape import cat


class Scan(NamedTuple):
    """One loop: its layout, the gates' inputs, the initial states, and the weights.

    `alive` is a mask (steps, batch, 1), in reading order, of the steps that each sequence has; None for all. Outside of
    those steps the state of a sequence is unchanged.
    """

    form: Form
    a: Array
    states: tuple[Array, ...]
    w: Array
    bias: Array | None = None
    alive: Array | None = None


class Kept(NamedTuple):
    """Values for the backward pass: the states after all steps, in the layout of y, and the activated gates."""

    y: Array
    cells: Array | None
    gates: Array | None


def in_order(x: Array, form: Form) -> Array:
    """Put time first and the steps into reading order."""
    x = x.swapaxes(0, 1) if form.batch_first else x
    return x[::-1] if form.reverse else x


def before(y: Array, first: Array, form: Form) -> Array:
    """Return the states before all steps, in the layout of y."""
    steps, axis = y.shape[int(form.batch_first)], int(form.batch_first)
    if not steps:
        return y
    kept = slice(1, None) if form.reverse else slice(0, steps - 1)
    others = y[:, kept] if form.batch_first else y[kept]
    one = first.reshape(first.shape[0], 1, first.shape[1]) if form.batch_first else first.reshape(1, *first.shape)
    return cat([others, one] if form.reverse else [one, others], axis)


def forward(scan: Scan, own: bool = False) -> tuple[tuple[Array, ...], Kept]:
    """Return y, the last states, and values for the backward pass; with `own`, `a` may be overwritten."""
    form, a, states, w = scan[:4]
    gates = None
    if form.kind in _WITH_GATES:
        shape = (*a.shape[:2], 4 * w.shape[1])
        gates = a if own and a.shape == shape else np.empty(shape, a.dtype)
    if scan.alive is None:
        found = recurrent.forward(form, a, gates, states, w, scan.bias)
        if found is not None:
            y, *last, cells = found
            return (y, *last), Kept(y, cells, gates)
    y = np.empty((*a.shape[:2], w.shape[1]), a.dtype)
    cells = np.empty_like(y) if len(states) > 1 else None
    kept = Kept(y, cells, gates)
    _FORWARD[form.kind](scan, kept)
    order = in_order(y, form)
    last = [order[-1] if len(order) else states[0]]
    if cells is not None:
        last.append(in_order(cells, form)[-1] if len(order) else states[1])
    if scan.alive is not None:
        y = np.empty_like(y)
        np.multiply(order, scan.alive, out=in_order(y, form))
    return (y, *[np.array(one) for one in last]), kept


def backward(scan: Scan, g: Sequence[Array | None], kept: Kept) -> tuple[Array, Array, list[Array]]:
    """Return the cotangents of `a`, of the product with the weights and of the first states; does not read `scan.a`."""
    form, _, states, w = scan[:4]
    if scan.alive is None:
        found = recurrent.backward(form, g, kept._asdict(), states, w)
        if found is not None:
            return found
    dy, *last = g
    carried = [np.zeros_like(state) if one is None else np.array(one) for one, state in zip(last, states, strict=True)]
    if dy is not None:
        dy = in_order(dy, form)
        dy = dy if scan.alive is None else dy * scan.alive
    return _BACKWARD[form.kind](scan, dy, carried, kept)  # type: ignore[no-any-return]  # by a table


# --- NumPy's loops --------------------------------------------------------------------------------


def _sigmoid(x: Array) -> None:
    """Compute sigmoid(x) = tanh(x / 2) / 2 + 1 / 2 in place."""
    x *= 0.5
    np.tanh(x, out=x)
    x *= 0.5
    x += 0.5


def _keep_dead(new: Array, old: Array, alive: Array | None, step: int) -> None:
    if alive is not None:
        np.copyto(new, old, where=~alive[step])


def _lstm(scan: Scan, kept: Kept) -> None:
    form, a, (h, c), w = scan[:4]
    a, hs, cs, gates = (in_order(one, form) for one in (a, kept.y, kept.cells, kept.gates))
    n = w.shape[1]
    for s in range(len(a)):
        np.add(a[s], h.dot(w.T), out=gates[s])
        i, f, g, o = (gates[s, :, at * n : (at + 1) * n] for at in range(4))
        _sigmoid(gates[s, :, : 2 * n])
        np.tanh(g, out=g)
        _sigmoid(o)
        np.multiply(f, c, out=cs[s])
        cs[s] += i * g
        np.multiply(o, np.tanh(cs[s]), out=hs[s])
        _keep_dead(hs[s], h, scan.alive, s)
        _keep_dead(cs[s], c, scan.alive, s)
        h, c = hs[s], cs[s]


def _lstm_back(scan: Scan, dy: Array | None, carried: list[Array], kept: Kept) -> Any:
    form, _, states, w = scan[:4]
    dh, dc = carried
    cs, gates = in_order(kept.cells, form), in_order(kept.gates, form)
    cells_before = in_order(before(kept.cells, states[1], form), form)
    da = np.empty_like(kept.gates)
    order, n, alive = in_order(da, form), w.shape[1], scan.alive
    i, f, g, o = (gates[:, :, at * n : (at + 1) * n] for at in range(4))
    squashed = np.tanh(cs)
    through = o * (1 - squashed * squashed)
    local = np.stack([g * (i * (1 - i)), cells_before * (f * (1 - f)), i * (1 - g * g)], 2)
    for_o = squashed * (o * (1 - o))
    for s in range(len(gates) - 1, -1, -1):
        if dy is not None:
            dh += dy[s]
        later = dc
        dc = dc + dh * through[s]
        row = order[s]
        np.multiply(dc[:, None], local[s], out=row[:, : 3 * n].reshape(-1, 3, n))
        np.multiply(dh, for_o[s], out=row[:, 3 * n :])
        dc *= f[s]
        if alive is not None:
            row *= alive[s]
            dc = np.where(alive[s], dc, later)
        dh = _through(row, w, dh, alive, s)
    return da, da, [dh, dc]


def _through(row: Array, w: Array, dh: Array, alive: Array | None, step: int) -> Array:
    """Return the cotangent of the state before a step."""
    found = row.dot(w)
    return found if alive is None else found + np.where(alive[step], 0, dh)


def _gru(scan: Scan, kept: Kept) -> None:
    form, a, (h,), w = scan[:4]
    a, hs, gates = (in_order(one, form) for one in (a, kept.y, kept.gates))
    n = w.shape[1]
    for s in range(len(a)):
        from_h = h.dot(w.T)
        if scan.bias is not None:
            from_h += scan.bias
        r, z, new, inner = (gates[s, :, at * n : (at + 1) * n] for at in range(4))
        np.add(a[s, :, : 2 * n], from_h[:, : 2 * n], out=gates[s, :, : 2 * n])
        _sigmoid(gates[s, :, : 2 * n])
        inner[...] = from_h[:, 2 * n :]
        np.tanh(a[s, :, 2 * n :] + r * inner, out=new)
        # h = n + z (h - n)
        np.subtract(h, new, out=hs[s])
        hs[s] *= z
        hs[s] += new
        _keep_dead(hs[s], h, scan.alive, s)
        h = hs[s]


def _gru_back(scan: Scan, dy: Array | None, carried: list[Array], kept: Kept) -> Any:
    form, _, states, w = scan[:4]
    (dh,), n, alive = carried, w.shape[1], scan.alive
    gates, hs_before = in_order(kept.gates, form), in_order(before(kept.y, states[0], form), form)
    da = np.empty((*kept.y.shape[:2], 3 * n), kept.y.dtype)
    dhidden = np.empty_like(da)
    order, hidden_order = in_order(da, form), in_order(dhidden, form)
    r, z, new, inner = (gates[:, :, at * n : (at + 1) * n] for at in range(4))
    # dn = dh (1 - z)(1 - n**2), dz = dh (h - n) z (1 - z), dr = dn (U h)_n r (1 - r).
    for_n = (1 - z) * (1 - new * new)
    for_z = (hs_before - new) * (z * (1 - z))
    for_r = inner * (r * (1 - r))
    for s in range(len(gates) - 1, -1, -1):
        if dy is not None:
            dh += dy[s]
        row, hidden_row = order[s], hidden_order[s]
        dn = np.multiply(dh, for_n[s], out=row[:, 2 * n :])
        np.multiply(dn, for_r[s], out=row[:, :n])
        np.multiply(dh, for_z[s], out=row[:, n : 2 * n])
        if alive is not None:
            row *= alive[s]
        hidden_row[:, : 2 * n] = row[:, : 2 * n]
        np.multiply(dn, r[s], out=hidden_row[:, 2 * n :])
        passed = dh * z[s] if alive is None else dh * np.where(alive[s], z[s], 1)
        dh = hidden_row.dot(w)
        dh += passed
    return da, dhidden, [dh]


def _rnn(scan: Scan, kept: Kept) -> None:
    form, a, (h,), w = scan[:4]
    a, hs = in_order(a, form), in_order(kept.y, form)
    for s in range(len(a)):
        found = a[s] + h.dot(w.T)
        if form.kind == "relu":
            np.maximum(found, 0, out=hs[s])
        else:
            np.tanh(found, out=hs[s])
        _keep_dead(hs[s], h, scan.alive, s)
        h = hs[s]


def _rnn_back(scan: Scan, dy: Array | None, carried: list[Array], kept: Kept) -> Any:
    form, (dh,), alive = scan.form, carried, scan.alive
    hs = in_order(kept.y, form)
    slopes = (hs > 0).astype(hs.dtype) if form.kind == "relu" else 1 - hs * hs
    da = np.empty_like(kept.y)
    order = in_order(da, form)
    for s in range(len(hs) - 1, -1, -1):
        if dy is not None:
            dh += dy[s]
        row = np.multiply(dh, slopes[s], out=order[s])
        if alive is not None:
            row *= alive[s]
        dh = _through(row, scan.w, dh, alive, s)
    return da, da, [dh]


_WITH_GATES = frozenset({"lstm", "gru"})
_FORWARD = {"lstm": _lstm, "gru": _gru, "rnn": _rnn, "relu": _rnn}
_BACKWARD = {"lstm": _lstm_back, "gru": _gru_back, "rnn": _rnn_back, "relu": _rnn_back}
