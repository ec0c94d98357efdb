"""Pooling over windows of two spatial dimensions, and the unfolding of windows into columns.

Every op here walks over the positions *inside* a window (kernel height times width of them); each step
handles all windows at once as one strided view. Windows and their sizes are described as in `ops/conv.py`.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops.core import Array, Linear, custom, linear
from glassgrad.ops.kernels import native as native_kernels
from glassgrad.ops.kernels import parallel
from glassgrad.ops.kernels.windows import Pads, Pair, Plan, out_size
from glassgrad.ops.samples import S, distinct
from glassgrad.ops.vmap.rules import native

Shape = tuple[int, ...]


def _grid(size: Shape, kernel: Pair, stride: Pair, padding: Pads, dilation: Pair = (1, 1), ceil: bool = False) -> Plan:
    out = tuple(out_size(size[a], kernel[a], stride[a], padding[a], dilation[a], ceil) for a in (0, 1))
    if min(out) <= 0:
        raise ValueError(
            f"the window {kernel[0]}x{kernel[1]} is larger than the input {size[0]}x{size[1]} "
            f"with its padding {padding}"
        )
    return Plan((size[0], size[1]), kernel, (out[0], out[1]), stride, padding, dilation)


def _like(xp: ModuleType, x: Array, shape: Shape, fill: float = 0) -> Array:
    """A new array (..., H, W) with the memory layout of `x`: channels stay innermost where they were."""
    if x.ndim == 4 and x.strides[1] == x.itemsize and x.shape[1] > 1:
        n, c, h, w = shape
        return xp.full((n, h, w, c), fill, x.dtype).transpose(0, 3, 1, 2)
    return xp.full(shape, fill, x.dtype)


def _bordered(xp: ModuleType, x: Array, grid: Plan, fill: float) -> Array:
    if grid.full == grid.size:
        return x
    full = _like(xp, x, (*x.shape[:-2], *grid.full), fill)
    grid.inner(full)[...] = x
    return full


def _pooled_shape(x: Array, *rest: Any, **p: Any) -> Shape:
    return (*x.shape[:-2], *_grid(x.shape[-2:], **p).out)


# --- maximum --------------------------------------------------------------------------------------


def _lowest(dtype: Any) -> float:
    return -math.inf if dtype.kind in "fV" else int(np.iinfo(dtype).min)


# Nanoseconds of NumPy per element of x: to compare it, and to scatter the cotangent to the maxima.
_NS_TO_COMPARE, _NS_TO_SCATTER = 0.7, 5.0


def _max_pool(xp: ModuleType, x: Array, **p: Any) -> Array:
    grid = _grid(x.shape[-2:], **p)
    if native_kernels.pays(native_kernels.WINDOWS * _NS_TO_COMPARE * x.size):
        ready = native_kernels.result("max_pool2d", (x,), (*x.shape[:-2], *grid.out), p)
        if ready is not None:
            return ready
    full = _bordered(xp, x, grid, _lowest(x.dtype))
    views = [grid.at(full, tap) for tap in grid.taps]
    if len(views) == 1:
        return views[0].copy()
    best = xp.maximum(views[0], views[1])
    for view in views[2:]:
        xp.maximum(best, view, out=best)
    return best


def _winners(xp: ModuleType, x: Array, y: Array, grid: Plan) -> list[Array]:
    """For every position inside the windows, a mask of the windows with their first maximum there, as in PyTorch.

    A border is never chosen, even if its value equals the maximum; of several NaN the first one is.
    """
    unequal = x.dtype.kind in "fV"  # a border of NaN is unequal to everything
    full = _bordered(xp, x, grid, math.nan if unequal else _lowest(x.dtype))
    found: list[Array] = []
    taken = None
    for tap in grid.taps:
        mask = grid.at(full, tap) == y
        if not unequal:
            _leave_out_border(mask, grid, tap)
        if taken is None:
            taken = mask.copy()
        else:
            mask &= ~taken
            taken |= mask
        found.append(mask)
    if taken is not None and not taken.all():
        for tap, mask in zip(grid.taps, found, strict=True):
            missing = xp.isnan(grid.at(full, tap)) & ~taken
            _leave_out_border(missing, grid, tap)
            mask |= missing
            taken |= missing
    return found


def _leave_out_border(mask: Array, grid: Plan, tap: Pair) -> None:
    """Set a mask of windows to False where their element `tap` does not lie in the image."""
    (top, bottom), (left, right) = (grid.inside(axis, tap[axis]) for axis in (0, 1))
    mask[..., :top, :] = mask[..., bottom:, :] = False
    mask[..., :left] = mask[..., right:] = False


def _max_scatter(xp: ModuleType, g: Array, x: Array, y: Array, **p: Any) -> Array:
    if native_kernels.pays(native_kernels.WINDOWS * _NS_TO_SCATTER * x.size):
        ready = native_kernels.result("max_pool2d_scatter", (g, x, y), x.shape, p)
        if ready is not None:
            return ready
    grid = _grid(x.shape[-2:], **p)
    full = _like(xp, x, (*x.shape[:-2], *grid.full)).astype(g.dtype, copy=False)
    disjoint = all(s >= d * (k - 1) + 1 for s, d, k in zip(grid.stride, grid.dilation, grid.kernel, strict=True))
    for tap, mask in zip(grid.taps, _winners(xp, x, y, grid), strict=True):
        if disjoint:
            xp.copyto(grid.at(full, tap), g, where=mask)
        else:
            grid.at(full, tap)[...] += xp.where(mask, g, 0)
    return grid.inner(full)


def _max_gather(xp: ModuleType, t: Array, x: Array, y: Array, **p: Any) -> Array:
    grid = _grid(x.shape[-2:], **p)
    full = _bordered(xp, t, grid, 0)
    out = xp.zeros(y.shape, t.dtype)
    for tap, mask in zip(grid.taps, _winners(xp, x, y, grid), strict=True):
        xp.copyto(out, grid.at(full, tap), where=mask)
    return out


def _max_index(xp: ModuleType, x: Array, y: Array, **p: Any) -> Array:
    grid = _grid(x.shape[-2:], **p)
    out = xp.zeros(y.shape, np.int64)
    (top, _), (left, _) = grid.padding
    rows = xp.arange(grid.out[0])[:, None] * grid.stride[0] - top
    columns = xp.arange(grid.out[1])[None, :] * grid.stride[1] - left
    for (i, j), mask in zip(grid.taps, _winners(xp, x, y, grid), strict=True):
        place = (rows + i * grid.dilation[0]) * grid.size[1] + columns + j * grid.dilation[1]
        xp.copyto(out, xp.broadcast_to(place, out.shape), where=mask)
    return out


def _window(kernel: Pair, stride: Pair, padding: Pads, dilation: Pair = (1, 1), ceil: bool = False) -> dict[str, Any]:
    return {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil": ceil}


_NONE = ((0, 0), (0, 0))
_TILED = _window((2, 2), (2, 2), _NONE)
_OVERLAPPING = _window((3, 2), (2, 1), ((1, 1), (0, 0)))
_HANGING = _window((2, 2), (2, 3), _NONE, (1, 2), ceil=True)

max_pool2d_p = custom(
    "max_pool2d",
    _max_pool,
    saves=("x", "y"),
    shape=_pooled_shape,
    batch=native,
    vjp=(lambda g, y, x, **p: max_pool2d_scatter_p(g, x, y, **p),),
    jvp=(lambda t, y, x, **p: max_pool2d_gather_p(t, x, y, **p),),
)
max_pool2d_p.describe("largest x of each window", "g at the first largest of each window")
max_pool2d_p.samples = [
    S(distinct(1, 2, 4, 4), **_TILED),
    S(distinct(1, 1, 4, 4), **_OVERLAPPING),
    S(distinct(1, 1, 5, 5), **_HANGING),
]


def _chosen(shape: Shape, **p: Any) -> tuple[Any, Any]:
    """Draw x and its maxima, for the samples of the two primitives below."""
    x = (np.arange(math.prod(shape)) * 7.0 % 19).reshape(shape)
    return (lambda rng: x), (lambda rng: _max_pool(np, x, **p))


# Both are linear maps determined by where x has its maxima (y holds their values), and each other's transpose.
max_pool2d_scatter_p: Linear = linear(
    "max_pool2d_scatter",
    _max_scatter,
    (lambda c, g, x, y, **p: max_pool2d_gather_p(c, x, y, **p), None, None),
    saves="x",
    shape=lambda g, x, y, **p: x.shape,
    batch=native,
    takes_complex=False,
)
max_pool2d_scatter_p.describe("zeros with g at the first largest x of each window", "g at the same places")
max_pool2d_scatter_p.samples = [
    S((1, 2, 2, 2), *_chosen((1, 2, 4, 4), **_TILED), **_TILED),
    S((1, 1, 2, 3), *_chosen((1, 1, 4, 4), **_OVERLAPPING), **_OVERLAPPING),
]
max_pool2d_gather_p: Linear = linear(
    "max_pool2d_gather",
    _max_gather,
    (lambda g, t, x, y, **p: max_pool2d_scatter_p(g, x, y, **p), None, None),
    saves="x",
    shape=lambda t, x, y, **p: y.shape,
    batch=native,
    takes_complex=False,
)
max_pool2d_gather_p.describe("t where x is the first largest of each window", "zeros with g there")
max_pool2d_gather_p.samples = [
    S((1, 2, 4, 4), *_chosen((1, 2, 4, 4), **_TILED), **_TILED),
    S((1, 1, 5, 5), *_chosen((1, 1, 5, 5), **_HANGING), **_HANGING),
]
max_pool2d_index_p = custom("max_pool2d_index", _max_index, vjp=(None, None), jvp=(None, None), batch=native)
max_pool2d_index_p.describe("position of the first largest x of each window, counted through the image", "none")

# --- sum ------------------------------------------------------------------------------------------


def _sum_pool(xp: ModuleType, x: Array, **p: Any) -> Array:
    grid = _grid(x.shape[-2:], **p)
    full = _bordered(xp, x, grid, 0)
    total = grid.at(full, (0, 0)).copy(order="K")
    for tap in grid.taps[1:]:
        total = parallel.add(total, grid.at(full, tap), out=total)
    return total


def _sum_spread(xp: ModuleType, g: Array, *, size: Pair, **p: Any) -> Array:
    grid = _grid(size, **p)
    full = _like(xp, g, (*g.shape[:-2], *grid.full))
    for tap in grid.taps:
        if grid.tiles:
            grid.at(full, tap)[...] = g
        else:
            grid.at(full, tap)[...] += g
    return grid.inner(full)


sum_pool2d_p: Linear = linear(
    "sum_pool2d",
    _sum_pool,
    (lambda g, x, **p: sum_spread2d_p(g, size=tuple(x.shape[-2:]), **p),),
    shape=_pooled_shape,
    batch=native,
    takes_complex=False,
)
sum_pool2d_p.describe("sum of x over each window", "g spread over each window")
sum_pool2d_p.samples = [S((1, 2, 4, 4), **_TILED), S((1, 1, 4, 4), **_OVERLAPPING), S((1, 1, 5, 5), **_HANGING)]
sum_spread2d_p: Linear = linear(
    "sum_spread2d",
    _sum_spread,
    (lambda c, g, *, size, **p: sum_pool2d_p(c, **p),),
    shape=lambda g, *, size, **p: (*g.shape[:-2], *size),
    batch=native,
    takes_complex=False,
)
sum_spread2d_p.describe("x added all over its window", "sum of g over each window")
sum_spread2d_p.samples = [S((1, 2, 2, 2), size=(4, 4), **_TILED), S((1, 1, 2, 3), size=(4, 4), **_OVERLAPPING)]

# --- windows as columns ---------------------------------------------------------------------------


def _unfold(xp: ModuleType, x: Array, **p: Any) -> Array:
    grid = _grid(x.shape[2:], **p)
    n, c = x.shape[:2]
    full = _bordered(xp, x, grid, 0)
    out = xp.empty((n, c, *grid.kernel, *grid.out), x.dtype)
    for i, j in grid.taps:
        out[:, :, i, j] = grid.at(full, (i, j))
    return out.reshape(n, c * math.prod(grid.kernel), math.prod(grid.out))


def _fold(xp: ModuleType, g: Array, *, size: Pair, **p: Any) -> Array:
    grid = _grid(size, **p)
    area = math.prod(grid.kernel)
    n, rows, columns = g.shape
    if rows % area or columns != math.prod(grid.out):
        raise ValueError(
            f"expected rows in multiples of {area} (the window) and {math.prod(grid.out)} columns (its positions), "
            f"given {rows} and {columns}"
        )
    parts = g.reshape(n, rows // area, *grid.kernel, *grid.out)
    full = xp.zeros((n, rows // area, *grid.full), g.dtype)
    for i, j in grid.taps:
        grid.at(full, (i, j))[...] += parts[:, :, i, j]
    return grid.inner(full)


def _unfolded_shape(x: Array, **p: Any) -> Shape:
    grid = _grid(x.shape[2:], **p)
    return (x.shape[0], x.shape[1] * math.prod(grid.kernel), math.prod(grid.out))


unfold_p: Linear = linear(
    "im2col", _unfold, (lambda g, x, **p: fold_p(g, size=tuple(x.shape[2:]), **p),), shape=_unfolded_shape
)
unfold_p.describe("every window of x as a column", "columns added back where they were")
unfold_p.samples = [S((1, 2, 4, 3), **_window((2, 2), (2, 1), _NONE)), S((1, 1, 4, 4), **_OVERLAPPING)]
fold_p: Linear = linear(
    "col2im",
    _fold,
    (lambda c, g, *, size, **p: unfold_p(c, **p),),
    shape=lambda g, *, size, kernel, **p: (g.shape[0], g.shape[1] // math.prod(kernel), *size),
)
fold_p.describe("columns added at the windows they stand for", "every window of g as a column")
fold_p.samples = [
    S((1, 8, 4), size=(4, 3), **_window((2, 2), (2, 1), _NONE)),
    S((2, 6, 6), size=(4, 4), **_OVERLAPPING),
]
