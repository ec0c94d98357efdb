"""Recurrent character models."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad import nn
from glassgrad.engine.mode import no_grad
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors.creation import from_numpy
from glassgrad.nn import functional as F

Array = np.ndarray

CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


class CharRNN(nn.Module):
    """Predicts the next token at every place of a sequence from a recurrent state.

    The state is that of a plain recurrent network (Elman 1990), an LSTM (Hochreiter and Schmidhuber 1997) or a GRU
    (Cho et al. 2014); see Graves, "Generating Sequences With Recurrent Neural Networks" (2013).

    Arguments: the number of tokens; the cell, "rnn", "lstm" or "gru"; the width of the embedding and of the state;
    layers; the probability of dropout, in training, before every layer and the output.

    Shapes: tokens (batch, length) of int64 to logits (batch, length, tokens).

    Example:
        >>> import glassgrad as gg
        >>> CharRNN(tokens=5, cell="gru", hidden=8)(gg.zeros(3, 7, dtype=gg.int64)).shape
        (3, 7, 5)
    """

    def __init__(
        self,
        tokens: int = 27,
        cell: str = "lstm",
        embedding: int = 32,
        hidden: int = 128,
        layers: int = 1,
        dropout: float = 0.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.embedding = nn.Embedding(tokens, embedding)
        between = dropout if layers > 1 else 0.0
        self.network = CELLS[cell](embedding, hidden, num_layers=layers, batch_first=True, dropout=between)
        self.output = nn.Linear(hidden, tokens)
        self.reset_parameters(generator)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw the initial weights: unit embeddings, PyTorch's initialisation of the network, and small logits."""
        nn.init.normal_(self.embedding.weight, generator=generator)
        bound = self.network.hidden_size**-0.5
        for parameter in self.network.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
        nn.init.normal_(self.output.weight, std=0.1 * bound, generator=generator)
        if self.output.bias is not None:
            nn.init.zeros_(self.output.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.read(tokens, None)[0]

    def read(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Read tokens (batch, length) from a state (None initially); return logits and the state after them."""
        outputs, state = self.network(self._dropped(self.embedding(tokens)), state)
        return self.output(self._dropped(outputs)), state

    def _dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if self.dropout else x

    def decoder(self) -> CharRNNDecoder:
        """Return a `glassgrad.data.generate.Decoder` of this model, which should be in evaluation mode."""
        return CharRNNDecoder(self)


class CharRNNDecoder:
    """Keep the state of the network, so that each token is read once."""

    def __init__(self, model: CharRNN) -> None:
        self._model = model
        self._state: Any = None

    def read(self, tokens: Array) -> Array:
        """Append tokens (sequences, n) and return the logits (sequences, tokens) of the token after them."""
        with no_grad():
            logits, self._state = self._model.read(from_numpy(tokens), self._state)
        found: Array = logits.numpy()[:, -1]
        return found

    def keep(self, rows: Array) -> None:
        """Keep only these rows of the sequences."""
        parts = self._state if isinstance(self._state, tuple) else (self._state,)
        kept = tuple(from_numpy(np.ascontiguousarray(part.numpy()[:, rows])) for part in parts)
        self._state = kept if isinstance(self._state, tuple) else kept[0]
