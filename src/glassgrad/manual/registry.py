"""The table of hand-written layers, losses and optimizers, with sample arguments and inputs.

Tests and documentation iterate over it, so that a new entry is checked like all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad.manual import activations, attention, conv, linear, losses, norm, optimizers
from glassgrad.manual.protocols import Array

Inputs = Callable[[np.random.Generator], tuple[Array, ...]]


@dataclass(frozen=True)
class Entry:
    """A class, its constructor arguments, and inputs (in float64) for a call.

    `twin` is the name in `glassgrad.nn`, `glassgrad.optim` and PyTorch. `deterministic` is False if two calls differ on
    purpose.
    """

    kind: type
    inputs: Inputs
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    twin: str = ""
    deterministic: bool = True

    @property
    def name(self) -> str:
        shown = [*map(repr, self.args), *(f"{key}={value!r}" for key, value in self.options.items())]
        return f"{self.kind.__name__}({', '.join(shown)})"

    def build(self, **more: Any) -> Any:
        return self.kind(*self.args, **self.options, **more)


def _normal(*shape: int) -> Inputs:
    return lambda rng: (rng.standard_normal(shape),)


def _away_from_zero(*shape: int) -> Inputs:
    """Inputs away from the kink of ReLU, which a difference quotient must not straddle."""

    def draw(rng: np.random.Generator) -> tuple[Array, ...]:
        x = rng.standard_normal(shape)
        return (x + 0.1 * np.sign(x),)

    return draw


def _shuffled(*shape: int) -> Inputs:
    """Inputs that are far apart from one another, so that no window has two near-maxima."""
    return lambda rng: (rng.permutation(int(np.prod(shape))).reshape(shape) / 10.0,)


def _triple(queries: int, keys: int) -> Inputs:
    return lambda rng: tuple(rng.standard_normal((2, 3, length, 4)) for length in (queries, keys, keys))


def _integers(count: int, *shape: int) -> Inputs:
    return lambda rng: (rng.integers(0, count, shape),)


def _classes(rows: int, count: int, *, log: bool = False) -> Inputs:
    def draw(rng: np.random.Generator) -> tuple[Array, ...]:
        x = rng.standard_normal((rows, count))
        return (activations.log_softmax(x, -1) if log else x), rng.integers(0, count, rows)

    return draw


def _probabilities(rng: np.random.Generator) -> tuple[Array, ...]:
    return rng.uniform(0.1, 0.9, (4, 3)), rng.integers(0, 2, (4, 3)).astype(np.float64)


def _numbers(rng: np.random.Generator) -> tuple[Array, ...]:
    return rng.standard_normal((4, 3)), rng.uniform(0, 1, (4, 3))


LAYERS: tuple[Entry, ...] = (
    Entry(linear.Linear, _normal(4, 3), (3, 5)),
    Entry(linear.Linear, _normal(2, 4, 3), (3, 5), {"bias": False}),
    Entry(linear.Embedding, _integers(6, 4, 3), (6, 2)),
    Entry(linear.Flatten, _normal(2, 3, 4)),
    Entry(activations.ReLU, _away_from_zero(4, 3)),
    Entry(activations.LeakyReLU, _away_from_zero(4, 3), (0.2,)),
    Entry(activations.PReLU, _away_from_zero(4, 3)),
    Entry(activations.PReLU, _away_from_zero(2, 3, 4), (3,)),
    Entry(activations.ELU, _away_from_zero(4, 3), (0.7,)),
    Entry(activations.Tanh, _normal(4, 3)),
    Entry(activations.Sigmoid, _normal(4, 3)),
    Entry(activations.Softmax, _normal(4, 3), (-1,)),
    Entry(activations.Softmax, _normal(2, 3, 4), (1,)),
    Entry(activations.LogSoftmax, _normal(4, 3), (-1,)),
    Entry(activations.GELU, _normal(4, 3)),
    Entry(activations.GELU, _normal(4, 3), (), {"approximate": "tanh"}),
    Entry(norm.BatchNorm1d, _normal(6, 3), (3,)),
    Entry(norm.BatchNorm1d, _normal(2, 3, 4), (3,), {"momentum": 0.3}),
    Entry(norm.LayerNorm, _normal(4, 3), (3,)),
    Entry(norm.LayerNorm, _normal(2, 4, 3), ((4, 3),)),
    Entry(norm.Dropout, _normal(4, 3), (0.4,), deterministic=False),
    Entry(conv.Conv2d, _normal(2, 3, 5, 6), (3, 4, 3)),
    Entry(conv.Conv2d, _normal(2, 2, 7, 6), (2, 3, (3, 2)), {"stride": 2, "padding": (1, 0), "bias": False}),
    Entry(conv.MaxPool2d, _shuffled(2, 3, 4, 6), (2,)),
    Entry(conv.MaxPool2d, _shuffled(2, 2, 7, 6), (3,), {"stride": 2, "padding": 1}),
    Entry(attention.ScaledDotProductAttention, _triple(4, 5)),
    Entry(attention.ScaledDotProductAttention, _triple(5, 5), (), {"is_causal": True}),
)

LOSSES: tuple[Entry, ...] = (
    Entry(losses.CrossEntropyLoss, _classes(5, 4)),
    Entry(losses.CrossEntropyLoss, _classes(5, 4), (), {"reduction": "sum"}),
    Entry(losses.NLLLoss, _classes(5, 4, log=True)),
    Entry(losses.BCELoss, _probabilities),
    Entry(losses.BCEWithLogitsLoss, _numbers),
    Entry(losses.BCEWithLogitsLoss, _numbers, (), {"reduction": "sum"}),
    Entry(losses.MSELoss, _numbers),
    Entry(losses.L1Loss, _numbers),
)

OPTIMIZERS: tuple[Entry, ...] = (
    Entry(optimizers.SGD, _normal(3), (), {"lr": 0.1}),
    Entry(optimizers.SGDMomentum, _normal(3), (), {"lr": 0.1, "momentum": 0.8}, twin="SGD"),
    Entry(optimizers.RMSprop, _normal(3), (), {"lr": 0.1, "alpha": 0.9}),
    Entry(optimizers.RMSprop, _normal(3), (), {"lr": 0.1, "momentum": 0.5}),
    Entry(optimizers.Adam, _normal(3), (), {"lr": 0.1}),
    Entry(optimizers.Adam, _normal(3), (), {"lr": 0.1, "betas": (0.8, 0.95), "weight_decay": 0.1}),
)
