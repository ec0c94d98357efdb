"""Distances and similarities as layers."""

from __future__ import annotations

from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.nn.functional.distance import cosine_similarity, pairwise_distance
from glassgrad.nn.module import Module


class CosineSimilarity(Module):
    """x1 . x2 / (|x1| |x2|) along `dim`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.CosineSimilarity()(gg.tensor([[3.0, 4.0]]), gg.tensor([[4.0, 3.0]]))
        tensor([0.96])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: TensorLike, x2: TensorLike) -> Tensor:
        return cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The norm of x1 - x2 + eps along the last dimension.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.PairwiseDistance()(gg.tensor([[3.0, 4.0]]), gg.zeros(1, 2))
        tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: TensorLike, x2: TensorLike) -> Tensor:
        return pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


__all__ = ["CosineSimilarity", "PairwiseDistance"]
