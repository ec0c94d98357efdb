"""Attention as a function (Vaswani et al. 2017)."""

from __future__ import annotations

import math

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.random import bernoulli_mask
from glassgrad.ops.arrange import repeat_interleave
from glassgrad.ops.complex_input import guard_all
from glassgrad.ops.core import Array
from glassgrad.ops.fused_attention import attention_p
from glassgrad.ops.shape import astype


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    """softmax(q kT * scale + mask) v: query (..., L, E), key (..., S, E), value (..., S, V) to (..., L, V).

    Args:
        query, key, value: the queries, the keys they are compared with, and the values to average.
        attn_mask: booleans that are true where attention is allowed, or numbers that are added to the scores;
            broadcast to (..., L, S). A row without any allowed place gives 0.
        dropout_p: probability of dropping a weight; applied whenever it is not 0, as in PyTorch.
        is_causal: place i sees the places up to i only.
        scale: factor of the scores, 1 / sqrt(E) by default.
        enable_gqa: key and value may have fewer heads (dimension -3), each shared by several of query.

    Raises:
        ArgumentError: a mask together with `is_causal`.

    Example:
        >>> import glassgrad as gg
        >>> q = k = v = gg.ones(1, 2, 4)
        >>> gg.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).shape
        (1, 2, 4)
    """
    if attn_mask is not None and is_causal:
        raise errors.MASK_AND_CAUSAL(where=provenance.here())
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        key = repeat_interleave(key, query.shape[-3] // key.shape[-3], -3)
        value = repeat_interleave(value, query.shape[-3] // value.shape[-3], -3)
    extra = []
    if attn_mask is not None:
        extra.append(attn_mask)
    if dropout_p:
        lead = np.broadcast_shapes(*(tuple(x.shape[:-2]) for x in (query, key)))
        kept = bernoulli_mask(1 - dropout_p, (*lead, query.shape[-2], key.shape[-2]))
        extra.append(astype(kept, query.dtype) * (1 / (1 - dropout_p) if dropout_p < 1 else 0.0))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    return attention_p(
        query,
        key,
        value,
        *extra,
        scale=factor,
        causal=bool(is_causal),
        masked=attn_mask is not None,
        dropped=bool(dropout_p),
    )


__all__ = ["scaled_dot_product_attention"]

guard_all(globals(), __all__)
