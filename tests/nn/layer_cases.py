"""Calls of every layer, for the tests that compare with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Draw = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class Case:
    """A layer with its options, and the inputs of one call: shapes, or functions that draw."""

    name: str
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)  # of the call
    training: bool = True
    compiled: bool = True
    frozen: bool = False  # no gradient but of the first input
    tolerance: float = 1.0

    @property
    def id(self) -> str:
        parts = [str(arg) for arg in self.args] + [f"{key}={value}" for key, value in self.options.items()]
        shapes = "x".join(str(one) for one in self.inputs[0]) if isinstance(self.inputs[0], tuple) else "drawn"
        return f"{self.name}({', '.join(parts)})-{shapes}" + ("" if self.training else "-eval")

    def draw(self) -> list[Any]:
        """Return the inputs as arrays: float32 for shapes."""
        rng = np.random.default_rng(len(self.id))
        return [one(rng) if callable(one) else rng.normal(size=one).astype(np.float32) for one in self.inputs]


def case(name: str, *args: Any, inputs: Any, call: dict[str, Any] | None = None, **options: Any) -> Case:
    """A case whose keyword arguments are options of the layer; `inputs` may be one shape."""
    several = isinstance(inputs, list)
    facts = {key: options.pop(key) for key in ("training", "compiled", "frozen", "tolerance") if key in options}
    return Case(name, args, options, tuple(inputs) if several else (inputs,), call or {}, **facts)


def integers(high: int, *shape: int, low: int = 0) -> Draw:
    """Integers below `high`."""
    return lambda rng: rng.integers(low, high, shape)


def positive(*shape: int) -> Draw:
    """Numbers between 0.2 and 2."""
    return lambda rng: rng.uniform(0.2, 2, shape).astype(np.float32)


def unit(*shape: int) -> Draw:
    """Probabilities."""
    return lambda rng: rng.uniform(0.05, 0.95, shape).astype(np.float32)


def signs(*shape: int) -> Draw:
    """1 and -1."""
    return lambda rng: (rng.integers(0, 2, shape) * 2 - 1).astype(np.float32)


def log_probabilities(*shape: int) -> Draw:
    """Logarithms of probabilities along the last dimension."""

    def draw(rng: np.random.Generator) -> Any:
        x = rng.normal(size=shape)
        return (x - np.log(np.exp(x).sum(-1, keepdims=True))).astype(np.float32)

    return draw


def fixed(value: Any) -> Draw:
    """An array as it is."""
    return lambda _rng: np.asarray(value)


ACTIVATIONS = [
    *(case(name, inputs=(3, 4)) for name in (
        "Tanh", "Sigmoid", "LogSigmoid", "Softsign", "Tanhshrink", "ReLU", "ReLU6", "SiLU", "Mish", "SELU", "Hardswish",
        "Hardsigmoid", "GELU", "LeakyReLU", "ELU", "CELU", "Softplus", "Hardtanh", "Softshrink", "Hardshrink",
    )),
    case("GELU", approximate="tanh", inputs=(5,)), case("LeakyReLU", 0.3, inputs=(5,)),
    case("ELU", alpha=0.5, inputs=(5,)), case("CELU", 2.0, inputs=(5,)), case("Softplus", 2.0, 30.0, inputs=(5,)),
    case("Hardtanh", -0.5, 0.7, inputs=(9,)), case("Threshold", 0.1, 20.0, inputs=(9,)),
    case("Softshrink", 0.2, inputs=(9,)), case("Hardshrink", 0.2, inputs=(9,)),
    case("RReLU", 0.1, 0.3, inputs=(9,), training=False),
    case("Softmax", dim=1, inputs=(2, 3)), case("Softmax", 0, inputs=(2, 3)), case("LogSoftmax", dim=-1, inputs=(2, 3)),
    case("Softmin", dim=1, inputs=(2, 3)), case("Softmax2d", inputs=(2, 3, 2, 2)), case("GLU", inputs=(3, 4)),
    case("GLU", dim=0, inputs=(4, 3)), case("PReLU", inputs=(3, 4)), case("PReLU", 3, 0.1, inputs=(2, 3, 4)),
]  # fmt: skip  # a table

LINEAR = [
    case("Linear", 4, 3, inputs=(5, 4)), case("Linear", 4, 3, bias=False, inputs=(2, 5, 4)),
    case("Linear", 4, 3, inputs=(4,)), case("Bilinear", 3, 4, 2, inputs=[(5, 3), (5, 4)]),
    case("Bilinear", 3, 4, 2, bias=False, inputs=[(2, 5, 3), (2, 5, 4)]), case("Identity", inputs=(3,)),
    case("Flatten", inputs=(2, 3, 4)), case("Flatten", 0, 1, inputs=(2, 3, 4)),
    case("Unflatten", 1, (2, 3), inputs=(4, 6)),
    case("Embedding", 7, 3, inputs=[integers(7, 2, 4)]),
    case("Embedding", 7, 3, padding_idx=2, inputs=[integers(7, 9)]),
    case("Embedding", 7, 3, scale_grad_by_freq=True, inputs=[integers(3, 9)], compiled=False),
    case("Embedding", 7, 3, max_norm=1.0, inputs=[integers(7, 9)], compiled=False),
    case("EmbeddingBag", 7, 3, inputs=[integers(7, 2, 4)], compiled=False),
    case("EmbeddingBag", 7, 3, mode="sum", inputs=[integers(7, 8), fixed([0, 3, 5])], compiled=False),
    case("EmbeddingBag", 7, 3, mode="sum", padding_idx=1, inputs=[integers(7, 8), fixed([0, 3, 3])], compiled=False),
    case("EmbeddingBag", 7, 3, mode="max", inputs=[integers(7, 2, 4)], compiled=False),
    case("EmbeddingBag", 7, 3, mode="mean", include_last_offset=True, inputs=[integers(7, 8), fixed([0, 3, 8])],
         compiled=False),
    case("CosineSimilarity", inputs=[(3, 4), (3, 4)]), case("CosineSimilarity", dim=0, inputs=[(3, 4), (3, 4)]),
    case("PairwiseDistance", inputs=[(3, 4), (3, 4)]),
    case("PairwiseDistance", p=1.0, keepdim=True, inputs=[(3, 4), (3, 4)]),
]  # fmt: skip  # a table

CONVOLUTIONS = [
    case("Conv1d", 2, 3, 3, inputs=(2, 2, 7)), case("Conv1d", 2, 3, 3, padding="same", dilation=2, inputs=(2, 7)),
    case("Conv1d", 2, 4, 2, stride=2, groups=2, bias=False, inputs=(2, 2, 7)),
    case("Conv1d", 2, 3, 3, padding=2, padding_mode="circular", inputs=(2, 2, 7)),
    case("Conv2d", 2, 3, 3, inputs=(2, 2, 5, 6)), case("Conv2d", 2, 3, (1, 3), padding=(0, 1), inputs=(2, 2, 4, 4)),
    case("Conv2d", 2, 4, 3, stride=2, padding=1, dilation=2, groups=2, inputs=(2, 2, 7, 7)),
    case("Conv2d", 2, 3, 3, padding="valid", bias=False, inputs=(2, 5, 5)),
    case("Conv2d", 2, 3, 3, padding=1, padding_mode="reflect", inputs=(2, 2, 4, 4)),
    case("Conv2d", 2, 3, 3, padding=1, padding_mode="replicate", inputs=(2, 2, 4, 4)),
    case("Conv2d", 2, 3, 3, padding="same", padding_mode="reflect", inputs=(2, 2, 4, 4)),
    case("ConvTranspose1d", 2, 3, 3, inputs=(2, 2, 5)),
    case("ConvTranspose1d", 2, 4, 3, stride=2, padding=1, output_padding=1, groups=2, inputs=(2, 2, 5)),
    case("ConvTranspose2d", 2, 3, 3, inputs=(2, 2, 4, 4)),
    case("ConvTranspose2d", 2, 3, 3, stride=2, padding=1, output_padding=1, dilation=2, bias=False,
         inputs=(2, 2, 4, 4)),
    case("ConvTranspose2d", 2, 3, 3, stride=2, inputs=(1, 2, 4, 4), call={"output_size": (10, 9)}),
    case("Conv3d", 2, 3, 3, inputs=(2, 2, 4, 5, 4)),
    case("Conv3d", 2, 4, (2, 1, 3), stride=(1, 2, 1), padding=(1, 0, 1), groups=2, bias=False, inputs=(2, 2, 3, 4, 4)),
    case("Conv3d", 2, 3, 2, padding="same", dilation=(2, 1, 1), inputs=(1, 2, 3, 3, 3)),
    case("Conv3d", 2, 2, 3, padding=1, padding_mode="circular", inputs=(1, 2, 3, 3, 3)),
    case("ConvTranspose3d", 2, 3, 3, inputs=(2, 2, 2, 3, 2)),
    case("ConvTranspose3d", 2, 4, 3, stride=2, padding=1, output_padding=1, groups=2, inputs=(1, 2, 3, 2, 2)),
    case("ConvTranspose3d", 2, 3, 2, stride=2, dilation=2, bias=False, inputs=(1, 2, 2, 2, 3),
         call={"output_size": (6, 5, 7)}),
]  # fmt: skip  # a table

POOLING = [
    case("MaxPool1d", 2, inputs=(2, 3, 7)), case("MaxPool1d", 3, stride=2, padding=1, inputs=(3, 7)),
    case("MaxPool2d", 2, inputs=(2, 3, 6, 7)), case("MaxPool2d", (3, 2), 2, (1, 0), inputs=(2, 3, 6, 7)),
    case("MaxPool2d", 2, dilation=2, ceil_mode=True, inputs=(1, 3, 6, 7)),
    case("MaxPool2d", 2, return_indices=True, inputs=(2, 3, 6, 6), compiled=False),
    case("AvgPool1d", 2, inputs=(2, 3, 7)), case("AvgPool1d", 3, 2, 1, inputs=(2, 3, 7)),
    case("AvgPool2d", 2, inputs=(2, 3, 6, 7)), case("AvgPool2d", 3, 2, 1, ceil_mode=True, inputs=(2, 3, 6, 7)),
    case("AvgPool2d", 3, 2, 1, count_include_pad=False, inputs=(2, 3, 6, 7)),
    case("AvgPool2d", 2, divisor_override=3, inputs=(2, 3, 6, 6)),
    case("AdaptiveAvgPool1d", 3, inputs=(2, 3, 7)), case("AdaptiveAvgPool2d", 1, inputs=(2, 3, 5, 7)),
    case("AdaptiveAvgPool2d", (3, None), inputs=(2, 3, 5, 7)),
    case("MaxPool3d", 2, inputs=(2, 3, 4, 5, 4)), case("MaxPool3d", (3, 2, 2), (2, 1, 2), 1, inputs=(1, 2, 4, 3, 5)),
    case("MaxPool3d", 2, dilation=(1, 2, 1), ceil_mode=True, inputs=(2, 3, 5, 4)),
    case("MaxPool3d", 2, return_indices=True, inputs=(1, 2, 4, 4, 4), compiled=False),
    case("AvgPool3d", 2, inputs=(2, 3, 4, 5, 4)), case("AvgPool3d", 3, 2, 1, ceil_mode=True, inputs=(1, 2, 4, 3, 6)),
    case("AvgPool3d", 3, 2, 1, count_include_pad=False, inputs=(2, 4, 5, 4)),
    case("AvgPool3d", 2, divisor_override=3, inputs=(1, 2, 4, 4, 4)),
    case("AdaptiveAvgPool3d", (2, None, 3), inputs=(1, 2, 4, 3, 5)), case("AdaptiveAvgPool3d", 2, inputs=(2, 4, 6, 2)),
    case("AdaptiveMaxPool1d", 3, inputs=(2, 3, 7)), case("AdaptiveMaxPool1d", 2, inputs=(3, 6)),
    case("AdaptiveMaxPool2d", (3, None), inputs=(2, 3, 5, 7)), case("AdaptiveMaxPool2d", 2, inputs=(2, 3, 4, 6)),
    case("AdaptiveMaxPool2d", 3, return_indices=True, inputs=(2, 3, 5, 7), compiled=False),
    case("AdaptiveMaxPool3d", (2, 3, 2), inputs=(1, 2, 3, 5, 4)), case("AdaptiveMaxPool3d", 2, inputs=(2, 4, 4, 2)),
    case("MaxUnpool1d", 2, inputs=[(1, 2, 3), fixed([[[1, 2, 4], [0, 3, 5]]])], compiled=False),
    case("MaxUnpool2d", 2, 2, inputs=[(1, 2, 2), fixed([[[1, 2], [8, 11]]])], compiled=False),
    case("MaxUnpool2d", 2, inputs=[(1, 2, 2), fixed([[[1, 2], [10, 13]]])], call={"output_size": (5, 5)},
         compiled=False),
    case("MaxUnpool3d", 2, inputs=[(1, 1, 2, 2), fixed([[[[1, 2], [28, 31]]]])], compiled=False),
    case("LPPool1d", 2, 2, inputs=[positive(2, 3, 7)]), case("LPPool2d", 3, (2, 3), 2, inputs=[positive(2, 3, 5, 6)]),
    case("LPPool2d", 1, 2, ceil_mode=True, inputs=[positive(1, 3, 5, 5)]),
    case("LPPool3d", 2, 2, inputs=[positive(1, 2, 4, 4, 5)]),
    # Distances that are whole numbers leave nothing to chance.
    case("FractionalMaxPool2d", 2, output_size=(4, 3), compiled=False, inputs=(1, 2, 8, 6)),
    case("FractionalMaxPool2d", (2, 3), output_ratio=0.5, return_indices=True, compiled=False, inputs=(2, 8, 9)),
    case("FractionalMaxPool3d", 2, output_size=(2, 3, 3), compiled=False, inputs=(1, 2, 4, 6, 8)),
]  # fmt: skip  # a table

KINDS = ("Zero", "Reflection", "Replication", "Circular")
BORDERS = [
    *(case(f"{kind}Pad1d", 2, inputs=(2, 3, 5)) for kind in KINDS),
    *(case(f"{kind}Pad2d", (1, 2, 0, 1), inputs=(2, 3, 4, 5)) for kind in KINDS),
    *(case(f"{kind}Pad3d", (1, 1, 0, 1, 2, 0), inputs=(1, 2, 3, 3, 4)) for kind in KINDS),
    case("ConstantPad3d", 1, 0.5, inputs=(1, 2, 3, 3, 4)),
    case("ConstantPad1d", 2, 1.5, inputs=(2, 3, 5)),
    case("ConstantPad2d", (1, 0, 2, 1), -1.0, inputs=(2, 3, 4, 5)),
    case("Upsample", scale_factor=2, inputs=(2, 3, 3, 4)),
    case("Upsample", size=(5, 6), mode="bilinear", inputs=(2, 3, 3, 4)),
    case("Upsample", scale_factor=2, mode="linear", align_corners=True, inputs=(2, 3, 4)),
    case("UpsamplingNearest2d", scale_factor=2, inputs=(2, 3, 3, 4)),
    case("UpsamplingBilinear2d", scale_factor=2, inputs=(2, 3, 3, 4)),
    case("PixelShuffle", 2, inputs=(2, 8, 3, 3)),
    case("PixelUnshuffle", 2, inputs=(2, 2, 4, 6)),
    case("ChannelShuffle", 2, inputs=(2, 6, 3, 3)),
    case("Unfold", 2, padding=1, inputs=(2, 3, 4, 5)),
    case("Fold", (4, 5), (2, 3), inputs=(2, 18, 9)),
]

NORMS = [
    case("BatchNorm1d", 3, inputs=(5, 3)), case("BatchNorm1d", 3, inputs=(5, 3, 2)),
    case("BatchNorm1d", 3, inputs=(5, 3), training=False), case("BatchNorm1d", 3, affine=False, inputs=(5, 3)),
    case("BatchNorm1d", 3, momentum=None, bias=False, inputs=(5, 3)),
    case("BatchNorm1d", 3, track_running_stats=False, inputs=(5, 3), training=False),
    case("BatchNorm2d", 3, 1e-3, 0.3, inputs=(4, 3, 2, 2)), case("BatchNorm2d", 3, inputs=(4, 3, 2, 2), training=False),
    case("BatchNorm3d", 2, inputs=(2, 2, 2, 2, 3)),
    case("InstanceNorm1d", 3, inputs=(4, 3, 5)), case("InstanceNorm1d", 3, affine=True, inputs=(3, 5)),
    case("InstanceNorm2d", 3, affine=True, track_running_stats=True, inputs=(4, 3, 2, 3)),
    case("InstanceNorm2d", 3, affine=True, track_running_stats=True, inputs=(4, 3, 2, 3), training=False),
    case("InstanceNorm3d", 2, affine=True, inputs=(2, 2, 2, 3, 2)), case("InstanceNorm3d", 2, inputs=(2, 2, 3, 2)),
    case("LayerNorm", 4, inputs=(3, 4)), case("LayerNorm", (3, 4), eps=1e-3, inputs=(2, 3, 4)),
    case("LayerNorm", 4, bias=False, inputs=(2, 3, 4)), case("LayerNorm", 4, elementwise_affine=False, inputs=(3, 4)),
    case("RMSNorm", 4, inputs=(3, 4)), case("RMSNorm", (3, 4), eps=1e-3, elementwise_affine=False, inputs=(2, 3, 4)),
    case("GroupNorm", 2, 4, inputs=(3, 4, 5)), case("GroupNorm", 2, 4, affine=False, inputs=(2, 4, 3, 2)),
    case("GroupNorm", 4, 4, eps=1e-3, inputs=(2, 4, 3)),
    case("LocalResponseNorm", 3, inputs=(2, 5, 3)), case("LocalResponseNorm", 2, alpha=0.1, k=2.0, inputs=(2, 5, 3, 2)),
    case("Dropout", 0.5, inputs=(3, 4), training=False), case("Dropout2d", 0.3, inputs=(2, 3, 4, 4), training=False),
    case("Dropout1d", 0.0, inputs=(2, 3, 4)), case("Dropout3d", 0.0, inputs=(2, 3, 4, 1, 2)),
    case("AlphaDropout", 0.0, inputs=(3, 4)), case("FeatureAlphaDropout", 0.2, inputs=(3, 4), training=False),
]  # fmt: skip  # a table

RECURRENT = [
    *(case(name, 3, 4, inputs=(5, 2, 3)) for name in ("LSTM", "GRU", "RNN")),
    *(case(name, 3, 4, 2, bidirectional=True, batch_first=True, inputs=(2, 5, 3)) for name in ("LSTM", "GRU", "RNN")),
    case("LSTM", 3, 4, bias=False, inputs=(5, 3)), case("GRU", 3, 4, bias=False, inputs=(5, 3)),
    case("RNN", 3, 4, nonlinearity="relu", inputs=(5, 2, 3)), case("LSTM", 3, 4, 2, proj_size=2, inputs=(5, 2, 3)),
    case("GRU", 3, 4, inputs=[(5, 2, 3), (1, 2, 4)]), case("RNN", 3, 4, 2, inputs=[(5, 3), (2, 4)]),
    case("LSTMCell", 3, 4, inputs=(2, 3)), case("GRUCell", 3, 4, inputs=[(2, 3), (2, 4)]),
    case("GRUCell", 3, 4, bias=False, inputs=(3,)), case("RNNCell", 3, 4, inputs=[(2, 3), (2, 4)]),
    case("RNNCell", 3, 4, nonlinearity="relu", inputs=(2, 3)),
]  # fmt: skip  # a table

_UPPER = np.triu(np.ones((3, 3), bool), 1)
_PADDING = np.array([[False, False, False], [False, False, True]])
_MASK = np.where(_UPPER, -np.inf, 0).astype(np.float32)
ATTENTION = [
    case("MultiheadAttention", 4, 2, inputs=[(3, 2, 4)] * 3),
    case("MultiheadAttention", 4, 2, batch_first=True, inputs=[(2, 3, 4), (2, 5, 4), (2, 5, 4)]),
    case("MultiheadAttention", 4, 2, bias=False, kdim=3, vdim=5, inputs=[(3, 2, 4), (4, 2, 3), (4, 2, 5)]),
    case("MultiheadAttention", 4, 2, add_bias_kv=True, add_zero_attn=True, inputs=[(3, 2, 4)] * 3),
    case("MultiheadAttention", 4, 2, inputs=[(3, 4)] * 3),
    case("MultiheadAttention", 4, 2, batch_first=True, inputs=[(2, 3, 4)] * 3,
         call={"attn_mask": _UPPER, "need_weights": False}),
    case("MultiheadAttention", 4, 2, batch_first=True, inputs=[(2, 3, 4)] * 3,
         call={"attn_mask": _MASK, "is_causal": True, "average_attn_weights": False}),
    case("MultiheadAttention", 4, 2, batch_first=True, add_zero_attn=True, inputs=[(2, 3, 4)] * 3,
         call={"attn_mask": np.stack([_UPPER] * 4), "key_padding_mask": _PADDING}),
    case("TransformerEncoderLayer", 4, 2, 8, 0.0, inputs=(3, 2, 4)),
    case("TransformerEncoderLayer", 4, 2, 8, 0.0, "gelu", batch_first=True, norm_first=True, inputs=(2, 3, 4),
         call={"src_mask": _MASK, "src_key_padding_mask": np.where(_PADDING, -np.inf, 0).astype(np.float32)}),
    case("TransformerEncoderLayer", 4, 2, 8, 0.0, bias=False, inputs=(3, 2, 4)),
    case("TransformerDecoderLayer", 4, 2, 8, 0.0, inputs=[(3, 2, 4), (5, 2, 4)]),
    case("TransformerDecoderLayer", 4, 2, 8, 0.0, norm_first=True, batch_first=True, inputs=[(2, 3, 4), (2, 5, 4)],
         call={"tgt_mask": _MASK}),
    case("Transformer", 4, 2, 2, 1, 8, 0.0, inputs=[(3, 2, 4), (3, 2, 4)], call={"tgt_mask": _MASK}),
]  # fmt: skip  # a table

OURS = [
    case("RoPE", 4, inputs=(2, 3, 4)),
]  # without a twin in PyTorch

LAYERS = [*ACTIVATIONS, *LINEAR, *CONVOLUTIONS, *POOLING, *BORDERS, *NORMS, *RECURRENT, *ATTENTION]
