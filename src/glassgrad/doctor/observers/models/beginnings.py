"""The size of a model's weights when training begins."""

from __future__ import annotations

import math
from collections.abc import Sequence

from glassgrad.doctor.library import Array, Module

SLIGHT = 0.1
"""The gain of a matrix, or the standard deviation of an embedding, below which it counts as beginning at 0."""


def gains(model: Module, matrices: Sequence[tuple[str, Array]]) -> tuple[tuple[str, float], ...]:
    """Return the gain of each matrix but embeddings: its standard deviation times the root of its number of inputs."""
    tables = _looked_up(model)
    return tuple((name, _deviation(one) * math.sqrt(one[0].size)) for name, one in matrices if name not in tables)


def slight(model: Module, matrices: Sequence[tuple[str, Array]]) -> tuple[str, ...]:
    """Return the names of the matrices and embeddings that begin near 0."""
    tables = _looked_up(model)
    known = [*gains(model, matrices), *((name, _deviation(one)) for name, one in matrices if name in tables)]
    return tuple(name for name, gain in known if gain < SLIGHT)


def _looked_up(model: Module) -> frozenset[str]:
    """Return the names of the weights of embeddings, which a model looks up and does not multiply."""
    found = (name for name, module in model.named_modules() if "Embedding" in type(module).__name__)
    return frozenset(f"{name}.weight" if name else "weight" for name in found)


def _deviation(array: Array) -> float:
    """Return the standard deviation of a sample of an array's elements."""
    flat = array.reshape(-1)
    return float(flat[:: max(1, flat.size >> 14)].std())
