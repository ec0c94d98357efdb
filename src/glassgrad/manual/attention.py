"""Scaled dot-product attention."""

from __future__ import annotations

import numpy as np

from glassgrad.manual.activations import softmax
from glassgrad.manual.protocols import Array, Module


class ScaledDotProductAttention(Module):
    """y = softmax(q kᵀ / √e) v: each query gets a mean of the values, weighted by how well their keys match.

    Shapes: q (..., l, e), k (..., s, e), v (..., s, f), y (..., l, f). With a = 1/√e:

        z = a q kᵀ             (..., l, s)
        p = softmax(z)         (..., l, s), along s
        y = p v                (..., l, f)

        dv = pᵀ dy             (..., s, f)           as in a linear layer, where p is the input
        dp = dy vᵀ             (..., l, s)
        dz = p · (dp - sum(dp · p))                  the softmax, along s
        dq = a dz k            (..., l, e)
        dk = a dzᵀ q           (..., s, e)

    A masked place has z = -inf, so p = 0, and dz = 0 follows by itself. `mask` is True where attention is
    allowed (or is added to z if it holds floats); `is_causal` allows the places up to the query's own.

    Source: Vaswani et al., "Attention Is All You Need" (2017), equation 1.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> attention = manual.ScaledDotProductAttention()
        >>> q, k, v = np.ones((2, 4)), np.ones((3, 4)), np.ones((3, 5))
        >>> attention.forward(q, k, v).shape
        (2, 5)
    """

    def __init__(self, is_causal: bool = False) -> None:
        self.is_causal = is_causal

    def forward(self, q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
        scale = q.dtype.type(1 / np.sqrt(q.shape[-1]))
        z = scale * (q @ k.swapaxes(-1, -2))
        if self.is_causal:
            z = np.where(np.tri(q.shape[-2], k.shape[-2], dtype=bool), z, -np.inf).astype(z.dtype, copy=False)
        if mask is not None:
            z = np.where(mask, z, -np.inf).astype(z.dtype, copy=False) if mask.dtype == bool else z + mask
        p = softmax(z, -1)
        self.saved = (q, k, v, p, scale)
        return p @ v

    def backward(self, dout: Array) -> tuple[Array, Array, Array]:
        q, k, v, p, scale = self.saved
        dv = p.swapaxes(-1, -2) @ dout
        dp = dout @ v.swapaxes(-1, -2)
        dz = p * (dp - (dp * p).sum(axis=-1, keepdims=True))
        return scale * (dz @ k), scale * (dz.swapaxes(-1, -2) @ q), dv
