"""Sample inputs of the primitives for generic tests, benchmarks and docs.

An elementwise entry names one domain per argument (`reals`, `booleans`); any other entry lists
`S(shape, shape, ..., **params)`, where a shape may be replaced by a function of a random generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Domain(NamedTuple):
    """The inputs on which one argument of an elementwise op is sampled.

    `avoid` lists kinks; samples keep a distance of `gap` from them, so that finite differences hold.
    """

    low: float
    high: float
    avoid: tuple[float, ...] = ()
    gap: float = 0.05
    boolean: bool = False

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray[Any, Any]:
        """Return an array of this domain."""
        if self.boolean:
            return rng.random(shape) < 0.5
        x = np.asarray(rng.uniform(self.low, self.high, shape))
        for kink in self.avoid:
            near = np.abs(x - kink) < self.gap
            side = np.where(x < kink, -1.0, 1.0)
            # At the edge of the domain only one side has room.
            side = np.where(kink - self.gap < self.low, 1.0, np.where(kink + self.gap > self.high, -1.0, side))
            x = np.where(near, kink + side * self.gap * 1.5, x)
        return x.astype(dtype)


def reals(low: float, high: float, *avoid: float) -> Domain:
    """Real numbers between `low` and `high`, away from the kinks in `avoid`."""
    return Domain(low, high, avoid)


booleans = Domain(0, 1, boolean=True)


class S:
    """One sample call of a primitive: a shape or a drawing function per argument, and its parameters."""

    __slots__ = ("args", "params")

    def __init__(self, *args: Any, **params: Any) -> None:
        self.args = args
        self.params = params

    def draw(self, rng: np.random.Generator, dtype: Any = np.float64) -> list[np.ndarray[Any, Any]]:
        """Return the arguments as arrays."""
        drawn = []
        for arg in self.args:
            x = arg(rng) if callable(arg) else rng.normal(size=arg)
            x = np.asarray(x)
            drawn.append(x.astype(dtype) if x.dtype.kind in "fV" else x)
        return drawn


def positive(*shape: int) -> Callable[[np.random.Generator], Any]:
    """Draw numbers between 0.3 and 3."""
    return lambda rng: rng.uniform(0.3, 3.0, shape)


def distinct(*shape: int) -> Callable[[np.random.Generator], Any]:
    """Draw numbers at least 0.1 apart, for ops that compare their inputs."""
    count = int(np.prod(shape))
    return lambda rng: (rng.permutation(count) * 0.25 - count * 0.11 + rng.uniform(0, 0.1, count)).reshape(shape)


def integers(low: int, high: int, *shape: int) -> Callable[[np.random.Generator], Any]:
    """Draw integers from `low` to `high`, exclusive."""
    return lambda rng: rng.integers(low, high, shape)


def flags(*shape: int) -> Callable[[np.random.Generator], Any]:
    """Draw booleans."""
    return lambda rng: rng.random(shape) < 0.5
