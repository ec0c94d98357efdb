"""Recurrent networks over whole sequences: LSTM, GRU and plain RNN, with several layers and both directions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.tensor import Tensor, TensorLike, make
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn import init
from glassgrad.nn.functional.drop import dropout
from glassgrad.nn.module import Module, changed
from glassgrad.nn.parameter import Parameter
from glassgrad.nn.utils.rnn import PackedSequence, pad_packed_sequence
from glassgrad.ops.core import Array, Primitive, bad_option
from glassgrad.ops.fused import linear_p
from glassgrad.ops.fused_recurrent import gru_p, lstm_p, rnn_p
from glassgrad.ops.recurrent_steps import lstm_step, unrolled
from glassgrad.ops.shape import cat, stack


class _Recurrent(Module):
    """Base of the networks: parameters by layer and direction, and the loop over layers.

    Args:
        input_size: the number of features of each step.
        hidden_size: the number of features of the state.
        num_layers: layers, each reading the outputs of the one below.
        bias: whether there are biases (two, as in PyTorch).
        batch_first: whether batches come first, (N, L, H), or second, (L, N, H).
        dropout: probability between layers, in training.
        bidirectional: read from both ends.
    """

    gates = 1
    states = 1
    proj_size = 0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        devices.check(device)
        super().__init__()
        if hidden_size <= 0 or num_layers <= 0:
            name, given = ("hidden_size", hidden_size) if hidden_size <= 0 else ("num_layers", num_layers)
            raise bad_option(type(self).__name__, name, given, "at least 1")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                for name, shape in self._shapes(layer).items():
                    setattr(self, f"{name}_{suffix}", Parameter(creation.empty(shape, dtype=dtype).array))
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"l{layer}", f"l{layer}_reverse"] if self.bidirectional else [f"l{layer}"]

    @property
    def _outputs(self) -> int:
        """The number of features that a step outputs in one direction."""
        return self.proj_size or self.hidden_size

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        rows = self.gates * self.hidden_size
        inputs = self.input_size if layer == 0 else self._outputs * (1 + self.bidirectional)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, self._outputs)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    def reset_parameters(self) -> None:
        """Draw new weights, uniformly from ±1/sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: in PyTorch this arranges memory for GPU code."""

    def _weights(self, layer: int, suffix: str) -> list[Array]:
        return [getattr(self, f"{name}_{suffix}") for name in self._shapes(layer)]

    @property
    def all_weights(self) -> list[list[Array]]:
        """The parameters, a list for each layer and direction."""
        return [self._weights(layer, suffix) for layer in range(self.num_layers) for suffix in self._suffixes(layer)]

    @property
    def _flat_weights_names(self) -> list[str]:
        """The names of the parameters in the order of `_flat_weights`; programs that initialise them read it."""
        suffixes = [(layer, suffix) for layer in range(self.num_layers) for suffix in self._suffixes(layer)]
        return [f"{name}_{suffix}" for layer, suffix in suffixes for name in self._shapes(layer)]

    @property
    def _flat_weights(self) -> list[Array]:
        return [getattr(self, name) for name in self._flat_weights_names]

    # --- the walk -------------------------------------------------------------------------------------

    if TYPE_CHECKING:  # each network runs one layer in one direction, and returns outputs and last states

        def _layer(
            self, x: Array, states: list[Array], weights: list[Array], lengths: Array, reverse: bool, batch_first: bool
        ) -> tuple[Array, ...]: ...

    def _run(
        self, x: Array, states: list[Array], lengths: Array, batch_first: bool = False
    ) -> tuple[Array, list[Array]]:
        """Run all layers over (steps, batch, inputs), or (batch, steps, inputs) with `batch_first`.

        States are (layers * directions, batch, hidden).
        """
        last: list[list[Array]] = []
        for layer in range(self.num_layers):
            outputs = []
            for at, suffix in enumerate(self._suffixes(layer)):
                place = layer * (1 + self.bidirectional) + at
                own = [state[place] for state in states]
                y, *ended = self._layer(x, own, self._weights(layer, suffix), lengths, at == 1, batch_first)
                outputs.append(y)
                last.append(ended)
            x = cat(outputs, -1) if self.bidirectional else outputs[0]
            if self.dropout and layer < self.num_layers - 1:
                x = dropout(x, self.dropout, self.training)
        return x, [stack(list(kind)) for kind in zip(*last, strict=True)]

    def _check(self, input: Array) -> None:
        if len(input.shape) not in (2, 3) or input.shape[-1] != self.input_size:
            sizes = f"N, L, {self.input_size}" if self.batch_first else f"L, N, {self.input_size}"
            raise errors.WRONG_INPUT(
                layer=repr(self),
                expected=f"({sizes}) or (L, {self.input_size})",
                given=tuple(input.shape),
                where=provenance.here(2),
            )

    def _start(self, given: list[Array] | None, batch: int, dtype: DType) -> list[Array]:
        """Return the initial states: the given ones, checked, or zeros."""
        count = self.num_layers * (1 + self.bidirectional)
        widths = [self._outputs, self.hidden_size][: self.states]
        if given is None:
            return [make(np.zeros((count, batch, width), dtype), None, False) for width in widths]
        for state, width in zip(given, widths, strict=True):
            if tuple(state.shape) != (count, batch, width):
                raise errors.WRONG_INPUT(
                    layer=repr(self),
                    expected=f"a state ({count}, {batch}, {width})",
                    given=tuple(state.shape),
                    where=provenance.here(3),
                )
        return given

    def _forward(self, input: Array | PackedSequence, given: list[Array] | None) -> tuple[Array, list[Array]]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, given)
        self._check(input)
        alone = len(input.shape) == 2
        if alone:
            x = input.unsqueeze(1)
            given = None if given is None else [state.unsqueeze(1) for state in given]
        else:
            x = input
        batch_first = self.batch_first and not alone
        y, states = self._run(x, self._start(given, x.shape[int(not batch_first)], x.dtype), None, batch_first)
        if alone:
            return y.squeeze(1), [state.squeeze(1) for state in states]
        return y, states

    def _forward_packed(self, input: PackedSequence, given: list[Array] | None) -> tuple[Array, list[Array]]:
        """Run over padded sequences, each to its end; states are in the caller's order, everything else is sorted."""
        x, _ = pad_packed_sequence(input._replace(unsorted_indices=None))
        lengths = input.lengths()
        if given is not None and input.sorted_indices is not None:
            given = [state[:, input.sorted_indices] for state in given]
        y, states = self._run(x, self._start(given, x.shape[1], x.dtype), lengths)
        if input.unsorted_indices is not None:
            states = [state[:, input.unsorted_indices] for state in states]
        rows, columns = np.nonzero(np.arange(x.shape[0])[:, None] < lengths)
        return input._replace(data=y[rows, columns]), states

    def extra_repr(self) -> str:
        parts = changed(self, proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False)
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *parts])


