"""Multi-head attention (Vaswani et al. 2017), with PyTorch's parameters and masks."""

from __future__ import annotations

import math

import numpy as np

from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn import init
from glassgrad.nn.functional import attention as F
from glassgrad.nn.functional.drop import dropout
from glassgrad.nn.layers.linear import Linear
from glassgrad.nn.module import Module
from glassgrad.nn.parameter import Parameter
from glassgrad.ops import elementwise as ew
from glassgrad.ops.arrange import pad
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.fused import linear_p
from glassgrad.ops.linalg import matmul
from glassgrad.ops.reduce import mean, softmax_p
from glassgrad.ops.shape import cat


class MultiheadAttention(Module):
    """Attention of several heads, each on its part of the width, followed by a linear map.

    Args:
        embed_dim: width of queries and of the result.
        num_heads: heads; divides `embed_dim`.
        dropout: probability of dropping a weight, in training.
        bias: whether the linear maps have one.
        add_bias_kv: add a learned place to keys and values.
        add_zero_attn: add a place of zeros to keys and values.
        kdim, vdim: widths of keys and values, `embed_dim` by default.
        batch_first: whether batches come first, (N, L, E), or second, (L, N, E).

    Example:
        >>> import glassgrad as gg
        >>> attention = gg.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> x = gg.zeros(3, 5, 8)
        >>> y, weights = attention(x, x, x)
        >>> y.shape, weights.shape
        ((3, 5, 8), (3, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        devices.check(device)
        super().__init__()
        if num_heads <= 0 or embed_dim % num_heads:
            raise bad_option("MultiheadAttention", "num_heads", num_heads, f"a divisor of embed_dim={embed_dim}")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn

        def parameter(*shape: int) -> Parameter:
            return Parameter(creation.empty(*shape, dtype=dtype).array)

        same = self.kdim == embed_dim == self.vdim
        self.q_proj_weight = None if same else parameter(embed_dim, embed_dim)
        self.k_proj_weight = None if same else parameter(embed_dim, self.kdim)
        self.v_proj_weight = None if same else parameter(embed_dim, self.vdim)
        self.in_proj_weight = parameter(3 * embed_dim, embed_dim) if same else None
        self.in_proj_bias = parameter(3 * embed_dim) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights; biases start at 0."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None and self.out_proj.bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Array, Array]:
        """Return the attention's output, and the weights (or None).

        Args:
            query: (L, E), or (L, N, E), or (N, L, E) with `batch_first`; key and value alike with length S.
            key, value: see `query`.
            key_padding_mask: (N, S) booleans that are true where a key is to be ignored, or numbers to add.
            need_weights: whether weights are returned; False takes a faster path.
            attn_mask: (L, S) or (N * heads, L, S) booleans that are true where attention is NOT allowed, or
                numbers to add.
            average_attn_weights: return the mean over heads, (N, L, S), or all of them, (N, heads, L, S).
            is_causal: place i sees the places up to i only.
        """
        alone = len(query.shape) == 2
        if alone:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            shared_kv, shared_qk = key is value, query is key
            query = query.transpose(0, 1)
            key = query if shared_qk else key.transpose(0, 1)
            value = key if shared_kv else value.transpose(0, 1)
        q, k, v = self._project(query, key, value)
        k, v, added = self._extend(k, v)
        mask = self._mask(attn_mask, key_padding_mask, added, q)
        # With a given mask, `is_causal` only describes the mask, as in PyTorch.
        causal = is_causal and mask is None
        if is_causal and attn_mask is None and mask is not None:
            mask = mask + _causal(q.shape[1], k.shape[1], q.dtype)
        y, weights = self._attend(self._heads(q), self._heads(k), self._heads(v), mask, causal, need_weights)
        y = self.out_proj(y.transpose(1, 2).reshape(q.shape[0], q.shape[1], self.embed_dim))
        if weights is not None and average_attn_weights:
            weights = mean(weights, 1)
        if alone:
            return y.squeeze(0), None if weights is None else weights.squeeze(0)
        return (y if self.batch_first else y.transpose(0, 1)), weights

    def _project(self, query: Array, key: Array, value: Array) -> tuple[Array, Array, Array]:
        """Map queries, keys and values to the width of the heads, in one product if they are one tensor."""
        bias, width = self.in_proj_bias, self.embed_dim
        if self.in_proj_weight is not None and query is key and key is value:
            parts = () if bias is None else (bias,)
            joined = linear_p(query, self.in_proj_weight, *parts)
            return joined[..., :width], joined[..., width : 2 * width], joined[..., 2 * width :]
        separate = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        mapped = []
        for at, (x, own) in enumerate(zip((query, key, value), separate, strict=True)):
            rows = slice(at * width, (at + 1) * width)
            weight = own if self.in_proj_weight is None else self.in_proj_weight[rows]
            mapped.append(linear_p(x, weight) if bias is None else linear_p(x, weight, bias[rows]))
        return mapped[0], mapped[1], mapped[2]

    def _extend(self, k: Array, v: Array) -> tuple[Array, Array, int]:
        """Add the learned place and the one of zeros; return how many were added."""
        added = 0
        batch = k.shape[0]
        if self.bias_k is not None and self.bias_v is not None:
            k = cat([k, self.bias_k.expand(batch, 1, self.embed_dim)], 1)
            v = cat([v, self.bias_v.expand(batch, 1, self.embed_dim)], 1)
            added += 1
        if self.add_zero_attn:
            zeros = np.zeros((batch, 1, self.embed_dim), k.dtype)
            k, v = cat([k, zeros], 1), cat([v, zeros], 1)
            added += 1
        return k, v, added

    def _heads(self, x: Array) -> Array:
        """(N, L, E) to (N, heads, L, E / heads)."""
        return x.reshape(x.shape[0], x.shape[1], self.num_heads, self.head_dim).transpose(1, 2)

    def _mask(self, attn_mask: Array, padding: Array, added: int, q: Array) -> Array:
        """Return numbers to add to the scores (N, heads, L, S), or None."""
        batch = q.shape[0]
        mask = None
        if attn_mask is not None:
            mask = _added(attn_mask, q.dtype)
            if len(mask.shape) == 3:
                mask = mask.reshape(batch, self.num_heads, *mask.shape[1:])
            mask = pad(mask, (0, added)) if added else mask
        if padding is not None:
            columns = _added(padding, q.dtype)
            columns = pad(columns, (0, added)) if added else columns
            columns = columns.reshape(batch, 1, 1, columns.shape[1])
            mask = columns if mask is None else mask + columns
        return mask

    def _attend(
        self, q: Array, k: Array, v: Array, mask: Array, causal: bool, need_weights: bool
    ) -> tuple[Array, Array]:
        rate = self.dropout if self.training else 0.0
        if not need_weights:
            return F.scaled_dot_product_attention(q, k, v, mask, rate, causal), None
        scores = matmul(q * (1 / math.sqrt(self.head_dim)), k.transpose(-1, -2))
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


__all__ = ["MultiheadAttention"]
