"""One step of each recurrent network, as layers."""

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
from glassgrad.nn.module import Module
from glassgrad.nn.parameter import Parameter
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.recurrent_steps import gru_step, lstm_step, rnn_step


class _Cell(Module):
    """Base of the cells: called with (N, inputs) or (inputs,), and optionally the previous state."""

    gates = 1
    states = 1

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: DType = None
    ) -> None:
        devices.check(device)
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(creation.empty(rows, input_size, dtype=dtype).array)
        self.weight_hh = Parameter(creation.empty(rows, hidden_size, dtype=dtype).array)
        self.bias_ih = Parameter(creation.empty(rows, dtype=dtype).array) if bias else None
        self.bias_hh = Parameter(creation.empty(rows, dtype=dtype).array) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights, uniformly from ±1/sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    if TYPE_CHECKING:  # each cell says how it steps

        def _step(self, x: Array, *states: Array) -> tuple[Array, ...]: ...

    def _forward(self, input: Array, given: tuple[Array, ...] | None) -> tuple[Array, ...]:
        if len(input.shape) not in (1, 2) or input.shape[-1] != self.input_size:
            raise errors.WRONG_INPUT(
                layer=repr(self),
                expected=f"(N, {self.input_size}) or ({self.input_size},)",
                given=tuple(input.shape),
                where=provenance.here(2),
            )
        if given is None:
            shape = (*input.shape[:-1], self.hidden_size)
            given = tuple(make(np.zeros(shape, input.dtype), None, False) for _ in range(self.states))
        return self._step(input, *given)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class LSTMCell(_Cell):
    """One step of `LSTM`: returns the new (h, c).

    Example:
        >>> import glassgrad as gg
        >>> h, c = gg.nn.LSTMCell(3, 4)(gg.zeros(2, 3))
        >>> h.shape, c.shape
        ((2, 4), (2, 4))
    """

    gates = 4
    states = 2

    def _step(self, x: Array, *states: Array) -> tuple[Array, ...]:
        return lstm_step(x, states[0], states[1], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def forward(self, input: TensorLike, hx: Sequence[TensorLike] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._forward(input, None if hx is None else tuple(hx))
        return h, c


class GRUCell(_Cell):
    """One step of `GRU`: returns the new h.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.GRUCell(3, 4)(gg.zeros(2, 3), gg.zeros(2, 4)).shape
        (2, 4)
    """

    gates = 3

    def _step(self, x: Array, *states: Array) -> tuple[Array, ...]:
        return gru_step(x, states[0], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def forward(self, input: TensorLike, hx: TensorLike | None = None) -> Tensor:
        return self._forward(input, None if hx is None else (hx,))[0]


class RNNCell(_Cell):
    """One step of `RNN`: returns the new h.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.RNNCell(3, 4)(gg.zeros(2, 3)).shape
        (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        if nonlinearity not in {"tanh", "relu"}:
            raise bad_option("RNNCell", "nonlinearity", nonlinearity, "'tanh' or 'relu'")
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def _step(self, x: Array, *states: Array) -> tuple[Array, ...]:
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return rnn_step(x, states[0], *weights, self.nonlinearity == "relu")

    def forward(self, input: TensorLike, hx: TensorLike | None = None) -> Tensor:
        return self._forward(input, None if hx is None else (hx,))[0]

    def extra_repr(self) -> str:
        kind = "" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}"
        return super().extra_repr() + kind


__all__ = ["GRUCell", "LSTMCell", "RNNCell"]
