"""How large the weights of a model are when training begins."""

from __future__ import annotations

import math
from collections.abc import Sequence

from glassgrad.doctor.library import Array, Module

SLIGHT = 0.1
"""The deviation of a table, or of a matrix times the root of the number of its inputs, from which it begins at 0."""


def gains(model: Module, matrices: Sequence[tuple[str, Array]]) -> tuple[tuple[str, float], ...]:
    """Return the deviation of each matrix that is no table, times the root of the number of its inputs."""
    tables = _looked_up(model)
    return tuple((name, _deviation(one) * math.sqrt(one[0].size)) for name, one in matrices if name not in tables)


def slight(model: Module, matrices: Sequence[tuple[str, Array]]) -> tuple[str, ...]:
    """Return the names of the matrices and tables that begin nearly at 0."""
    tables = _looked_up(model)
    known = [*gains(model, matrices), *((name, _deviation(one)) for name, one in matrices if name in tables)]
    return tuple(name for name, gain in known if gain < SLIGHT)


def _looked_up(model: Module) -> frozenset[str]:
    """Return the names of the weights of embeddings, which are looked up and not multiplied."""
    found = (name for name, module in model.named_modules() if "Embedding" in type(module).__name__)
    return frozenset(f"{name}.weight" if name else "weight" for name in found)


def _deviation(array: Array) -> float:
    """Return the deviation of some of the numbers of an array."""
    flat = array.reshape(-1)
    return float(flat[:: max(1, flat.size >> 14)].std())
