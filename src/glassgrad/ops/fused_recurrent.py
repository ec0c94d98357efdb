"""Fused recurrent networks: a whole sequence through one layer in one direction, with a hand-written backward.

x is (steps, batch, inputs), or (batch, steps, inputs) with `batch_first`; states are (batch, hidden); the weights have
PyTorch's layout. With `ragged` the last argument holds the length of each sequence; after its end the state stays and
the output is 0. With `reverse` the sequence is read backwards.

The loop over time is in `recurrent_loops`. In a trace it is one `recurrent_scan` instruction, between matrix products
over all steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops.core import Array, Fused, Rule, fused
from glassgrad.ops.fused import _linear, _linear_vjp, linear_p
from glassgrad.ops.kernels import products
from glassgrad.ops.kernels.recurrent import Form
from glassgrad.ops.kernels.sums import sum_rows
from glassgrad.ops.recurrent_loops import Scan, backward, before, forward
from glassgrad.ops.recurrent_scan import KINDS, SCANS
from glassgrad.ops.recurrent_steps import gru_step, lstm_step, rnn_step, unrolled
from glassgrad.ops.samples import S, integers


class _Layer(NamedTuple):
    """One call of any kind of layer: the sequence, the initial states, the weights and the options."""

    form: Form
    x: Array
    states: tuple[Array, ...]
    w_ih: Array
    w_hh: Array
    b_ih: Array | None
    b_hh: Array | None
    lengths: Array | None

    @property
    def bias(self) -> tuple[Array, ...]:
        """The bias added to the products of the inputs: the sum of both biases, except for a GRU."""
        if self.b_ih is None:
            return ()
        return (self.b_ih,) if self.form.kind == "gru" else (self.b_ih + self.b_hh,)

    def scan(self, a: Array) -> Scan:
        """Return the loop over time for `a`, the inputs' contribution to the gates."""
        alive = None
        if self.lengths is not None:
            steps = self.x.shape[int(self.form.batch_first)]
            alive = np.arange(steps)[:, None, None] < self.lengths[:, None]
            alive = alive[::-1] if self.form.reverse else alive
        return Scan(self.form, a, self.states, self.w_hh, self.b_hh if self.form.kind == "gru" else None, alive)


_PLAIN = {"reverse": False, "biased": True, "ragged": False, "batch_first": False}


def _samples(gates: int, states: int, **params: Any) -> tuple[S, ...]:
    """Return sample calls of a layer with 3 inputs and 2 hidden units."""
    width = 2 * gates
    shapes = ((3, 2, 3), *((2, 2),) * states, (width, 3), (width, 2), (width,), (width,))
    return (
        S(*shapes, **_PLAIN, **params),
        S(*shapes[:-2], **{**_PLAIN, "biased": False, "reverse": True}, **params),
        S(*shapes, integers(1, 4, 2), **{**_PLAIN, "ragged": True}, **params),
        S(*shapes, integers(1, 4, 2), **{**_PLAIN, "ragged": True, "reverse": True}, **params),
        S((2, 3, 3), *shapes[1:], **{**_PLAIN, "batch_first": True}, **params),
    )


def _recurrent(name: str, cell: Rule, states: int) -> Fused:
    """Declare a kind of layer.

    Args:
        name: the name of the primitive.
        cell: one step in other ops.
        states: the number of states.
    """

    def layer_of(
        args: Sequence[Array], reverse: bool, biased: bool, ragged: bool, batch_first: bool, rectified: bool = False
    ) -> _Layer:
        x, *rest = args
        w_ih, w_hh, *parts = rest[states:]
        b_ih, b_hh = parts[:2] if biased else (None, None)
        form = Form("relu" if rectified else name, reverse, batch_first)
        return _Layer(form, x, tuple(rest[:states]), w_ih, w_hh, b_ih, b_hh, parts[-1] if ragged else None)

    def compute(_xp: ModuleType, *args: Array, **params: Any) -> Any:
        layer = layer_of(args, **params)
        a, _ = _linear(np, layer.x, layer.w_ih, *layer.bias)
        return forward(layer.scan(a), own=True)

    def vjp(g: Array, needs: Any, kept: Array, *args: Array, **params: Any) -> Any:
        layer = layer_of(args, **params)
        bias = layer.bias
        da, dhidden, dstates = backward(layer.scan(layer.x), g, kept)
        asked = (needs[0], True, *[True] * len(bias))
        dx, dw_ih, *biases = _linear_vjp(da, asked, None, layer.x, layer.w_ih, *bias)
        rows = dhidden.reshape(-1, dhidden.shape[2])
        earlier = before(kept.y, layer.states[0], layer.form)
        dw_hh = products.matmul(rows.T, earlier.reshape(-1, earlier.shape[2]))
        if biases:
            biases.append(sum_rows(rows) if dhidden is not da else biases[0].copy())
        return dx, *dstates, dw_ih, dw_hh, *biases, *([None] if layer.lengths is not None else [])

    def decomposed(*args: Array, **params: Any) -> tuple[Array, ...]:
        layer = layer_of(args, **params)
        form = layer.form
        options = {"rectified": params["rectified"]} if "rectified" in params else {}
        if layer.lengths is None and layer.x.dtype in KINDS and layer.w_hh.dtype in KINDS:
            a = linear_p(layer.x, layer.w_ih, *layer.bias)
            bias = () if form.kind != "gru" or layer.b_hh is None else (layer.b_hh,)
            how = {"reverse": form.reverse, "batch_first": form.batch_first, **options}
            return tuple(SCANS[name](a, *layer.states, layer.w_hh, *bias, **how)[: 1 + states])

        def step(x_t: Array, *now: Array) -> Any:
            return cell(x_t, *now, layer.w_ih, layer.w_hh, layer.b_ih, layer.b_hh, **options)

        return unrolled(step, layer.x, layer.states, layer.lengths, form.reverse, form.batch_first)

    return fused(name, compute, joint_vjp=vjp, decompose=decomposed, multiple=True)


_BACK = "backward through time"

lstm_p = _recurrent("lstm", lstm_step, 2)
lstm_p.describe(
    "c = f * c + i * g, h = o * tanh(c), with i, f, o = sigmoid and g = tanh of x @ W + h @ U + b",
    _BACK,
    notes="Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000",
)
lstm_p.samples = _samples(4, 2)

gru_p = _recurrent("gru", gru_step, 1)
gru_p.describe(
    "h = n + z * (h - n), n = tanh(W_n x + r * U_n h), with r, z = sigmoid of W x + U h", _BACK, notes="Cho et al. 2014"
)
gru_p.samples = _samples(3, 1)

rnn_p = _recurrent("rnn", rnn_step, 1).describe("h = tanh or relu of x @ W + h @ U + b", _BACK, notes="Elman 1990")
rnn_p.samples = (*_samples(1, 1, rectified=False), *_samples(1, 1, rectified=True)[:1])
