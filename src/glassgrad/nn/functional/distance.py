"""Distances and similarities between vectors, with PyTorch's names."""

from __future__ import annotations

from glassgrad.ops.arrange import broadcast_tensors
from glassgrad.ops.complex_input import guard_all, takes_complex
from glassgrad.ops.compound import clip
from glassgrad.ops.core import Array
from glassgrad.ops.linalg import cdist
from glassgrad.ops.norms import vector_norm
from glassgrad.ops.reduce import sum


def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`; the other dimensions broadcast."""
    # Broadcast first: `dim` refers to the broadcast shape.
    x1, x2 = broadcast_tensors(x1, x2)
    product = sum(x1 * x2, dim)
    sizes = [clip(vector_norm(x, 2, dim), eps) for x in (x1, x2)]
    return product / (sizes[0] * sizes[1])


@takes_complex
def pairwise_distance(x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Array:
    """|x1 - x2 + eps| in the norm `p`, along the last dimension: row by row."""
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


__all__ = ["cdist", "cosine_similarity", "pairwise_distance"]

guard_all(globals(), __all__)
