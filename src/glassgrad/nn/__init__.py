"""Neural-network building blocks with PyTorch's names."""

from glassgrad.nn import functional, init
from glassgrad.nn.activation import *  # noqa: F403 - every layer of the family is public
from glassgrad.nn.containers import Sequential
from glassgrad.nn.embedding import Embedding
from glassgrad.nn.linear import Flatten, Identity, Linear
from glassgrad.nn.losses import CrossEntropyLoss, MSELoss, NLLLoss
from glassgrad.nn.module import Buffer, Module, Parameter
from glassgrad.nn.norm import BatchNorm1d, BatchNorm2d

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "Buffer", "CrossEntropyLoss", "Embedding", "Flatten", "Identity", "Linear", "MSELoss",
    "Module", "NLLLoss", "Parameter", "Sequential", "functional", "init",
]  # fmt: skip
