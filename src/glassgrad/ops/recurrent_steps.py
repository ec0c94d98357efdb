"""One step of each recurrent network in other ops: what cells compute, and what the fused networks decompose into."""

from __future__ import annotations

from typing import Any

from glassgrad.ops import elementwise as ew
from glassgrad.ops.activation import relu, sigmoid
from glassgrad.ops.core import Array
from glassgrad.ops.fused import linear_p
from glassgrad.ops.shape import stack


def _given(bias: Any) -> tuple[Any, ...]:
    return () if bias is None else (bias,)


def lstm_step(x: Array, h: Array, c: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Any) -> tuple[Array, Array]:
    """One step of a long short-term memory: the new hidden state and cell."""
    gates = linear_p(x, w_ih, *_given(b_ih)) + linear_p(h, w_hh, *_given(b_hh))
    n = c.shape[-1]  # h may be a projection of fewer numbers
    i, f, g, o = (gates[..., at * n : (at + 1) * n] for at in range(4))
    c = sigmoid(f) * c + sigmoid(i) * ew.tanh(g)
    return sigmoid(o) * ew.tanh(c), c


def gru_step(x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Any) -> tuple[Array]:
    """One step of a gated recurrent unit: the new hidden state."""
    from_x, from_h = linear_p(x, w_ih, *_given(b_ih)), linear_p(h, w_hh, *_given(b_hh))
    n = h.shape[-1]
    r = sigmoid(from_x[..., :n] + from_h[..., :n])
    z = sigmoid(from_x[..., n : 2 * n] + from_h[..., n : 2 * n])
    new = ew.tanh(from_x[..., 2 * n :] + r * from_h[..., 2 * n :])
    return (new + z * (h - new),)


def rnn_step(x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Any, rectified: bool) -> tuple[Array]:
    """One step of an Elman network: the new hidden state."""
    a = linear_p(x, w_ih, *_given(b_ih)) + linear_p(h, w_hh, *_given(b_hh))
    return (relu(a) if rectified else ew.tanh(a),)


def unrolled(
    step: Any, x: Array, states: tuple[Array, ...], lengths: Array | None, reverse: bool
) -> tuple[Array, ...]:
    """Run `step(x_t, *states) -> states` over a sequence in ops that the tape knows; return outputs and states."""
    steps = x.shape[0]
    outputs: list[Any] = [None] * steps
    for at in reversed(range(steps)) if reverse else range(steps):
        new = step(x[at], *states)
        if lengths is not None:
            alive = ew.greater(lengths, at).reshape(-1, 1)
            outputs[at] = ew.where(alive, new[0], 0.0)
            new = tuple(ew.where(alive, fresh, old) for fresh, old in zip(new, states, strict=True))
        else:
            outputs[at] = new[0]
        states = new
    return stack(outputs), *states
