"""The public functions that resize images: PyTorch's `interpolate`, `pixel_shuffle` and `pixel_unshuffle`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.compound import clip
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.elementwise import floor
from glassgrad.ops.memory import own_memory
from glassgrad.ops.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from glassgrad.ops.resample import Resizing, resample_p
from glassgrad.ops.shape import astype, permute_p, reshape_p
from glassgrad.ops.window_arguments import several

_MODES = {
    1: ("nearest", "nearest-exact", "linear", "area"),
    2: ("nearest", "nearest-exact", "bilinear", "bicubic", "area"),
    3: ("nearest", "nearest-exact", "trilinear", "area"),
}
_MEANS = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_KERNELS = {"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


@own_memory
def interpolate(
    input: Array,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Array:
    """Resize (N, C, L), (N, C, H, W) or (N, C, D, H, W) to `size` or by `scale_factor`.

    `mode` is "nearest", "nearest-exact", "linear" (signals), "bilinear", "bicubic" (images), "trilinear" (volumes) or
    "area".

    Images of uint8 keep their dtype, rounded after each axis as in PyTorch; other integer dtypes can only be resized
    with "nearest" and "nearest-exact".
    """
    dims = len(input.shape) - 2
    if mode not in _MODES.get(dims, ()):
        expected = " or ".join(repr(known) for known in _MODES.get(dims, _MODES[2]))
        raise bad_option("interpolate", "mode", mode, expected)
    if align_corners is not None and mode in {"nearest", "nearest-exact", "area"}:
        raise bad_option(
            "interpolate", "align_corners", align_corners, f"None with mode {mode!r}, which has no corners"
        )
    if (size is None) == (scale_factor is None):
        raise bad_option("interpolate", "size", size, "either size or scale_factor")
    before = tuple(input.shape[2:])
    if size is not None:
        after, factors = several(size, dims, "size", "interpolate"), None
    else:
        factors = (scale_factor,) * dims if isinstance(scale_factor, int | float) else tuple(scale_factor)
        after = tuple(math.floor(n * factor) for n, factor in zip(before, factors, strict=True))
    if mode == "area":
        return _MEANS[dims](input, after)
    resized = _resizer(input, mode)
    for axis in reversed(range(dims)):
        kept = factors is not None and not recompute_scale_factor
        scale = 1 / float(factors[axis]) if kept and factors is not None else before[axis] / after[axis]
        how = Resizing(_KERNELS.get(mode, mode), before[axis], after[axis], scale, bool(align_corners))
        if how.before != how.after or (scale != 1 and not align_corners):
            input = resized(input, 2 + axis, how)
    return input


def _resizer(x: Array, mode: str) -> Callable[[Array, int, Resizing], Array]:
    """Return the function that resizes one axis of arrays like x."""
    if x.dtype.kind not in "biu" or mode in {"nearest", "nearest-exact"}:
        return lambda x, axis, how: resample_p(x, axis=axis, how=how)
    if x.dtype != np.uint8 or mode not in {"bilinear", "bicubic"}:
        raise errors.IMAGE_DTYPE(
            op=f"interpolate(mode={mode!r})",
            given=x.dtype,
            where=provenance.here(),
            expected="floating-point, or uint8 with 'bilinear' and 'bicubic'",
        )

    def rounded(x: Array, axis: int, how: Resizing) -> Array:
        y = resample_p(astype(x, np.float64), axis=axis, how=how)
        return astype(clip(floor(y + 0.5), 0, 255), np.uint8)

    return rounded


@takes_complex
@own_memory
def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """(..., C r r, H, W) to (..., C, H r, W r): blocks of channels become blocks of pixels (Shi et al. 2016)."""
    r = upscale_factor
    if r < 1 or len(input.shape) < 3:
        raise bad_option("pixel_shuffle", "upscale_factor", r, "at least 1, of at least three dimensions")
    *lead, channels, height, width = input.shape
    if channels % (r * r):
        raise bad_option("pixel_shuffle", "upscale_factor", r, f"its square to divide the {channels} channels")
    n = len(lead)
    parts = reshape_p(input, shape=(*lead, channels // (r * r), r, r, height, width))
    mixed = permute_p(parts, axes=(*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape_p(mixed, shape=(*lead, channels // (r * r), height * r, width * r))


@takes_complex
@own_memory
def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """(..., C, H r, W r) to (..., C r r, H, W): the inverse of `pixel_shuffle`."""
    r = downscale_factor
    if r < 1 or len(input.shape) < 3:
        raise bad_option("pixel_unshuffle", "downscale_factor", r, "at least 1, of at least three dimensions")
    *lead, channels, height, width = input.shape
    if height % r or width % r:
        raise bad_option(
            "pixel_unshuffle", "downscale_factor", r, f"a divisor of the height {height} and the width {width}"
        )
    n = len(lead)
    parts = reshape_p(input, shape=(*lead, channels, height // r, r, width // r, r))
    mixed = permute_p(parts, axes=(*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape_p(mixed, shape=(*lead, channels * r * r, height // r, width // r))
