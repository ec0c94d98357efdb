"""Rotary position embedding (Su et al. 2021)."""

from __future__ import annotations

import numpy as np

from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors.devices import DType
from glassgrad.nn.module import Module
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.shape import cat, stack


class RoPE(Module):
    """Rotates pairs of numbers of (..., L, width) by angles that grow with the place.

    The scalar product of two rotated vectors depends only on the distance between their places.

    Args:
        dim: how many of the last dimension's numbers are rotated; even.
        base: wavelengths run from 2 pi to 2 pi * base.
        interleaved: pairs are neighbours, (0, 1), (2, 3), ..., as in the paper; otherwise number i belongs to number
            i + dim / 2, as in most models since.
        scale: factor of the places, for longer contexts (position interpolation, Chen et al. 2023).

    Example:
        >>> import glassgrad as gg
        >>> rope = gg.nn.RoPE(8)
        >>> rope(gg.ones(2, 5, 8), offset=3).shape
        (2, 5, 8)
    """

    _shown = "{dim}, base={base}, interleaved={interleaved}, scale={scale}"

    def __init__(self, dim: int, base: float = 10000.0, interleaved: bool = False, scale: float = 1.0) -> None:
        super().__init__()
        if dim <= 0 or dim % 2:
            raise bad_option("RoPE", "dim", dim, "an even number")
        self.dim = dim
        self.base = base
        self.interleaved = interleaved
        self.scale = scale

    def _turns(self, length: int, offset: int, dtype: DType) -> tuple[Array, Array]:
        """Return cosines and sines, (length, dim / 2)."""
        rates = self.base ** (-np.arange(0, self.dim, 2) / self.dim)
        angles = (np.arange(offset, offset + length) * self.scale)[:, None] * rates
        return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)

    def forward(self, input: Tensor, offset: int = 0) -> Tensor:
        """Rotate (..., L, width); `offset` is the place of the first element, for a cache of keys."""
        cos, sin = self._turns(input.shape[-2], offset, input.dtype)
        half = self.dim // 2
        whole = self.dim == input.shape[-1]
        turned = input if whole else input[..., : self.dim]
        if self.interleaved:
            a, b = turned[..., 0::2], turned[..., 1::2]
            y = stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
        else:
            a, b = turned[..., :half], turned[..., half:]
            y = cat([a * cos - b * sin, a * sin + b * cos], -1)
        return y if whole else cat([y, input[..., self.dim :]], -1)


__all__ = ["RoPE"]
