"""Convolution, pooling, unfolding and resizing, with PyTorch's names; the work is done in `ops`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from glassgrad.engine.autocasting import all_in_single
from glassgrad.nn.arguments import Sizes
from glassgrad.ops.complex_input import guard_all, takes_complex
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from glassgrad.ops.resize import interpolate, pixel_shuffle, pixel_unshuffle
from glassgrad.ops.sampling import affine_grid, grid_sample
from glassgrad.ops.shape import movedim, reshape_p
from glassgrad.ops.spatial import (
    col2im,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    im2col,
)

unfold = im2col
fold = col2im


def upsample(
    input: Array, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Array:
    """`interpolate`, under PyTorch's older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Array, size: Sizes = None, scale_factor: float | Sequence[float] | None = None) -> Array:
    """`interpolate` with the nearest pixel, under PyTorch's older name."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Array, size: Sizes = None, scale_factor: float | Sequence[float] | None = None) -> Array:
    """`interpolate` of images with equal corner points, under PyTorch's older name."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


@takes_complex
def channel_shuffle(input: Array, groups: int) -> Array:
    """Channels (N, C, ...) in another order: the first of each of `groups` groups, the second of each, and so on.

    Raises:
        ArgumentError: the groups do not divide the channels.
    """
    shape = tuple(input.shape)
    if len(shape) < 3 or groups < 1 or shape[1] % groups:
        raise bad_option("channel_shuffle", "groups", groups, f"a divisor of the channels of {shape}, (N, C, L, ...)")
    grouped = reshape_p(input, shape=(shape[0], groups, shape[1] // groups, *shape[2:]))
    return reshape_p(movedim(grouped, 1, 2), shape=shape)


__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d"]
__all__ += ["adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid", "avg_pool1d", "avg_pool2d", "avg_pool3d"]
__all__ += ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fold"]
__all__ += ["grid_sample", "interpolate", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool2d"]
__all__ += ["max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "pixel_shuffle", "pixel_unshuffle"]
__all__ += ["channel_shuffle", "unfold", "upsample", "upsample_bilinear", "upsample_nearest"]

guard_all(globals(), __all__)
# Places between pixels have few digits in bfloat16.
all_in_single(globals(), ["grid_sample"])
