"""Multi-head attention (Vaswani et al. 2017), with PyTorch's parameters and masks."""

from __future__ import annotations

from typing import cast

from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn import init
from glassgrad.nn.functional import attention as F
from glassgrad.nn.layers.linear import Linear
from glassgrad.nn.module import Module
from glassgrad.nn.parameter import Parameter
from glassgrad.ops.core import Array, bad_option


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

    static_k = static_v = None  # of `multi_head_attention_forward` alone

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
        options = (key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal)
        return F.attend(cast("F.Heads", self), query, key, value, *options)


__all__ = ["MultiheadAttention"]
