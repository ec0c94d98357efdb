"""Neural-network building blocks with PyTorch's names; each family is loaded when it is first used."""

from __future__ import annotations

import importlib
from typing import Any

_FAMILIES = {
    "activation": (
        "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
        "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
        "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
    ),
    "attention": ("MultiheadAttention",),
    "cells": ("GRUCell", "LSTMCell", "RNNCell"),
    "containers": ("ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"),
    "conv": ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
    "distance": ("CosineSimilarity", "PairwiseDistance"),
    "dropout": ("AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"),
    "embedding": ("Embedding", "EmbeddingBag"),
    "linear": ("Bilinear", "Identity", "Linear"),
    "losses": (
        "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
        "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss",
        "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss",
        "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
    ),
    "module": ("Module",),
    "norm": (
        "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
        "InstanceNorm3d", "LayerNorm", "LocalResponseNorm", "RMSNorm",
    ),
    "padding": (
        "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
        "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
        "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
    ),
    "parallel": ("DataParallel",),
    "parameter": ("Buffer", "Parameter"),
    "pooling": (
        "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
        "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
        "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
    ),
    "recurrent": ("GRU", "LSTM", "RNN"),
    "rotary": ("RoPE",),
    "shape": ("Flatten", "Unflatten"),
    "overview": ("Summary", "summary"),
    "transformer": (
        "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
        "TransformerEncoderLayer",
    ),
    "upsampling": (
        "ChannelShuffle", "Fold", "PixelShuffle", "PixelUnshuffle", "Unfold", "Upsample", "UpsamplingBilinear2d",
        "UpsamplingNearest2d",
    ),
}  # fmt: skip  # a table
_HOME = {name: family for family, names in _FAMILIES.items() for name in names}
_MODULES = ("functional", "init", "parallel", "parameter", "utils")

# What PyTorch has and this library has not, and what to use in its place.
_INSTEAD = {
    "attention": "functional.scaled_dot_product_attention has one implementation, so there is none to choose.",
    "modules": "its classes are here: nn.Linear in place of nn.modules.linear.Linear.",
    "LazyLinear": "Linear with the number of features; summary(model, shape) shows what arrives where.",
    "SyncBatchNorm": "use BatchNorm1d or BatchNorm2d: there is one process.",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"glassgrad.nn.{name}")
    family = _HOME.get(name)
    if family is None:
        from glassgrad.errors.missing import missing

        raise missing("glassgrad.nn", name, [*_HOME, *_MODULES], _INSTEAD)
    value = globals()[name] = getattr(importlib.import_module(f"glassgrad.nn.{family}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [*_HOME, *_MODULES]  # noqa: PLE0604 - names from the table
