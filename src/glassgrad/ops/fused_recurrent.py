"""Fused recurrent networks: a whole sequence through one layer in one direction, with a hand-written backward.

x is (steps, batch, inputs), states are (batch, hidden); the weights have PyTorch's layout. With `ragged` the last
argument holds the length of each sequence: after its end the state stays and the output is 0. With `reverse` the
sequence is read from its end. Everything inside runs in reading order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops.core import Array, Fused, Rule, fused
from glassgrad.ops.fused import _sum_rows
from glassgrad.ops.recurrent_steps import gru_step, lstm_step, rnn_step, unrolled
from glassgrad.ops.samples import S, integers

# --- what the kinds share -------------------------------------------------------------------------


class _Layer(NamedTuple):
    """One call of any kind: the sequence, the states before it, the weights, and how it is read."""

    x: Array
    states: tuple[Array, ...]
    w_ih: Array
    w_hh: Array
    b_ih: Array | None
    b_hh: Array | None
    lengths: Array | None
    reverse: bool

    @property
    def bias(self) -> Any:
        """Both biases together, where they are added to the same."""
        return None if self.b_ih is None else self.b_ih + self.b_hh

    @property
    def alive(self) -> Array | None:
        """A mask (steps, batch, 1) of the steps, in reading order, that each sequence has."""
        if self.lengths is None:
            return None
        return _read(np.arange(self.x.shape[0])[:, None, None] < self.lengths[:, None], self.reverse)


def _read(x: Array, reverse: bool) -> Array:
    """Turn steps into reading order, or back: it is its own inverse."""
    return x[::-1] if reverse else x


def _projected(layer: _Layer, weight: Array, bias: Array | None) -> Array:
    """x wT + b for all steps at once, in reading order."""
    x = _read(layer.x, layer.reverse)
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
    layer: _Layer, dgates: Array, before: Array, dhidden: Array | None, needs: Sequence[bool]
) -> tuple[Any, ...]:
    """Return the cotangents of x, w_ih, w_hh and the sums for the biases, from those of the gates of all steps."""
    x, reverse = layer.x, layer.reverse
    steps, batch, width = dgates.shape
    rows = dgates.reshape(steps * batch, width)
    hidden_rows = rows if dhidden is None else dhidden.reshape(steps * batch, width)
    dx = _read(rows.dot(layer.w_ih).reshape(x.shape), reverse) if needs[0] else None
    dw_ih = rows.T.dot(_read(x, reverse).reshape(steps * batch, x.shape[2]))
    dw_hh = hidden_rows.T.dot(before.reshape(steps * batch, before.shape[2]))
    return dx, dw_ih, dw_hh, _sum_rows(rows), _sum_rows(hidden_rows)


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


def _recurrent(name: str, forward: Rule, backward: Rule, cell: Rule, states: int, **facts: Any) -> Fused:
    """Declare a kind of layer.

    Args:
        name: of the primitive.
        forward: ``forward(layer, **options)`` returns outputs and last states, and the residuals.
        backward: ``backward(layer, g, residuals, **options)`` returns the cotangents of the gates, the states before
            each step, the cotangents of the first states, and those of what w_hh gives where they are not the gates'.
        cell: one step of it in other ops.
        states: how many there are.
        facts: the rest of the entry.
    """

    def layer_of(args: Sequence[Array], reverse: bool, biased: bool, ragged: bool) -> _Layer:
        x, *rest = args
        w_ih, w_hh, *parts = rest[states:]
        b_ih, b_hh = parts[:2] if biased else (None, None)
        return _Layer(x, tuple(rest[:states]), w_ih, w_hh, b_ih, b_hh, parts[-1] if ragged else None, reverse)

    def compute(_xp: Any, *args: Array, reverse: bool, biased: bool, ragged: bool, **options: Any) -> Any:
        return forward(layer_of(args, reverse, biased, ragged), **options)

    def vjp(
        g: Any, needs: Any, residuals: Any, *args: Array, reverse: bool, biased: bool, ragged: bool, **options: Any
    ) -> Any:
        layer = layer_of(args, reverse, biased, ragged)
        dgates, before, dstates, dhidden = backward(layer, g, residuals, **options)
        dx, dw_ih, dw_hh, *sums = _input_cotangents(layer, dgates, before, dhidden, needs)
        return dx, *dstates, dw_ih, dw_hh, *(sums if biased else ()), *((None,) if ragged else ())

    def decomposed(*args: Array, reverse: bool, biased: bool, ragged: bool, **options: Any) -> tuple[Array, ...]:
        layer = layer_of(args, reverse, biased, ragged)

        def step(x_t: Array, *before: Array) -> Any:
            return cell(x_t, *before, layer.w_ih, layer.w_hh, layer.b_ih, layer.b_hh, **options)

        return unrolled(step, layer.x, layer.states, layer.lengths, reverse)

    return fused(
        name, compute, joint_vjp=vjp, decompose=decomposed, multiple=True, derivative="backward through time", **facts
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


def _lstm(layer: _Layer) -> tuple[Any, Any]:
    x, (h, c), w_ih, w_hh = layer[:4]
    steps, batch, n = x.shape[0], x.shape[1], w_hh.shape[1]
    factor, shift = _lstm_gates(n, x.dtype)
    gates = _projected(layer, w_ih * factor[:, None], None if layer.b_ih is None else layer.bias * factor)
    recurrent = np.ascontiguousarray((w_hh * factor[:, None]).T)
    alive = layer.alive
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
    y = _visible(hs[1:], alive, layer.reverse)
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


def _lstm_back(layer: _Layer, g: Sequence[Any], residuals: Any) -> Any:
    x, (h, c), _, w_hh = layer[:4]
    gates, hs, cs, squashed = residuals
    steps, n, alive = x.shape[0], w_hh.shape[1], layer.alive
    local, through = _lstm_factors(gates, cs, squashed, n)
    dys = _output_cotangent(g[0], alive, layer.reverse)
    dh, dc = _cotangent(g[1], h.shape, x.dtype), _cotangent(g[2], c.shape, x.dtype)
    dgates = np.empty_like(gates)
    triples = dgates.reshape(*gates.shape[:2], 4, n), local.reshape(*gates.shape[:2], 4, n)
    for s in range(steps - 1, -1, -1):
        if dys is not None:
            dh += dys[s]
        dc_before = dc
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
    return dgates, hs[:-1], (dh, dc), None


lstm_p = _recurrent(
    "lstm", _lstm, _lstm_back, lstm_step, 2, samples=_samples(4, 2),
    formula="c = f * c + i * g, h = o * tanh(c), with i, f, o = sigmoid and g = tanh of x @ W + h @ U + b",
    notes="Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000",
)  # fmt: skip  # an entry of the table

# --- GRU ------------------------------------------------------------------------------------------


def _gru(layer: _Layer) -> tuple[Any, Any]:
    x, (h,), w_ih, w_hh = layer[:4]
    steps, batch, n = x.shape[0], x.shape[1], w_hh.shape[1]
    gates = _projected(layer, w_ih, layer.b_ih)
    recurrent = np.ascontiguousarray(w_hh.T)
    alive = layer.alive
    hs = np.empty((steps + 1, batch, n), x.dtype)
    inner = np.empty((steps, batch, n), x.dtype)
    hs[0] = h
    product = np.empty((batch, 3 * n), x.dtype)
    for s in range(steps):
        a = gates[s]
        np.dot(hs[s], recurrent, out=product)
        if layer.b_hh is not None:
            product += layer.b_hh
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
    return (_visible(hs[1:], alive, layer.reverse), hs[-1].copy()), (gates, hs, inner)


def _gru_back(layer: _Layer, g: Sequence[Any], residuals: Any) -> Any:
    x, (h,), _, w_hh = layer[:4]
    gates, hs, inner = residuals
    steps, n, alive = x.shape[0], w_hh.shape[1], layer.alive
    r, z, new = (gates[:, :, at * n : (at + 1) * n] for at in range(3))
    # dn = dh (1 - z)(1 - n**2), dz = dh (h - n) z (1 - z), dr = dn (U h)_n r (1 - r).
    for_n = (1 - z) * (1 - new * new)
    for_z = (hs[:-1] - new) * (z * (1 - z))
    for_r = inner * (r * (1 - r))
    dys = _output_cotangent(g[0], alive, layer.reverse)
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
    return dgates, hs[:-1], (dh,), dhidden


gru_p = _recurrent(
    "gru", _gru, _gru_back, gru_step, 1, samples=_samples(3, 1), notes="Cho et al. 2014",
    formula="h = n + z * (h - n), n = tanh(W_n x + r * U_n h), with r, z = sigmoid of W x + U h",
)  # fmt: skip  # an entry of the table

# --- plain ----------------------------------------------------------------------------------------


def _rnn(layer: _Layer, rectified: bool) -> tuple[Any, Any]:
    x, (h,), w_ih, w_hh = layer[:4]
    steps, batch, n = x.shape[0], x.shape[1], w_hh.shape[1]
    states = _projected(layer, w_ih, layer.bias)
    recurrent = np.ascontiguousarray(w_hh.T)
    alive = layer.alive
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
    return (_visible(hs[1:], alive, layer.reverse), hs[-1].copy()), hs


def _rnn_back(layer: _Layer, g: Sequence[Any], hs: Array, rectified: bool) -> Any:
    x, (h,), _, w_hh = layer[:4]
    steps, alive = x.shape[0], layer.alive
    after = hs[1:]
    slopes = (after > 0).astype(x.dtype) if rectified else 1 - after * after
    dys = _output_cotangent(g[0], alive, layer.reverse)
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
    return dgates, hs[:-1], (dh,), None


rnn_p = _recurrent(
    "rnn", _rnn, _rnn_back, rnn_step, 1, formula="h = tanh or relu of x @ W + h @ U + b",
    samples=(*_samples(1, 1, rectified=False), *_samples(1, 1, rectified=True)[:1]), notes="Elman 1990",
)  # fmt: skip  # an entry of the table
