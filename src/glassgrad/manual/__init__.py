"""Backpropagation by hand: layers, losses and optimizers with a written backward pass, on plain NumPy arrays.

There is no tape here and nothing is differentiated automatically; each class derives its gradient in its
docstring, line by line. Names, shapes and defaults are those of `glassgrad.nn` and `glassgrad.optim`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from glassgrad.errors.missing import lister
from glassgrad.manual.activations import GELU, LeakyReLU, LogSoftmax, ReLU, Sigmoid, Softmax, Tanh
from glassgrad.manual.attention import ScaledDotProductAttention
from glassgrad.manual.conv import Conv2d, MaxPool2d
from glassgrad.manual.linear import Embedding, Flatten, Linear
from glassgrad.manual.losses import BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from glassgrad.manual.net import Net
from glassgrad.manual.norm import BatchNorm1d, Dropout, LayerNorm
from glassgrad.manual.optimizers import SGD, Adam, RMSprop, SGDMomentum
from glassgrad.manual.protocols import Layer, Loss, Module, Optimizer, Parameter

if TYPE_CHECKING:
    from glassgrad.manual.bridge import as_function, show_twin, twin

__all__ = [
    "GELU",
    "SGD",
    "Adam",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "L1Loss",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "Loss",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "NLLLoss",
    "Net",
    "Optimizer",
    "Parameter",
    "RMSprop",
    "ReLU",
    "SGDMomentum",
    "ScaledDotProductAttention",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "as_function",
    "show_twin",
    "twin",
]
__dir__ = lister(__name__)


def __getattr__(name: str) -> Any:
    # Names that need the engine are loaded on request; the layers do without it.
    if name in {"as_function", "show_twin", "twin"}:
        return getattr(importlib.import_module("glassgrad.manual.bridge"), name)
    raise AttributeError(name)
