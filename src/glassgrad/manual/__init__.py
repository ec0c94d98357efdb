"""Backpropagation by hand: layers, losses and optimizers with a written backward pass, on plain NumPy arrays.

There is no tape and no automatic differentiation; each class derives its gradient in its docstring, line by line.
Names, shapes and defaults are those of `glassgrad.nn` and `glassgrad.optim`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from glassgrad.base import documents
from glassgrad.errors.missing import lister, missing
from glassgrad.manual.activations import ELU, GELU, LeakyReLU, LogSoftmax, PReLU, ReLU, Sigmoid, Softmax, Tanh
from glassgrad.manual.attention import ScaledDotProductAttention
from glassgrad.manual.clipping import clip_grad_norm_, clip_grad_value_
from glassgrad.manual.conv import Conv2d, MaxPool2d
from glassgrad.manual.linear import Embedding, Flatten, Linear
from glassgrad.manual.losses import BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from glassgrad.manual.net import Net
from glassgrad.manual.norm import BatchNorm1d, Dropout, LayerNorm
from glassgrad.manual.optimizers import SGD, Adam, RMSprop, SGDMomentum, get_optimizer
from glassgrad.manual.protocols import Layer, Loss, Module, Optimizer, Parameter

if TYPE_CHECKING:
    from glassgrad.manual.bridge import as_function, show_twin, twin

__all__ = [
    "ELU",
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
    "PReLU",
    "Parameter",
    "RMSprop",
    "ReLU",
    "SGDMomentum",
    "ScaledDotProductAttention",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "as_function",
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_optimizer",
    "show_twin",
    "twin",
]
__dir__ = lister(__name__)


_INSTEAD = {
    "Sequential": "manual.Net(first, second, ...)",
    "CrossEntropy": "manual.CrossEntropyLoss()",
    "BatchNorm": "manual.BatchNorm1d(features)",
    "BatchNorm2d": "manual.BatchNorm1d takes (n, c, l): reshape images to (n, c, h*w) before it and back after it",
    "AdamW": "manual.Adam(parameters, weight_decay=...), which adds it to the gradient; or glassgrad.optim.AdamW",
    "Tensor": "NumPy arrays, which hand-written layers take and return; glassgrad.tensor makes tensors for the engine",
    "no_grad": "nothing: hand-written layers record no graph",
    "GradientAccumulator": "glassgrad.optim.GradientAccumulator(optimizer, steps), which takes optimizers by hand",
    "GradientMonitor": "glassgrad.GradientMonitor(net), which takes layers by hand",
    "Trainer": "glassgrad.train.Trainer(net, optimizer, loss, loader), which takes layers by hand",
    "functional": "the layers, called: manual.ReLU()(x)",
    "relu": "manual.ReLU()(x)",
    "tanh": "manual.Tanh()(x)",
    "softmax": "manual.Softmax(dim)(x)",
    "gradcheck": "glassgrad.verify.gradcheck(layer, x)",
}
_OF_ONE_S_OWN = (
    "glassgrad.nn.{0}, if PyTorch has it, with gradients from the tape; or write it: a subclass of manual.Module with "
    "forward(x) and backward(dout), as in help(manual.Tanh). There are: {1}"
)


documents.complete_all(__name__, globals())


def __getattr__(name: str) -> Any:
    # Load names that need the engine on request; the layers do not need it.
    if name in {"as_function", "show_twin", "twin"}:
        value = getattr(importlib.import_module("glassgrad.manual.bridge"), name)
        documents.complete(__name__, name, value)
        documents.say_type(value)
        return value
    instead = dict(_INSTEAD)
    if name not in instead and name[:1].isupper():
        instead[name] = _OF_ONE_S_OWN.format(name, ", ".join(one for one in __all__ if one[0].isupper()))
    raise missing(__name__, name, __all__, instead)
