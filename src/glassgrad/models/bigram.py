"""The simplest character model: a table."""

from __future__ import annotations

from glassgrad import nn
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor


class Bigram(nn.Module):
    """Predicts the next character from the last one alone, by looking up its logits in a table.

    Shapes: tokens (batch, context) of int64, of which only the last is used, to logits (batch, tokens).

    Example:
        >>> import glassgrad as gg
        >>> gg.models.Bigram(tokens=27)(gg.tensor([[0], [5]])).shape
        (2, 27)
    """

    def __init__(self, tokens: int = 27, generator: Generator | None = None) -> None:
        super().__init__()
        self.logits = nn.Embedding(tokens, tokens)
        nn.init.zeros_(self.logits.weight)  # every character is equally likely at the start

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.logits(tokens[:, -1])
        return logits
