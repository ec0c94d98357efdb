"""Convolution, pooling, unfolding and resizing, with PyTorch's names; the work is done in `ops.spatial`."""

from __future__ import annotations

from typing import Any

from glassgrad.ops.core import Array
from glassgrad.ops.spatial import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    avg_pool1d,
    avg_pool2d,
    col2im,
    conv1d,
    conv2d,
    conv_transpose1d,
    conv_transpose2d,
    im2col,
    interpolate,
    max_pool1d,
    max_pool2d,
    pixel_shuffle,
    pixel_unshuffle,
)

unfold = im2col
fold = col2im


def upsample(
    input: Array, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Array:
    """`interpolate`, under PyTorch's older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d", "conv1d", "conv2d", "conv_transpose1d",
    "conv_transpose2d", "fold", "interpolate", "max_pool1d", "max_pool2d", "pixel_shuffle", "pixel_unshuffle", "unfold",
    "upsample",
]  # fmt: skip
