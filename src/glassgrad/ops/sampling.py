"""Sampling images or volumes between their pixels: PyTorch's `grid_sample` and `affine_grid`.

Each neighbour of a place is read with a flat index and weighted along every axis (Jaderberg et al. 2015, "Spatial
transformer networks"; Keys 1981 for the cubic weights). Weights are differentiated, indices are constants.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.index import take_along_axis_p
from glassgrad.ops.linalg import matmul
from glassgrad.ops.shape import astype, broadcast_to_p, reshape_p

_SHARPNESS = -0.75  # of the cubic kernel, PyTorch's choice
_BORDERS = ("zeros", "border", "reflection")


class _Tap(NamedTuple):
    """A neighbour along one axis: its position and its weight (None: 1)."""

    place: Array
    weight: Array | None


# --- places ---------------------------------------------------------------------------------------


def _in_pixels(x: Array, size: int, corners: bool) -> Array:
    """Map -1 ... 1 to pixels: the ends are the centres of the outer pixels, or their edges."""
    return (x + 1) * (0.5 * (size - 1)) if corners else ((x + 1) * size - 1) * 0.5


def _clipped(x: Array, size: int) -> Array:
    """Clip to the image; the slope is 0 at its ends and outside."""
    return ew.where(x <= 0, 0, ew.where(x >= size - 1, size - 1, x))


def _reflected(x: Array, size: int, corners: bool) -> Array:
    """Reflect at the ends as often as necessary."""
    low, span = (0.0, float(size - 1)) if corners else (-0.5, float(size))
    if span == 0:
        return x * 0
    away = x - low
    away = ew.where(away < 0, -away, away)
    flips = ew.floor(away / span)
    rest = away - flips * span
    return ew.where(ew.equal(ew.remainder(flips, 2), 0), rest, span - rest) + low


def _bordered(x: Array, size: int, mode: str, corners: bool) -> Array:
    """Move places outside of the image according to the padding mode."""
    if mode == "zeros":
        return x
    return _clipped(_reflected(x, size, corners) if mode == "reflection" else x, size)


def _linear(x: Array) -> list[_Tap]:
    first = ew.floor(x)
    after = x - first
    return [_Tap(first, 1 - after), _Tap(first + 1, after)]


def _cubic(x: Array, border: Callable[[Array], Array]) -> list[_Tap]:
    first = ew.floor(x)
    t = x - first

    def near(d: Array) -> Array:
        return ((_SHARPNESS + 2) * d - (_SHARPNESS + 3)) * d * d + 1

    def far(d: Array) -> Array:
        return ((_SHARPNESS * d - 5 * _SHARPNESS) * d + 8 * _SHARPNESS) * d - 4 * _SHARPNESS

    weights = far(t + 1), near(t), near(1 - t), far(2 - t)
    return [_Tap(border(first + (k - 1)), weight) for k, weight in enumerate(weights)]


def _taps(x: Array, size: int, mode: str, border: str, corners: bool) -> list[_Tap]:
    """The neighbours of every place along one axis."""
    pixels = _in_pixels(x, size, corners)
    if mode == "bicubic":
        return _cubic(pixels, lambda at: _bordered(at, size, border, corners))
    place = _bordered(pixels, size, border, corners)
    return _linear(place) if mode == "bilinear" else [_Tap(ew.round_p(place), None)]


# --- reading --------------------------------------------------------------------------------------


def _read(flat: Array, taps: Sequence[_Tap], sizes: Sequence[int]) -> Array:
    """The pixels (N, C, places) at one neighbour along every axis, 0 outside, times their weights."""
    inside: Any = True
    index: Any = 0
    weight: Any = None
    for tap, size in zip(taps, sizes, strict=True):
        fits = ew.logical_and(tap.place >= 0, tap.place <= size - 1)
        inside = fits if inside is True else ew.logical_and(inside, fits)
        index = index * size + astype(ew.where(fits, tap.place, 0), np.int64)
        if tap.weight is not None:
            weight = tap.weight if weight is None else weight * tap.weight
    n, c, _ = flat.shape
    count = index.shape[1]
    wide = broadcast_to_p(reshape_p(index, shape=(n, 1, count)), shape=(n, c, count))
    found = ew.where(reshape_p(inside, shape=(n, 1, count)), take_along_axis_p(flat, wide, axis=2), 0)
    return found if weight is None else found * reshape_p(weight, shape=(n, 1, count))


def grid_sample(
    input: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Array:
    """Read (N, C, H, W) at the places `grid` (N, H', W', 2), or (N, C, D, H, W) at (N, D', H', W', 3).

    Args:
        input: images or volumes.
        grid: x, y (and z) of every place, from -1 at the left, top (and front) end to 1 at the other.
        mode: "bilinear" (of volumes trilinear), "nearest" or "bicubic" (images only).
        padding_mode: values outside: "zeros", the nearest pixel ("border"), or the mirrored image ("reflection").
        align_corners: whether -1 and 1 are the centres of the outer pixels rather than their edges.

    Returns:
        (N, C, H', W') or (N, C, D', H', W'), with gradients for both arguments.

    Example:
        >>> import glassgrad as gg
        >>> image = gg.arange(4.0).reshape(1, 1, 2, 2)
        >>> gg.grid_sample(image, gg.zeros(1, 1, 1, 2), align_corners=True).item()
        1.5
    """
    dims = len(input.shape) - 2
    if dims not in (2, 3) or len(grid.shape) != dims + 2 or grid.shape[0] != input.shape[0] or grid.shape[-1] != dims:
        expected = f"(N={input.shape[0]}, H, W, 2) for images, (N, D, H, W, 3) for volumes"
        raise bad_option("grid_sample", "grid", tuple(grid.shape), expected)
    if mode not in ("bilinear", "nearest", *(("bicubic",) if dims == 2 else ())):
        raise bad_option("grid_sample", "mode", mode, "'bilinear', 'nearest' or, for images, 'bicubic'")
    if padding_mode not in _BORDERS:
        raise bad_option("grid_sample", "padding_mode", padding_mode, "'zeros', 'border' or 'reflection'")
    if input.dtype != grid.dtype or input.dtype.kind not in "fV":
        raise bad_option("grid_sample", "grid", grid.dtype, f"floats as in the input, {input.dtype}")
    n, c, *sizes = input.shape
    if not all(sizes):
        raise bad_option("grid_sample", "input", tuple(input.shape), "at least one pixel along each dimension")
    out = tuple(grid.shape[1:-1])
    places = reshape_p(grid, shape=(n, math.prod(out), dims))
    flat = reshape_p(input, shape=(n, c, math.prod(sizes)))
    # Coordinates come in reverse order of the axes.
    each = [
        _taps(places[:, :, dims - 1 - axis], size, mode, padding_mode, bool(align_corners))
        for axis, size in enumerate(sizes)
    ]
    y: Any = None
    for taps in itertools.product(*each):
        part = _read(flat, taps, sizes)
        y = part if y is None else y + part
    return reshape_p(y, shape=(n, c, *out))


def _ends(count: int, corners: bool, dtype: Any) -> Array:
    """The centres of `count` pixels from -1 to 1."""
    if count < 2:
        return np.zeros(count, dtype)
    share = 1.0 if corners else (count - 1) / count
    return (np.linspace(-1, 1, count) * share).astype(dtype)


def affine_grid(theta: Array, size: Sequence[int], align_corners: bool | None = None) -> Array:
    """The places (N, H, W, 2) to which affine maps `theta` (N, 2, 3) send the pixels of images of `size` (N, C, H, W).

    For volumes `theta` is (N, 3, 4) and `size` (N, C, D, H, W). `grid_sample` takes the result.

    Example:
        >>> import glassgrad as gg
        >>> gg.affine_grid(gg.tensor([[[1.0, 0, 0], [0, 1, 0]]]), (1, 1, 1, 2)).tolist()
        [[[[-0.5, 0.0], [0.5, 0.0]]]]
    """
    dims = len(size) - 2
    if dims not in (2, 3) or tuple(theta.shape) != (size[0], dims, dims + 1):
        expected = "(N, 2, 3) with a size (N, C, H, W), (N, 3, 4) for volumes"
        raise bad_option("affine_grid", "theta", tuple(theta.shape), expected)
    axes = [_ends(int(count), bool(align_corners), theta.dtype) for count in size[2:]]
    columns = [part.ravel() for part in reversed(np.meshgrid(*axes, indexing="ij"))]
    base = np.stack([*columns, np.ones(columns[0].shape, theta.dtype)], -1)
    y = matmul(base, theta.mT)
    return reshape_p(y, shape=(*(int(n) for n in (size[0], *size[2:])), dims))
