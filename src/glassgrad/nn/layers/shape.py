"""Layers that only change the shape."""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.engine.tensor import Tensor
from glassgrad.nn.module import Module


class Flatten(Module):
    """Merges the dimensions from `start_dim` to `end_dim`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Flatten()(gg.zeros(2, 3, 4, 4)).shape
        (2, 48)
    """

    _shown = "start_dim={start_dim}, end_dim={end_dim}"

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """Splits dimension `dim` into several of the sizes `unflattened_size`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Unflatten(1, (3, 4))(gg.zeros(2, 12)).shape
        (2, 3, 4)
    """

    _shown = "dim={dim}, unflattened_size={unflattened_size}"

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)


__all__ = ["Flatten", "Unflatten"]
