"""Attention as a function (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.random import bernoulli_mask
from glassgrad.engine.tensors.devices import DType
from glassgrad.nn.functional.drop import dropout
from glassgrad.ops import elementwise as ew
from glassgrad.ops.arrange import pad, repeat_interleave
from glassgrad.ops.complex_input import guard_all
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.fused import linear_p
from glassgrad.ops.fused_attention import attention_p
from glassgrad.ops.linalg import matmul
from glassgrad.ops.reduce import mean, softmax_p
from glassgrad.ops.shape import astype, cat


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


# --- several heads --------------------------------------------------------------------------------


class Heads(NamedTuple):
    """What attention of several heads computes with: the attributes that `nn.MultiheadAttention` has as well."""

    embed_dim: int
    num_heads: int
    head_dim: int
    in_proj_weight: Array | None
    in_proj_bias: Array | None
    bias_k: Array | None
    bias_v: Array | None
    add_zero_attn: bool
    dropout: float
    out_proj: Callable[[Array], Array]
    training: bool
    q_proj_weight: Array | None
    k_proj_weight: Array | None
    v_proj_weight: Array | None
    static_k: Array | None
    static_v: Array | None
    batch_first: bool = False


def multi_head_attention_forward(
    query: Array,
    key: Array,
    value: Array,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Array | None,
    in_proj_bias: Array | None,
    bias_k: Array | None,
    bias_v: Array | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Array,
    out_proj_bias: Array | None,
    training: bool = True,
    key_padding_mask: Array | None = None,
    need_weights: bool = True,
    attn_mask: Array | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Array | None = None,
    k_proj_weight: Array | None = None,
    v_proj_weight: Array | None = None,
    static_k: Array | None = None,
    static_v: Array | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Array, Array | None]:
    """Return the output of `nn.MultiheadAttention` with these weights, and the weights of its attention (or None).

    Args:
        query: (L, N, E) or (L, E); key and value alike with length S.
        key, value: see `query`.
        embed_dim_to_check: E.
        num_heads: heads; divides E.
        in_proj_weight, in_proj_bias: (3 E, E) and (3 E,), the maps of query, key and value.
        bias_k, bias_v: (1, 1, E), a place added to keys and values.
        add_zero_attn: add a place of zeros to keys and values.
        dropout_p: probability of dropping a weight, in training.
        out_proj_weight, out_proj_bias: (E, E) and (E,), the last map.
        key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal: those of the layer's call.
        use_separate_proj_weight: take the following three weights instead of `in_proj_weight`.
        q_proj_weight, k_proj_weight, v_proj_weight: (E, E), (E, K) and (E, V).
        static_k, static_v: (N * heads, S, E / heads), used instead of mapped keys and values.

    Raises:
        ArgumentError: the width is not `embed_dim_to_check`, or the heads do not divide it.
    """
    width = query.shape[-1]
    if width != embed_dim_to_check or num_heads < 1 or width % num_heads:
        expected = f"heads that divide {width}, the width of the query, and embed_dim_to_check={width}"
        raise bad_option("multi_head_attention_forward", "num_heads", num_heads, expected)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else (None, None, None)
    beside = () if out_proj_bias is None else (out_proj_bias,)
    joined = None if use_separate_proj_weight else in_proj_weight
    added = (bias_k, bias_v, add_zero_attn)
    sizes = (width, num_heads, width // num_heads)
    last = (dropout_p, lambda y: linear_p(y, out_proj_weight, *beside), training)
    of = Heads(*sizes, joined, in_proj_bias, *added, *last, *separate, static_k, static_v)
    return attend(of, query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal)


def attend(
    of: Heads,
    query: Array,
    key: Array,
    value: Array,
    key_padding_mask: Array | None,
    need_weights: bool,
    attn_mask: Array | None,
    average_attn_weights: bool,
    is_causal: bool,
) -> tuple[Array, Array]:
    """Compute attention with the weights of a layer, or of `Heads`."""
    alone = len(query.shape) == 2
    if alone:
        query, key, value = (x.unsqueeze(0) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    elif not of.batch_first:
        shared_kv, shared_qk = key is value, query is key
        query = query.transpose(0, 1)
        key = query if shared_qk else key.transpose(0, 1)
        value = key if shared_kv else value.transpose(0, 1)
    q, k, v = _project(of, query, key, value)
    k, v, added = _extend(of, k, v)
    mask = _mask(of, attn_mask, key_padding_mask, added, q)
    # With a given mask, `is_causal` only describes the mask, as in PyTorch.
    causal = is_causal and mask is None
    if is_causal and attn_mask is None and mask is not None:
        mask = mask + _causal(q.shape[1], k.shape[1], q.dtype)
    y, weights = _attend(of, _heads(of, q), _heads(of, k), _heads(of, v), mask, causal, need_weights)
    y = of.out_proj(y.transpose(1, 2).reshape(q.shape[0], q.shape[1], of.embed_dim))
    if weights is not None and average_attn_weights:
        weights = mean(weights, 1)
    if alone:
        return y.squeeze(0), None if weights is None else weights.squeeze(0)
    return (y if of.batch_first else y.transpose(0, 1)), weights


def _project(of: Heads, query: Array, key: Array, value: Array) -> tuple[Array, Array, Array]:
    """Map queries, keys and values to the width of the heads, in one product if they are one tensor."""
    bias, width = of.in_proj_bias, of.embed_dim
    one = query is key and key is value and of.static_k is None and of.static_v is None
    if of.in_proj_weight is not None and one:
        parts = () if bias is None else (bias,)
        joined = linear_p(query, of.in_proj_weight, *parts)
        return joined[..., :width], joined[..., width : 2 * width], joined[..., 2 * width :]
    separate = (of.q_proj_weight, of.k_proj_weight, of.v_proj_weight)
    mapped = []
    for at, (x, own) in enumerate(zip((query, key, value), separate, strict=True)):
        rows = slice(at * width, (at + 1) * width)
        weight = own if of.in_proj_weight is None else of.in_proj_weight[rows]
        mapped.append(linear_p(x, weight) if bias is None else linear_p(x, weight, bias[rows]))
    for at, static in ((1, of.static_k), (2, of.static_v)):
        if static is not None:  # (N * heads, S, E / heads)
            apart = static.reshape(query.shape[0], of.num_heads, *static.shape[1:])
            mapped[at] = apart.transpose(1, 2).reshape(query.shape[0], -1, width)
    return mapped[0], mapped[1], mapped[2]


def _extend(of: Heads, k: Array, v: Array) -> tuple[Array, Array, int]:
    """Add the learned place and the one of zeros; return how many were added."""
    added = 0
    batch = k.shape[0]
    if of.bias_k is not None and of.bias_v is not None:
        k = cat([k, of.bias_k.expand(batch, 1, of.embed_dim)], 1)
        v = cat([v, of.bias_v.expand(batch, 1, of.embed_dim)], 1)
        added += 1
    if of.add_zero_attn:
        zeros = np.zeros((batch, 1, of.embed_dim), k.dtype)
        k, v = cat([k, zeros], 1), cat([v, zeros], 1)
        added += 1
    return k, v, added


def _heads(of: Heads, x: Array) -> Array:
    """(N, L, E) to (N, heads, L, E / heads)."""
    return x.reshape(x.shape[0], x.shape[1], of.num_heads, of.head_dim).transpose(1, 2)


def _mask(of: Heads, attn_mask: Array, padding: Array, added: int, q: Array) -> Array:
    """Return numbers to add to the scores (N, heads, L, S), or None."""
    batch = q.shape[0]
    mask = None
    if attn_mask is not None:
        mask = _added(attn_mask, q.dtype)
        if len(mask.shape) == 3:
            mask = mask.reshape(batch, of.num_heads, *mask.shape[1:])
        mask = pad(mask, (0, added)) if added else mask
    if padding is not None:
        columns = _added(padding, q.dtype)
        columns = pad(columns, (0, added)) if added else columns
        columns = columns.reshape(batch, 1, 1, columns.shape[1])
        mask = columns if mask is None else mask + columns
    return mask


def _attend(
    of: Heads, q: Array, k: Array, v: Array, mask: Array, causal: bool, need_weights: bool
) -> tuple[Array, Array]:
    rate = of.dropout if of.training else 0.0
    if not need_weights:
        return scaled_dot_product_attention(q, k, v, mask, rate, causal), None
    scores = matmul(q * (1 / math.sqrt(of.head_dim)), k.transpose(-1, -2))
    if causal:
        mask = _causal(q.shape[2], k.shape[2], q.dtype)
    weights = softmax_p(scores if mask is None else scores + mask, axis=3)
    weights = dropout(weights, rate, rate > 0)
    return matmul(weights, v), weights


def _added(mask: Array, dtype: DType) -> Array:
    """Return a mask as numbers to add to scores: -inf where a boolean one is true."""
    return ew.where(mask, np.asarray(-math.inf, dtype), np.asarray(0, dtype)) if mask.dtype.kind == "b" else mask


def _causal(rows: int, columns: int, dtype: DType) -> Array:
    return np.where(np.tri(rows, columns, dtype=np.bool_), np.asarray(0, dtype), np.asarray(-math.inf, dtype))


__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

guard_all(globals(), __all__)