def _call(
    prim: Primitive, x: Array, states: list[Array], weights: list[Array], lengths: Array, **params: bool
) -> tuple[Array, ...]:
    ragged = lengths is not None
    extra = (lengths,) if ragged else ()
    return prim(x, *states, *weights, *extra, biased=len(weights) > 2, ragged=ragged, **params)


class LSTM(_Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997).

    Called with (L, N, inputs), or (N, L, inputs) with `batch_first`, or a `PackedSequence`, and optionally the
    first states (h, c); returns the outputs of all steps and the last states. `proj_size` maps the hidden
    state to fewer numbers (Sak et al. 2014).

    Example:
        >>> import glassgrad as gg
        >>> lstm = gg.nn.LSTM(3, 4, batch_first=True)
        >>> y, (h, c) = lstm(gg.zeros(2, 5, 3))
        >>> y.shape, h.shape, c.shape
        ((2, 5, 4), (1, 2, 4), (1, 2, 4))
    """

    gates = 4
    states = 2

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        self.proj_size = proj_size
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)

    def _layer(
        self, x: Array, states: list[Array], weights: list[Array], lengths: Array, reverse: bool, batch_first: bool
    ) -> tuple[Array, ...]:
        if not self.proj_size:
            return _call(lstm_p, x, states, weights, lengths, reverse=reverse, batch_first=batch_first)
        *rest, projection = weights
        w_ih, w_hh, b_ih, b_hh = rest if self.bias else (*rest, None, None)

        def step(x_t: Array, h: Array, c: Array) -> tuple[Array, Array]:
            h, c = lstm_step(x_t, h, c, w_ih, w_hh, b_ih, b_hh)
            return linear_p(h, projection), c

        return unrolled(step, x, (states[0], states[1]), lengths, reverse, batch_first)

    def forward(
        self, input: TensorLike, hx: Sequence[TensorLike] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        y, states = self._forward(input, None if hx is None else list(hx))
        return y, tuple(states)


class GRU(_Recurrent):
    """Gated recurrent unit (Cho et al. 2014); called as `LSTM`, with one state h.

    As in PyTorch the reset gate is applied after the product with the hidden state.

    Example:
        >>> import glassgrad as gg
        >>> y, h = gg.nn.GRU(3, 4, num_layers=2, batch_first=True)(gg.zeros(2, 5, 3))
        >>> y.shape, h.shape
        ((2, 5, 4), (2, 2, 4))
    """

    gates = 3

    def _layer(
        self, x: Array, states: list[Array], weights: list[Array], lengths: Array, reverse: bool, batch_first: bool
    ) -> tuple[Array, ...]:
        return _call(gru_p, x, states, weights, lengths, reverse=reverse, batch_first=batch_first)

    def forward(self, input: TensorLike, hx: TensorLike | None = None) -> tuple[Tensor, Tensor]:
        y, states = self._forward(input, None if hx is None else [hx])
        return y, states[0]


class RNN(_Recurrent):
    """The plain recurrent network (Elman 1990), `nonlinearity` "tanh" or "relu"; called as `LSTM`, with one state.

    Example:
        >>> import glassgrad as gg
        >>> y, h = gg.nn.RNN(3, 4, bidirectional=True, batch_first=True)(gg.zeros(2, 5, 3))
        >>> y.shape, h.shape
        ((2, 5, 8), (2, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        if nonlinearity not in {"tanh", "relu"}:
            raise bad_option("RNN", "nonlinearity", nonlinearity, "'tanh' or 'relu'")
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        self.nonlinearity = nonlinearity

    def _layer(
        self, x: Array, states: list[Array], weights: list[Array], lengths: Array, reverse: bool, batch_first: bool
    ) -> tuple[Array, ...]:
        rectified = self.nonlinearity == "relu"
        return _call(rnn_p, x, states, weights, lengths, reverse=reverse, batch_first=batch_first, rectified=rectified)

    def forward(self, input: TensorLike, hx: TensorLike | None = None) -> tuple[Tensor, Tensor]:
        y, states = self._forward(input, None if hx is None else [hx])
        return y, states[0]


__all__ = ["GRU", "LSTM", "RNN"]
