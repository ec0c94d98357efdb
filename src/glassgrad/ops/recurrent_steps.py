"""One step of each recurrent network in other ops: cells use it, and the fused networks decompose into it."""

from __future__ import annotations

from typing import Any

from glassgrad.ops import elementwise as ew
from glassgrad.ops.activation import relu, sigmoid
from glassgrad.ops.core import Array
from glassgrad.ops.fused import linear_p
from glassgrad.ops.shape import stack


def _given(bias: Array) -> tuple[Any, ...]:
    return () if bias is None else (bias,)


def lstm_cell(gates: Array, c: Array) -> tuple[Array, Array, tuple[Array, ...]]:
    """From the inputs of all gates, compute the new hidden state, the new cell, and the activated gates."""
    n = c.shape[-1]  # h may be a projection to fewer features
    i, f, g, o = (gates[..., at * n : (at + 1) * n] for at in range(4))
    # Each value has a name because the readable source of a compiled function prints it.
    forget_gate = sigmoid(f)
    input_gate = sigmoid(i)
    candidate = ew.tanh(g)
    cell = forget_gate * c + input_gate * candidate
    output_gate = sigmoid(o)
    squashed = ew.tanh(cell)
    hidden = output_gate * squashed
    return hidden, cell, (input_gate, forget_gate, candidate, output_gate)


def gru_cell(from_x: Array, from_h: Array, h: Array) -> tuple[Array, tuple[Array, ...]]:
    """From the gates' inputs by x and by h, return new state, activated gates and h's part of the candidate."""
    n = h.shape[-1]
    reset_gate = sigmoid(from_x[..., :n] + from_h[..., :n])
    update_gate = sigmoid(from_x[..., n : 2 * n] + from_h[..., n : 2 * n])
    inner = from_h[..., 2 * n :]
    candidate = ew.tanh(from_x[..., 2 * n :] + reset_gate * inner)
    hidden = candidate + update_gate * (h - candidate)
    return hidden, (reset_gate, update_gate, candidate, inner)


def lstm_step(x: Array, h: Array, c: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Any) -> tuple[Array, Array]:
    """One step of a long short-term memory: the new hidden state and cell."""
    gates = linear_p(x, w_ih, *_given(b_ih)) + linear_p(h, w_hh, *_given(b_hh))
    hidden, cell, _ = lstm_cell(gates, c)
    return hidden, cell


def gru_step(x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Any) -> tuple[Array]:
    """One step of a gated recurrent unit: the new hidden state."""
    hidden, _ = gru_cell(linear_p(x, w_ih, *_given(b_ih)), linear_p(h, w_hh, *_given(b_hh)), h)
    return (hidden,)


def rnn_step(x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Any, rectified: bool) -> tuple[Array]:
    """One step of an Elman network: the new hidden state."""
    before = linear_p(x, w_ih, *_given(b_ih)) + linear_p(h, w_hh, *_given(b_hh))
    hidden = relu(before) if rectified else ew.tanh(before)
    return (hidden,)


def unrolled(
    step: Any, x: Array, states: tuple[Array, ...], lengths: Array | None, reverse: bool, batch_first: bool = False
) -> tuple[Array, ...]:
    """Run `step(x_t, *states) -> states` over a sequence in differentiable ops; return outputs and states."""
    steps = x.shape[int(batch_first)]
    outputs: list[Any] = [None] * steps
    for at in reversed(range(steps)) if reverse else range(steps):
        new = step(x[:, at] if batch_first else x[at], *states)
        if lengths is not None:
            alive = ew.greater(lengths, at).reshape(-1, 1)
            outputs[at] = ew.where(alive, new[0], 0.0)
            new = tuple(ew.where(alive, fresh, old) for fresh, old in zip(new, states, strict=True))
        else:
            outputs[at] = new[0]
        states = new
    return stack(outputs, int(batch_first)), *states
