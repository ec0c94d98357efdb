"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from glassgrad.ops.shape import cat
from glassgrad.tape import MUTATIONS


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """Return the numbers of all parameters, one after the other."""
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Write the numbers of a vector into the parameters, in their order."""
    start = 0
    values = np.asarray(vec.detach())
    for parameter in parameters:
        stop = start + parameter.numel()
        parameter.array[...] = values[start:stop].reshape(parameter.shape)
        MUTATIONS.record(parameter.array)
        start = stop


__all__ = ["parameters_to_vector", "vector_to_parameters"]
