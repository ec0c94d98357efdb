"""A character model with one hidden layer."""

from __future__ import annotations

from glassgrad import nn
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor


class NamesMLP(nn.Module):
    """Predicts the next character from the embeddings of the last few: tanh(batch_norm(W1 [e1 .. ec])) W2.

    The architecture is that of Bengio et al., "A Neural Probabilistic Language Model" (2003), with batch normalisation
    added. With the defaults it has 12,297 parameters.

    Shapes: tokens (batch, context) of int64 to logits (batch, tokens).

    Example:
        >>> import glassgrad as gg
        >>> gg.models.NamesMLP(tokens=27, context=3)(gg.tensor([[0, 5, 13], [1, 1, 2]])).shape
        (2, 27)
    """

    def __init__(
        self,
        tokens: int = 27,
        context: int = 3,
        embedding: int = 10,
        hidden: int = 200,
        norm_momentum: float = 0.01,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, embedding)
        self.hidden = nn.Linear(context * embedding, hidden)
        self.norm = nn.BatchNorm1d(hidden, momentum=norm_momentum)
        self.output = nn.Linear(hidden, tokens)
        self.reset_parameters(generator)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw the initial weights: unit embeddings, a gain of 5/3 before the tanh, and small logits."""
        nn.init.normal_(self.embedding.weight, generator=generator)
        nn.init.normal_(self.hidden.weight, std=5 / 3 / self.hidden.in_features**0.5, generator=generator)
        nn.init.normal_(self.output.weight, std=0.1, generator=generator)
        for layer in (self.hidden, self.output):
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        embedded = self.embedding(tokens).flatten(1)
        logits: Tensor = self.output(self.norm(self.hidden(embedded)).tanh())
        return logits
