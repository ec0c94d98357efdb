"""Fused recurrent networks: a whole sequence through one layer in one direction, with a hand-written backward.

x is (steps, batch, inputs), states are (batch, hidden); the weights have PyTorch's layout. With `ragged` the last
argument holds the length of each sequence: after its end the state stays and the output is 0. With `reverse` the
sequence is read from its end. Everything inside runs in reading order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from glassgrad.ops.core import Array, fused
from glassgrad.ops.fused import _sum_rows
from glassgrad.ops.recurrent_steps import gru_step, lstm_step, rnn_step, unrolled
from glassgrad.ops.samples import S, integers

# --- what the kinds share -------------------------------------------------------------------------


def _parts(rest: Sequence[Array], biased: bool, ragged: bool) -> tuple[Array | None, Array | None, Array | None]:
    """Return the two biases and the lengths from the arguments after the weights."""
    parts = list(rest)
    b_ih, b_hh = (parts.pop(0), parts.pop(0)) if biased else (None, None)
    return b_ih, b_hh, parts.pop(0) if ragged else None


def _read(x: Array, reverse: bool) -> Array:
    """Turn steps into reading order, or back: it is its own inverse."""
    return x[::-1] if reverse else x


def _alive(lengths: Array | None, steps: int, reverse: bool) -> Array | None:
    """Return a mask (steps, batch, 1) of the steps, in reading order, that each sequence has."""
    return None if lengths is None else _read(np.arange(steps)[:, None, None] < lengths[:, None], reverse)


def _projected(x: Array, weight: Array, bias: Array | None) -> Array:
    """x wT + b for all steps at once."""
    steps, batch, width = x.shape
    y = x.reshape(steps * batch, width).dot(weight.T)
    if bias is not None:
        y += bias
    return y.reshape(steps, batch, len(weight))


def _visible(states: Array, alive: Array | None, reverse: bool) -> Array:
    """Return the outputs of all steps from the states after them."""
    return np.array(_read(states if alive is None else states * alive, reverse))


def _keep_dead(new: Array, old: Array, alive: Array | None, step: int) -> None:
    if alive is not None:
        np.copyto(new, old, where=~alive[step])


def _input_cotangents(
    dgates: Array, x: Array, before: Array, w_ih: Array, needs: Sequence[bool], reverse: bool, dhidden: Array | None
) -> tuple[Any, ...]:
    """Return the cotangents of x, w_ih, w_hh and the sums for the biases, from those of the gates of all steps."""
    steps, batch, width = dgates.shape
    rows = dgates.reshape(steps * batch, width)
    hidden_rows = rows if dhidden is None else dhidden.reshape(steps * batch, width)
    dx = _read(rows.dot(w_ih).reshape(x.shape), reverse) if needs[0] else None
    dw_ih = rows.T.dot(_read(x, reverse).reshape(steps * batch, x.shape[2]))
    dw_hh = hidden_rows.T.dot(before.reshape(steps * batch, before.shape[2]))
    return dx, dw_ih, dw_hh, _sum_rows(rows), _sum_rows(hidden_rows)


def _rest(sums: tuple[Array, Array], biased: bool, ragged: bool) -> tuple[Array | None, ...]:
    return *(sums if biased else ()), *((None,) if ragged else ())


def _cotangent(g: Any, like: tuple[int, ...], dtype: Any) -> Array:
    """Return a copy of a cotangent, or zeros if it is missing."""
    return np.zeros(like, dtype) if g is None else np.array(g)


def _output_cotangent(g: Any, alive: Array | None, reverse: bool) -> Array | None:
    """Return the cotangents of the outputs in reading order."""
    if g is None:
        return None
    ordered = _read(g, reverse)
    return ordered if alive is None else ordered * alive


_PLAIN = {"reverse": False, "biased": True, "ragged": False}


def _samples(gates: int, states: int, **params: Any) -> tuple[S, ...]:
    """Return sample calls of a layer with 3 inputs and 2 hidden units."""
    width = 2 * gates
    shapes = ((3, 2, 3), *((2, 2),) * states, (width, 3), (width, 2), (width,), (width,))
    return (
        S(*shapes, **_PLAIN, **params),
        S(*shapes[:-2], **{**_PLAIN, "biased": False, "reverse": True}, **params),
        S(*shapes, integers(1, 4, 2), **{**_PLAIN, "ragged": True}, **params),
        S(*shapes, integers(1, 4, 2), **{**_PLAIN, "ragged": True, "reverse": True}, **params),
    )


# --- LSTM -----------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _lstm_gates(hidden: int, dtype: Any) -> tuple[Array, Array]:
    """Return the factors and shifts that turn one tanh over all gates into three sigmoids and one tanh.

    sigmoid(a) = tanh(a / 2) / 2 + 1 / 2.
    """
    factor = np.full(4 * hidden, 0.5, dtype)
    factor[2 * hidden : 3 * hidden] = 1
    shift = np.full(4 * hidden, 0.5, dtype)
    shift[2 * hidden : 3 * hidden] = 0
    return factor, shift


def _lstm(
    xp: Any,
    x: Array,
    h: Array,
    c: Array,
    w_ih: Array,
    w_hh: Array,
    *rest: Array,
    reverse: bool,
    biased: bool,
    ragged: bool,
) -> tuple[Any, Any]:
    b_ih, b_hh, lengths = _parts(rest, biased, ragged)
    steps, batch, n = x.shape[0], x.shape[1], w_hh.shape[1]
    factor, shift = _lstm_gates(n, x.dtype)
    gates = _projected(_read(x, reverse), w_ih * factor[:, None], None if b_ih is None else (b_ih + b_hh) * factor)
    recurrent = np.ascontiguousarray((w_hh * factor[:, None]).T)
    alive = _alive(lengths, steps, reverse)
    hs, cs = np.empty((steps + 1, batch, n), x.dtype), np.empty((steps + 1, batch, n), x.dtype)
    squashed = np.empty((steps, batch, n), x.dtype)
    hs[0], cs[0] = h, c
    product, part = np.empty((batch, 4 * n), x.dtype), np.empty((batch, n), x.dtype)
    for s in range(steps):
        a = gates[s]
        a += np.dot(hs[s], recurrent, out=product)
        np.tanh(a, out=a)
        a *= factor
        a += shift
        c = np.multiply(a[:, n : 2 * n], cs[s], out=cs[s + 1])
        c += np.multiply(a[:, :n], a[:, 2 * n : 3 * n], out=part)
        np.tanh(c, out=squashed[s])
        np.multiply(a[:, 3 * n :], squashed[s], out=hs[s + 1])
        if alive is not None:
            _keep_dead(hs[s + 1], hs[s], alive, s)
            _keep_dead(cs[s + 1], cs[s], alive, s)
    y = _visible(hs[1:], alive, reverse)
    return (y, hs[-1].copy(), cs[-1].copy()), (gates, hs, cs, squashed)


def _lstm_factors(gates: Array, cs: Array, squashed: Array, n: int) -> tuple[Array, Array]:
    """Return, for all steps, what dc (gates i, f, g) and dh (gate o) are multiplied by, and d tanh(c) / dc * o."""
    i, f, g, o = (gates[:, :, at * n : (at + 1) * n] for at in range(4))
    local = np.empty_like(gates)
    np.multiply(g, i * (1 - i), out=local[:, :, :n])
    np.multiply(cs[:-1], f * (1 - f), out=local[:, :, n : 2 * n])
    np.multiply(i, 1 - g * g, out=local[:, :, 2 * n : 3 * n])
    np.multiply(squashed, o * (1 - o), out=local[:, :, 3 * n :])
    return local, o * (1 - squashed * squashed)


def _lstm_vjp(
    g: Sequence[Any],
    needs: Sequence[bool],
    residuals: Any,
    x: Array,
    h: Array,
    c: Array,
    w_ih: Array,
    w_hh: Array,
    *rest: Array,
    reverse: bool,
    biased: bool,
    ragged: bool,
) -> Any:
    gates, hs, cs, squashed = residuals
    steps, n = x.shape[0], w_hh.shape[1]
    alive = _alive(_parts(rest, biased, ragged)[2], steps, reverse)
    local, through = _lstm_factors(gates, cs, squashed, n)
    dys = _output_cotangent(g[0], alive, reverse)
    dh, dc = _cotangent(g[1], h.shape, x.dtype), _cotangent(g[2], c.shape, x.dtype)
    dgates = np.empty_like(gates)
    triples = dgates.reshape(*gates.shape[:2], 4, n), local.reshape(*gates.shape[:2], 4, n)
    for s in range(steps - 1, -1, -1):
        if dys is not None:
            dh += dys[s]
        dc_before = dc if alive is None else np.where(alive[s], 0, dc)
        dc = dc + dh * through[s]
        np.multiply(dc[:, None], triples[1][s, :, :3], out=triples[0][s, :, :3])
        np.multiply(dh, triples[1][s, :, 3], out=triples[0][s, :, 3])
        dc *= gates[s, :, n : 2 * n]
        if alive is None:
            dh = dgates[s].dot(w_hh)
        else:
            dgates[s] *= alive[s]
            dc = np.where(alive[s], dc, dc_before)
            dh = dgates[s].dot(w_hh) + np.where(alive[s], 0, dh)
    dx, dw_ih, dw_hh, *sums = _input_cotangents(dgates, x, hs[:-1], w_ih, needs, reverse, None)
    return dx, dh, dc, dw_ih, dw_hh, *_rest((sums[0], sums[1]), biased, ragged)


def _lstm_decomposed(
    x: Array, h: Array, c: Array, w_ih: Array, w_hh: Array, *rest: Array, reverse: bool, biased: bool, ragged: bool
) -> tuple[Array, ...]:
    b_ih, b_hh, lengths = _parts(rest, biased, ragged)

    def step(x_t: Array, h: Array, c: Array) -> tuple[Array, Array]:
        return lstm_step(x_t, h, c, w_ih, w_hh, b_ih, b_hh)

    return unrolled(step, x, (h, c), lengths, reverse)


lstm_p = fused(
    "lstm", _lstm, joint_vjp=_lstm_vjp, decompose=_lstm_decomposed, multiple=True,
    formula="c = f * c + i * g, h = o * tanh(c), with i, f, o = sigmoid and g = tanh of x @ W + h @ U + b",
    derivative="backward through time", samples=_samples(4, 2),
    notes="Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000",
)  # fmt: skip  # an entry of the table

# --- GRU ------------------------------------------------------------------------------------------


def _gru(
    xp: Any, x: Array, h: Array, w_ih: Array, w_hh: Array, *rest: Array, reverse: bool, biased: bool, ragged: bool
) -> tuple[Any, Any]:
    b_ih, b_hh, lengths = _parts(rest, biased, ragged)
    steps, batch, n = x.shape[0], x.shape[1], w_hh.shape[1]
    gates = _projected(_read(x, reverse), w_ih, b_ih)
    recurrent = np.ascontiguousarray(w_hh.T)
    alive = _alive(lengths, steps, reverse)
    hs = np.empty((steps + 1, batch, n), x.dtype)
    inner = np.empty((steps, batch, n), x.dtype)
    hs[0] = h
    product = np.empty((batch, 3 * n), x.dtype)
    for s in range(steps):
        a = gates[s]
        np.dot(hs[s], recurrent, out=product)
        if b_hh is not None:
            product += b_hh
        switches = a[:, : 2 * n]
        switches += product[:, : 2 * n]
        switches *= 0.5
        np.tanh(switches, out=switches)
        switches *= 0.5
        switches += 0.5
        inner[s] = product[:, 2 * n :]
        new = a[:, 2 * n :]
        new += a[:, :n] * inner[s]
        np.tanh(new, out=new)
        # h = n + z (h - n)
        state = np.subtract(hs[s], new, out=hs[s + 1])
        state *= a[:, n : 2 * n]
        state += new
        _keep_dead(hs[s + 1], hs[s], alive, s)
    return (_visible(hs[1:], alive, reverse), hs[-1].copy()), (gates, hs, inner)


def _gru_vjp(
    g: Sequence[Any],
    needs: Sequence[bool],
    residuals: Any,
    x: Array,
    h: Array,
    w_ih: Array,
    w_hh: Array,
    *rest: Array,
    reverse: bool,
    biased: bool,
    ragged: bool,
) -> Any:
    gates, hs, inner = residuals
    steps, n = x.shape[0], w_hh.shape[1]
    alive = _alive(_parts(rest, biased, ragged)[2], steps, reverse)
    r, z, new = (gates[:, :, at * n : (at + 1) * n] for at in range(3))
    # dn = dh (1 - z)(1 - n**2), dz = dh (h - n) z (1 - z), dr = dn (U h)_n r (1 - r).
    for_n = (1 - z) * (1 - new * new)
    for_z = (hs[:-1] - new) * (z * (1 - z))
    for_r = inner * (r * (1 - r))
    dys = _output_cotangent(g[0], alive, reverse)
    dh = _cotangent(g[1], h.shape, x.dtype)
    dgates, dhidden = np.empty_like(gates), np.empty_like(gates)
    for s in range(steps - 1, -1, -1):
        if dys is not None:
            dh += dys[s]
        row = dgates[s]
        dn = np.multiply(dh, for_n[s], out=row[:, 2 * n :])
        np.multiply(dn, for_r[s], out=row[:, :n])
        np.multiply(dh, for_z[s], out=row[:, n : 2 * n])
        if alive is not None:
            row *= alive[s]
        dhidden[s, :, : 2 * n] = row[:, : 2 * n]
        np.multiply(dn, r[s], out=dhidden[s, :, 2 * n :])
        passed = dh * z[s] if alive is None else dh * np.where(alive[s], z[s], 1)
        dh = dhidden[s].dot(w_hh)
        dh += passed
    dx, dw_ih, dw_hh, *sums = _input_cotangents(dgates, x, hs[:-1], w_ih, needs, reverse, dhidden)
    return dx, dh, dw_ih, dw_hh, *_rest((sums[0], sums[1]), biased, ragged)


def _gru_decomposed(
    x: Array, h: Array, w_ih: Array, w_hh: Array, *rest: Array, reverse: bool, biased: bool, ragged: bool
) -> tuple[Array, ...]:
    b_ih, b_hh, lengths = _parts(rest, biased, ragged)

    def step(x_t: Array, h: Array) -> tuple[Array]:
        return gru_step(x_t, h, w_ih, w_hh, b_ih, b_hh)

    return unrolled(step, x, (h,), lengths, reverse)


gru_p = fused(
    "gru", _gru, joint_vjp=_gru_vjp, decompose=_gru_decomposed, multiple=True,
    formula="h = n + z * (h - n), n = tanh(W_n x + r * U_n h), with r, z = sigmoid of W x + U h",
    derivative="backward through time", samples=_samples(3, 1), notes="Cho et al. 2014",
)  # fmt: skip  # an entry of the table

# --- plain ----------------------------------------------------------------------------------------


def _rnn(
    xp: Any,
    x: Array,
    h: Array,
    w_ih: Array,
    w_hh: Array,
    *rest: Array,
    reverse: bool,
    biased: bool,
    ragged: bool,
    rectified: bool,
) -> tuple[Any, Any]:
    b_ih, b_hh, lengths = _parts(rest, biased, ragged)
    steps, batch, n = x.shape[0], x.shape[1], w_hh.shape[1]
    states = _projected(_read(x, reverse), w_ih, None if b_ih is None else b_ih + b_hh)
    recurrent = np.ascontiguousarray(w_hh.T)
    alive = _alive(lengths, steps, reverse)
    hs = np.empty((steps + 1, batch, n), x.dtype)
    hs[0] = h
    for s in range(steps):
        a = states[s]
        a += hs[s].dot(recurrent)
        if rectified:
            np.maximum(a, 0, out=hs[s + 1])
        else:
            np.tanh(a, out=hs[s + 1])
        _keep_dead(hs[s + 1], hs[s], alive, s)
    return (_visible(hs[1:], alive, reverse), hs[-1].copy()), hs


def _rnn_vjp(
    g: Sequence[Any],
    needs: Sequence[bool],
    hs: Array,
    x: Array,
    h: Array,
    w_ih: Array,
    w_hh: Array,
    *rest: Array,
    reverse: bool,
    biased: bool,
    ragged: bool,
    rectified: bool,
) -> Any:
    steps = x.shape[0]
    alive = _alive(_parts(rest, biased, ragged)[2], steps, reverse)
    after = hs[1:]
    slopes = (after > 0).astype(x.dtype) if rectified else 1 - after * after
    dys = _output_cotangent(g[0], alive, reverse)
    dh = _cotangent(g[1], h.shape, x.dtype)
    dgates = np.empty_like(after)
    for s in range(steps - 1, -1, -1):
        if dys is not None:
            dh += dys[s]
        row = np.multiply(dh, slopes[s], out=dgates[s])
        if alive is None:
            dh = row.dot(w_hh)
        else:
            row *= alive[s]
            dh = row.dot(w_hh) + np.where(alive[s], 0, dh)
    dx, dw_ih, dw_hh, *sums = _input_cotangents(dgates, x, hs[:-1], w_ih, needs, reverse, None)
    return dx, dh, dw_ih, dw_hh, *_rest((sums[0], sums[1]), biased, ragged)


def _rnn_decomposed(
    x: Array,
    h: Array,
    w_ih: Array,
    w_hh: Array,
    *rest: Array,
    reverse: bool,
    biased: bool,
    ragged: bool,
    rectified: bool,
) -> tuple[Array, ...]:
    b_ih, b_hh, lengths = _parts(rest, biased, ragged)

    def step(x_t: Array, h: Array) -> tuple[Array]:
        return rnn_step(x_t, h, w_ih, w_hh, b_ih, b_hh, rectified)

    return unrolled(step, x, (h,), lengths, reverse)


rnn_p = fused(
    "rnn", _rnn, joint_vjp=_rnn_vjp, decompose=_rnn_decomposed, multiple=True,
    formula="h = tanh or relu of x @ W + h @ U + b", derivative="backward through time",
    samples=(*_samples(1, 1, rectified=False), *_samples(1, 1, rectified=True)[:1]), notes="Elman 1990",
)  # fmt: skip  # an entry of the table
