"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from glassgrad.engine.tensor import Tensor
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops.shape import cat


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the numbers of all parameters, one after the other.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.utils.parameters_to_vector(gg.nn.Linear(3, 2).parameters()).shape
        (8,)
    """
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the numbers of a vector into the parameters, in their order.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.Linear(1, 1)
        >>> gg.nn.utils.vector_to_parameters(gg.tensor([2.0, 3.0]), layer.parameters())
        >>> layer(gg.tensor([5.0])).item()
        13.0
    """
    start = 0
    values = np.asarray(vec.detach())
    for parameter in parameters:
        stop = start + parameter.numel()
        parameter.array[...] = values[start:stop].reshape(parameter.shape)
        MUTATIONS.record(parameter.array)
        start = stop


__all__ = ["parameters_to_vector", "vector_to_parameters"]
