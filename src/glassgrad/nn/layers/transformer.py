"""The layers of Vaswani et al. 2017, with PyTorch's options and names."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn import init
from glassgrad.nn.containers import ModuleList
from glassgrad.nn.functional import activation as functional_activation
from glassgrad.nn.layers.attention import MultiheadAttention
from glassgrad.nn.layers.dropout import Dropout
from glassgrad.nn.layers.linear import Linear
from glassgrad.nn.layers.norm import LayerNorm
from glassgrad.nn.module import Module
from glassgrad.ops.core import Array, bad_option

_Function = Callable[[Array], Array]


def _activation(given: str | _Function, owner: str) -> _Function:
    if callable(given):
        return given
    known: dict[str, _Function] = {"relu": functional_activation.relu, "gelu": functional_activation.gelu}
    if given not in known:
        raise bad_option(owner, "activation", given, "'relu', 'gelu' or a function")
    return known[given]


class _Layer(Module):
    """Base of the layers of encoder and decoder: attention, two linear maps, a norm and a dropout for each part."""

    crossed = False  # whether it also attends to an encoder's output

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | _Function = functional_activation.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        devices.check(device)
        super().__init__()
        attention: dict[str, Any] = {"dropout": dropout, "bias": bias, "batch_first": batch_first, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        if self.crossed:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        parts = range(1, 4 if self.crossed else 3)
        for part in parts:
            setattr(self, f"norm{part}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype))
        for part in parts:
            setattr(self, f"dropout{part}", Dropout(dropout))
        self.activation = _activation(activation, type(self).__name__)


class TransformerEncoderLayer(_Layer):
    """Self-attention and a network of two linear maps, each added to its input and normalised.

    Args:
        d_model: width.
        nhead: heads of the attention.
        dim_feedforward: hidden width.
        dropout: probability, in training.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: added to the variance.
        batch_first: whether batches come first, (N, L, E), or second, (L, N, E).
        norm_first: normalise the input of each part instead of the sum.
        bias: whether linear maps and norms have one.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
        >>> layer(gg.zeros(1, 5, 8)).shape
        (1, 5, 8)
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output; masks as in `MultiheadAttention`."""
        if self.norm_first:
            src = src + self._attended(self.norm1(src), src_mask, src_key_padding_mask, is_causal)
            return src + self._fed(self.norm2(src))
        src = self.norm1(src + self._attended(src, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(src + self._fed(src))

    def _attended(self, x: Array, mask: Array, padding: Array, causal: bool) -> Array:
        y, _ = self.self_attn(x, x, x, padding, False, mask, is_causal=causal)
        return self.dropout1(y)

    def _fed(self, x: Array) -> Array:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, and a network of two linear maps.

    Arguments as for `TransformerEncoderLayer`.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
        >>> layer(gg.zeros(1, 3, 8), gg.zeros(1, 5, 8)).shape
        (1, 3, 8)
    """

    crossed = True

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output for the targets so far and the encoder's output, `memory`."""

        def own(x: Array) -> Array:
            y, _ = self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)
            return self.dropout1(y)

        def crossed(x: Array) -> Array:
            y, _ = self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )
            return self.dropout2(y)

        for part, norm in ((own, self.norm1), (crossed, self.norm2), (self._fed, self.norm3)):
            tgt = tgt + part(norm(tgt)) if self.norm_first else norm(tgt + part(tgt))
        return tgt

    def _fed(self, x: Array) -> Array:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer, and a last norm if one is given.

    Example:
        >>> import glassgrad as gg
        >>> encoder = gg.nn.TransformerEncoder(gg.nn.TransformerEncoderLayer(8, 2, 16), num_layers=2)
        >>> encoder(gg.zeros(5, 1, 8)).shape
        (5, 1, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return the output of the last layer; masks as in `MultiheadAttention`."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer, and a last norm if one is given.

    Example:
        >>> import glassgrad as gg
        >>> decoder = gg.nn.TransformerDecoder(gg.nn.TransformerDecoderLayer(8, 2, 16), num_layers=2)
        >>> decoder(gg.zeros(3, 1, 8), gg.zeros(5, 1, 8)).shape
        (3, 1, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the output of the last layer."""
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, bool(tgt_is_causal), memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder together; weights are drawn by `xavier_uniform_`.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Transformer(8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16)
        >>> model(gg.zeros(5, 1, 8), gg.zeros(3, 1, 8)).shape
        (3, 1, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | _Function = functional_activation.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        devices.check(device)
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*options, dtype=dtype), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*options, dtype=dtype), num_decoder_layers, norm()
        )
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoder's output for sources and the targets so far."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Device = None, dtype: DType = None) -> Tensor:
        """Return a mask to add: -inf above the diagonal, 0 elsewhere."""
        kind = np.dtype(dtype or creation.DEFAULT)
        return make(np.triu(np.full((sz, sz), -math.inf, kind), 1), None, False)


__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder"]
__all__ += ["TransformerEncoderLayer"]
