"""Activations as layers: each calls the function of the same name."""

from __future__ import annotations

from typing import Any

from glassgrad.nn.module import Module
from glassgrad.ops.names import PUBLIC


class Tanh(Module):
    """tanh(x), elementwise."""

    def forward(self, x: Any) -> Any:
        return PUBLIC["tanh"](x)


class Sigmoid(Module):
    """1 / (1 + exp(-x)), elementwise."""

    def forward(self, x: Any) -> Any:
        return PUBLIC["sigmoid"](x)


class ReLU(Module):
    """max(x, 0), elementwise. `inplace` is accepted and has no effect."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, x: Any) -> Any:
        return PUBLIC["relu"](x)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Any) -> Any:
        return PUBLIC["softmax"](x, self.dim)


class LogSoftmax(Module):
    """x - logsumexp(x) along `dim`."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Any) -> Any:
        return PUBLIC["log_softmax"](x, self.dim)


__all__ = ["LogSoftmax", "ReLU", "Sigmoid", "Softmax", "Tanh"]
