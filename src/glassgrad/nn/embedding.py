"""Embedding: a table of vectors, looked up by integers."""

from __future__ import annotations

from typing import Any

from glassgrad import creation
from glassgrad.nn import functional as F
from glassgrad.nn import init
from glassgrad.nn.module import Module, Parameter


class Embedding(Module):
    """Integers (...) to vectors (..., embedding_dim); the table is drawn from a standard normal.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: width of a vector.
        padding_idx: a row that starts at zero and gets no gradient.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.weight = Parameter(creation.empty(num_embeddings, embedding_dim, dtype=dtype).array)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.array[self.padding_idx] = 0

    def forward(self, index: Any) -> Any:
        return F.embedding(index, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
