"""What a family of programs draws from: sizes, layers and batches, all from one seed, the same in every process."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

WIDTHS = (16, 24, 32, 48, 64, 96, 100, 128, 200, 256)
BATCHES = (8, 16, 20, 32, 50, 64, 100, 128)
ACTIVATIONS = ("ReLU", "GELU", "SiLU", "Tanh", "ELU", "LeakyReLU", "Mish", "Softplus", "SELU", "Hardswish", "Sigmoid")
STEPS = 4  # batches of a program
RAGGED = 0.25  # the part of programs whose last batch is smaller


@dataclass(frozen=True)
class Program:
    """A network, its loss and its batches: ``model(T, dropout)`` and ``loss(T, model, *batch)`` for a library T."""

    text: str
    model: Callable[[Any, float], Any]
    loss: Callable[..., Any]
    batches: Sequence[tuple[np.ndarray, ...]]


class Draw:
    """Draws of one program."""

    def __init__(self, seed: int) -> None:
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.batch = self.among(*BATCHES)
        self.ragged = self.random.random() < RAGGED

    def among(self, *choices: Any) -> Any:
        """One of them."""
        return self.random.choice(choices)

    def width(self, most: int = 256) -> int:
        """The width of a layer."""
        return self.among(*(width for width in WIDTHS if width <= most))

    def activation(self) -> str:
        """The name of a layer of `nn`."""
        return self.among(*ACTIVATIONS)

    def batches(self, rows: Callable[[int], Sequence[np.ndarray]], most: int = BATCHES[-1]) -> list[Any]:
        """Batches of at most `most` examples; `rows` makes so many of them."""
        self.batch = min(self.batch, most)
        last = max(1, self.batch * 5 // 8) if self.ragged else self.batch
        sizes = [self.batch] * (STEPS - 1) + [last]
        return [tuple(np.ascontiguousarray(part) for part in rows(size)) for size in sizes]

    def normal(self, *shape: int) -> np.ndarray:
        """Normal numbers."""
        return self.numbers.standard_normal(shape, dtype=np.float32)

    def uniform(self, *shape: int) -> np.ndarray:
        """Numbers between 0 and 1."""
        return self.numbers.random(shape, dtype=np.float32)

    def below(self, end: int, *shape: int) -> np.ndarray:
        """Whole numbers below `end`."""
        return self.numbers.integers(0, end, shape)


def joined(library: Any, forward: Callable[..., Any] | None = None, **parts: Any) -> Any:
    """A module with these parts; `forward` gets it as its first argument."""

    class Joined(library.nn.Module):
        def __init__(self):
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, *inputs):
            return forward(self, *inputs)

    return Joined()


def dense(library: Any, sizes: Sequence[int], activation: str = "ReLU", norm: str = "", dropout: float = 0.0) -> Any:
    """Linear layers of these sizes; between two of them a norm, an activation and dropout."""
    nn = library.nn
    layers = [nn.Linear(sizes[0], sizes[1])]
    for near, far in itertools.pairwise(sizes[1:]):
        layers += [getattr(nn, norm)(near)] if norm else []
        layers += [getattr(nn, activation)()]
        layers += [nn.Dropout(dropout)] if dropout else []
        layers.append(nn.Linear(near, far))
    return nn.Sequential(*layers)
