"""Optimizers. p is a parameter, g its gradient, and every line is one equation of the method.

Updates are in place, so that every holder of a parameter's array sees them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.manual.protocols import Array


class _Optimizer(ABC):
    def __init__(self, parameters: Iterable[Any], lr: float) -> None:
        self.parameters = list(parameters)
        if not self.parameters:
            raise errors.MANUAL_NO_PARAMETERS(optimizer=type(self).__name__)
        self.lr = lr

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        for number, parameter in enumerate(self.parameters):
            if parameter.grad is not None:
                self.update(number, parameter.data, parameter.grad)

    @abstractmethod
    def update(self, number: int, p: Array, g: Array) -> None:
        """Update the array p, the `number`th parameter, in place."""

    def like_parameters(self) -> list[Array]:
        return [np.zeros_like(parameter.data) for parameter in self.parameters]


class SGD(_Optimizer):
    """p ← p - lr g."""

    def __init__(self, parameters: Iterable[Any], lr: float = 1e-3) -> None:
        super().__init__(parameters, lr)

    def update(self, number: int, p: Array, g: Array) -> None:
        p -= self.lr * g


class SGDMomentum(_Optimizer):
    """v ← momentum v + g;  p ← p - lr v. The first step has v = g, as in PyTorch."""

    def __init__(self, parameters: Iterable[Any], lr: float = 1e-3, momentum: float = 0.9) -> None:
        super().__init__(parameters, lr)
        self.momentum = momentum
        self.velocity = self.like_parameters()

    def update(self, number: int, p: Array, g: Array) -> None:
        v = self.velocity[number]
        v *= self.momentum
        v += g
        p -= self.lr * v


class RMSprop(_Optimizer):
    """s ← alpha s + (1 - alpha) g²;  step = g / (sqrt(s) + eps);  with momentum v ← momentum v + step.

    p ← p - lr v, or p - lr step without momentum. Source: Hinton's lecture 6e (2012), the variant of PyTorch.
    """

    def __init__(
        self, parameters: Iterable[Any], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, momentum: float = 0.0
    ) -> None:
        super().__init__(parameters, lr)
        self.alpha, self.eps, self.momentum = alpha, eps, momentum
        self.square = self.like_parameters()
        self.velocity = self.like_parameters() if momentum else []

    def update(self, number: int, p: Array, g: Array) -> None:
        s = self.square[number]
        s *= self.alpha
        s += (1 - self.alpha) * g * g
        step = g / (np.sqrt(s) + self.eps)
        if self.momentum:
            v = self.velocity[number]
            v *= self.momentum
            v += step
            step = v
        p -= self.lr * step


class Adam(_Optimizer):
    """m ← b1 m + (1 - b1) g;  s ← b2 s + (1 - b2) g²;  p ← p - lr m̂ / (sqrt(ŝ) + eps).

    m̂ = m / (1 - b1^t) and ŝ = s / (1 - b2^t) undo that both started at 0, at the t-th update. Weight decay adds
    weight_decay · p to g first. Source: Kingma, Ba, "Adam" (2015), algorithm 1.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, lr)
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay
        self.mean, self.square = self.like_parameters(), self.like_parameters()
        self.updates = [0] * len(self.parameters)  # t, per parameter: it does not advance without a gradient

    def update(self, number: int, p: Array, g: Array) -> None:
        m, s, (b1, b2) = self.mean[number], self.square[number], self.betas
        self.updates[number] += 1
        t = self.updates[number]
        if self.weight_decay:
            g = g + self.weight_decay * p
        m *= b1
        m += (1 - b1) * g
        s *= b2
        s += (1 - b2) * g * g
        p -= (self.lr / (1 - b1**t)) * m / (np.sqrt(s / (1 - b2**t)) + self.eps)
