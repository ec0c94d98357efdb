"""Distances and similarities between vectors, with PyTorch's names."""

from __future__ import annotations

import numpy as np

from glassgrad.ops.arrange import broadcast_tensors
from glassgrad.ops.complex_input import guard_all, takes_complex
from glassgrad.ops.compound import clip
from glassgrad.ops.core import Array, bad_option
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


def pdist(input: Array, p: float = 2.0) -> Array:
    """The distances in the norm `p` of all pairs of rows of (n, d), as `cdist` has them: (n (n - 1) / 2,).

    Raises:
        ArgumentError: the input is no matrix.
    """
    if len(input.shape) != 2:
        raise bad_option("pdist", "input", tuple(input.shape), "a matrix (n, d)")
    first, second = np.triu_indices(input.shape[0], 1)
    return vector_norm(input[first] - input[second], p, -1)


__all__ = ["cdist", "cosine_similarity", "pairwise_distance", "pdist"]

guard_all(globals(), __all__)
