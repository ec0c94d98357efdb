"""Resizing along one axis: each output is a weighted sum of a few neighbouring inputs.

The neighbours and weights of an axis are computed once per (mode, sizes, scale) and cached. An image is resized one
axis after the other. Conventions (half-pixel centres, clamped borders, the cubic kernel of Keys 1981 with a = -0.75)
are PyTorch's.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops.core import Array, Linear, linear
from glassgrad.ops.samples import S
from glassgrad.ops.vmap.rules import shifted

Shape = tuple[int, ...]


class Resizing(NamedTuple):
    """How one axis is resized: `scale` is the input size over the output size."""

    mode: str
    before: int
    after: int
    scale: float
    align_corners: bool = False


@lru_cache(maxsize=256)
def neighbours(how: Resizing) -> list[tuple[Any, Any]]:
    """Return pairs (index, weight), one for each neighbour; indices never decrease along the axis."""
    last = how.before - 1
    place = np.arange(how.after)
    if how.mode in {"nearest", "nearest-exact"}:
        # In single precision, as in PyTorch: rounding matters at the borders of cells.
        shift = np.float32(0.5 if how.mode == "nearest-exact" else 0)
        index = np.floor((place.astype(np.float32) + shift) * np.float32(how.scale)).astype(np.int64)
        return [(np.minimum(index, last), None)]
    if how.align_corners:
        centre = place * (last / (how.after - 1) if how.after > 1 else 0.0)
    else:
        centre = (place + 0.5) * how.scale - 0.5
    if how.mode == "linear":
        centre = np.maximum(centre, 0)
        left = np.minimum(np.floor(centre).astype(np.int64), last)
        share = centre - left
        return [(left, 1 - share), (np.minimum(left + 1, last), share)]
    left = np.floor(centre).astype(np.int64)
    share = centre - left
    weights = (_cubic(1 + share), _cubic(share), _cubic(1 - share), _cubic(2 - share))
    return [(np.clip(left - 1 + step, 0, last), weight) for step, weight in enumerate(weights)]


def _cubic(distance: Array) -> Array:
    """The kernel of cubic convolution (Keys 1981, equation 4) with a = -0.75."""
    a = -0.75
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = a * (((distance - 5) * distance + 8) * distance - 4)
    return np.where(distance <= 1, near, far)


def _beside(weight: Array, x: Array, axis: int) -> Array:
    shape = (1,) * axis + (-1,) + (1,) * (x.ndim - axis - 1)
    return weight.astype(x.dtype).reshape(shape)


@lru_cache(maxsize=256)
def matrix_of(how: Resizing, dtype: Any) -> Array:
    """The weights as a matrix (after, before)."""
    matrix = np.zeros((how.after, how.before))
    for index, weight in neighbours(how):
        np.add.at(matrix, (np.arange(how.after), index), weight)
    return matrix.astype(dtype)


_MOST_READERS, _MOST_RUNS = 16, 4


@lru_cache(maxsize=256)
def _readers(how: Resizing, neighbour: int) -> list[tuple[Any, Any]]:
    """Return pairs (inputs, outputs): of each input the first output that reads it, then the second, and so on.

    Evenly spaced places are slices, since NumPy copies for others; at the borders the spacing differs. If an input has
    many readers, the only pair is all inputs and None: NumPy's sums of segments are faster then.
    """
    index = neighbours(how)[neighbour][0]
    starts = np.flatnonzero(np.r_[True, index[1:] != index[:-1]])
    counts = np.diff(starts, append=len(index))
    if counts.max() > _MOST_READERS:
        return [(index[starts], None)]
    pairs = []
    for at in range(int(counts.max())):
        outputs = starts[counts > at] + at
        steps = np.diff(outputs)
        cuts: Array = np.flatnonzero(steps != np.median(steps)) + 1 if len(steps) else []
        runs = np.split(outputs, cuts) if len(cuts) < _MOST_RUNS else [outputs]
        pairs += [(_evenly(index[run]), _evenly(run)) for run in runs]
    return pairs


def _evenly(places: Array) -> Any:
    """Return places as a slice if they are evenly spaced."""
    step = int(places[1] - places[0]) if len(places) > 1 else 1
    even = step > 0 and bool((np.diff(places) == step).all())
    return slice(int(places[0]), int(places[-1]) + 1, step) if even else places


# Up to this size, a product with the mostly zero matrix of weights is faster than reading neighbours one by one.
DENSE = 128


def _product(xp: ModuleType, x: Array, axis: int, how: Resizing, back: bool) -> Array | None:
    """Resize by a matrix product; None where that is slow, or wrong because 0 * inf makes a whole row NaN."""
    if xp is not np or how.mode.startswith("nearest") or max(how.before, how.after) > DENSE:
        return None
    matrix = matrix_of(how, x.dtype)
    if back:
        matrix = matrix.T
    with np.errstate(invalid="ignore", over="ignore"):
        y = x @ matrix.T if axis == x.ndim - 1 else (matrix @ x.swapaxes(axis, -2)).swapaxes(axis, -2)
        return y if np.isfinite(y.sum()) else None


def _resample(xp: ModuleType, x: Array, *, axis: int, how: Resizing) -> Array:
    if how.mode == "nearest" and how.after % how.before == 0 and how.scale == how.before / how.after:
        return xp.repeat(x, how.after // how.before, axis=axis)
    product = _product(xp, x, axis, how, back=False)
    if product is not None:
        return product
    total = None
    for index, weight in neighbours(how):
        part = xp.take(x, xp.asarray(index), axis=axis)
        if weight is not None:
            with np.errstate(invalid="ignore"):  # 0 * inf between neighbours is NaN, as in PyTorch
                part *= _beside(xp.asarray(weight), x, axis)
        total = part if total is None else total + part
    return total


def _resample_back(xp: ModuleType, g: Array, *, axis: int, how: Resizing) -> Array:
    if how.mode == "nearest" and how.after % how.before == 0 and how.scale == how.before / how.after:
        many = how.after // how.before
        parts = g.reshape(*g.shape[:axis], how.before, many, *g.shape[axis + 1 :])
        lead = (slice(None),) * (axis + 1)
        total = parts[(*lead, 0)].copy()
        for at in range(1, many):
            total += parts[(*lead, at)]
        return total
    product = _product(xp, g, axis, how, back=True)
    if product is not None:
        return product
    out = xp.zeros((*g.shape[:axis], how.before, *g.shape[axis + 1 :]), g.dtype)
    lead = (slice(None),) * axis
    for at, (index, weight) in enumerate(neighbours(how)):
        part = g if weight is None else g * _beside(xp.asarray(weight), g, axis)
        for places, readers in _readers(how, at):
            if readers is None:  # outputs that read the same input are adjacent
                starts = np.flatnonzero(np.r_[True, index[1:] != index[:-1]])
                out[(*lead, places)] += np.add.reduceat(part, starts, axis=axis)
            else:
                out[(*lead, places)] += part[(*lead, readers)]
    return out


_DOUBLED = Resizing("nearest", 2, 4, 0.5)
_NEAREST = Resizing("nearest", 3, 5, 3 / 5)
_LINEAR = Resizing("linear", 3, 5, 3 / 5)
_SHRINKING = Resizing("linear", 5, 3, 5 / 3, align_corners=True)
_CUBIC = Resizing("cubic", 3, 5, 3 / 5)

resample_p: Linear = linear(
    "resample",
    _resample,
    (lambda g, x, **p: resample_back_p(g, **p),),
    batch=shifted,
    shape=lambda x, *, axis, how: (*x.shape[:axis], how.after, *x.shape[axis + 1 :]),
    takes_complex=False,
)
resample_p.describe("weighted sum of neighbours along an axis", "g spread over the neighbours")
resample_p.samples = [
    S((3, 2), axis=0, how=_NEAREST),
    S((2, 3), axis=1, how=_LINEAR),
    S((5, 2), axis=0, how=_SHRINKING),
    S((3,), axis=0, how=_CUBIC),
    S((2, 2), axis=0, how=_DOUBLED),
    S((2, 3, 2), axis=1, how=_LINEAR),
]
resample_back_p: Linear = linear(
    "resample_back",
    _resample_back,
    (lambda c, g, **p: resample_p(c, **p),),
    batch=shifted,
    shape=lambda x, *, axis, how: (*x.shape[:axis], how.before, *x.shape[axis + 1 :]),
    takes_complex=False,
)
resample_back_p.describe("x spread over its neighbours along an axis", "weighted sum of neighbours of g")
resample_back_p.samples = [
    S((5, 2), axis=0, how=_NEAREST),
    S((2, 5), axis=1, how=_LINEAR),
    S((3, 2), axis=0, how=_SHRINKING),
    S((3, 4), axis=1, how=_DOUBLED),
]
