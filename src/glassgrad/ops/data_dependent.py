"""Ops whose result shape depends on the values: nonzero, unique, bincount, histograms.

They need the values, so they refuse the abstract arrays inside a transformation. They return positions. Indexing with
these gives the values, and gradients flow through the indexing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import concrete
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.core import Array, Aval, Custom, bad_option, canonical_axis, custom
from glassgrad.ops.index import getitem_p
from glassgrad.ops.places import ARRAY, EVERYTHING, add_rows
from glassgrad.ops.shape import astype, pad_p, reshape_p, stack


def _needs_numbers(name: str, forward: Callable[..., Any], formula: str, takes_complex: bool = False) -> Custom:
    """Declare a primitive of one argument that returns several arrays of positions or counts."""

    def refuse(*_args: Any, **_params: Any) -> Any:
        raise errors.NEEDS_NUMBERS(op=name, kind="shape and a dtype", where=provenance.here())

    return custom(
        name,
        lambda _xp, x, **params: forward(x, **params),
        vjp=(None,),
        jvp=(None,),
        multiple=True,
        shape=refuse,
        batch=refuse,
        takes_complex=takes_complex,
    ).describe(formula, "none")


nonzero_p = _needs_numbers("nonzero", lambda x: np.atleast_1d(x).nonzero(), "positions where x != 0", True)


def _unique(x: Array, *, axis: int | None) -> tuple[Array, Array, Array]:
    _, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    return first, inverse.reshape(x.shape) if axis is None else inverse.reshape(-1), counts


unique_p = _needs_numbers("unique", _unique, "first position, number and count of each different value")


def _consecutive(x: Array, *, axis: int) -> tuple[Array, Array, Array]:
    slices = np.moveaxis(x, axis, 0)
    count = len(slices)
    differs = (slices[1:] != slices[:-1]).any(axis=tuple(range(1, slices.ndim)))
    first = np.flatnonzero(np.r_[True, differs][:count])
    return first, np.cumsum(np.r_[0, differs][:count]), np.diff(np.r_[first, count])


consecutive_p = _needs_numbers("unique_consecutive", _consecutive, "starts and lengths of runs of equal values")


def _positions_of(x: Array, positions: Array, axis: int) -> Array:
    return getitem_p(x, positions, spec=(EVERYTHING,) * axis + (ARRAY,))


# --- public functions -----------------------------------------------------------------------------


@takes_complex
def nonzero(x: Array, as_tuple: bool = False) -> Any:
    """The indices where x is not zero: shape (count, ndim), or with `as_tuple` one array per dimension."""
    found = nonzero_p(x)
    if as_tuple:
        return found
    return stack(found, 1) if x.shape else reshape_p(found[0], shape=(-1, 1))[:, :0]


@takes_complex
def nonzero_static(x: Array, *, size: int, fill_value: int = -1) -> Array:
    """`nonzero` with exactly `size` rows: the first places that are not 0, and `fill_value` where there are fewer."""
    places = nonzero(x)[:size]
    missing = size - places.shape[0]
    return pad_p(places, widths=((0, missing), (0, 0)), value=fill_value) if missing else places


@takes_complex
def argwhere(x: Array) -> Array:
    """The indices where x is not zero: shape (count, ndim)."""
    return nonzero(x)


def unique(
    x: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The distinct values in x, in order; with `dim` the distinct slices.

    Gradients flow to the first occurrence of each value.

    Returns:
        The values; with flags, a tuple of the values and the requested inverse or counts.
    """
    axis = None if dim is None else canonical_axis(dim, len(x.shape))
    first, inverse, counts = unique_p(x, axis=axis)
    values = _positions_of(reshape_p(x, shape=(math.prod(x.shape),)) if axis is None else x, first, axis or 0)
    return _asked(values, (inverse, return_inverse), (counts, return_counts))


def unique_consecutive(
    x: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The values of x (its slices along `dim`) without consecutive repeats."""
    if dim is None:
        flat = reshape_p(x, shape=(math.prod(x.shape),))
        first, inverse, counts = consecutive_p(flat, axis=0)
        values, inverse = _positions_of(flat, first, 0), reshape_p(inverse, shape=tuple(x.shape))
    else:
        axis = canonical_axis(dim, len(x.shape))
        first, inverse, counts = consecutive_p(x, axis=axis)
        values = _positions_of(x, first, axis)
    return _asked(values, (inverse, return_inverse), (counts, return_counts))


def _asked(values: Array, *extras: tuple[Array, bool]) -> Any:
    wanted = [array for array, asked in extras if asked]
    return (values, *wanted) if wanted else values


def bincount(x: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """Count each of the integers 0, 1, ... in x, or sum its `weights`, which get gradients."""
    plain = concrete(x, "bincount")
    if minlength < 0:
        raise bad_option("bincount", "minlength", minlength, "0 or more")
    if plain.dtype.kind not in "iu" or plain.ndim != 1 or (plain.size and plain.min() < 0):
        raise bad_option("bincount", "x", plain, "non-negative integers in one dimension")
    count = max(int(plain.max()) + 1 if plain.size else 0, minlength)
    if weights is None:
        return bincount_p(x, count=count)
    from glassgrad.ops.index import put_add_p

    if weights.dtype.kind not in "fV":
        weights = astype(weights, np.float64)
    return put_add_p(weights, x, spec=(ARRAY,), shape=(count,))


bincount_p = custom(
    "bincount",
    lambda _xp, x, *, count: add_rows(np.ones((x.size, 1), np.int64), x, count).reshape(count),
    vjp=(None,),
    jvp=(None,),
    shape=lambda x, *, count: Aval((count,), np.dtype(np.int64)),
)
bincount_p.describe("how often each integer occurs", "none")


class Histogram(NamedTuple):
    """What `histogram` returns."""

    hist: Any
    bin_edges: Any


def histogram(
    x: Array, bins: Any = 10, *, range: tuple[float, float] | None = None, weight: Any = None, density: bool = False
) -> Histogram:
    """Counts of the values between the edges of `bins` (or sums of their `weight`), and the edges; no gradient.

    Both have the dtype of x, as in PyTorch; for integers, the counts are integers. `density` divides by the total and
    by the width of each bin.
    """
    bins = concrete(bins, "histogram") if np.ndim(bins) else bins
    edges = np.histogram_bin_edges(concrete(x, "histogram"), bins, range)
    weights = () if weight is None else (weight,)
    counts, edges = histogram_p(x, edges, *weights, density=bool(density))
    if x.dtype.kind not in "fV":
        return Histogram(counts, edges)
    return Histogram(astype(counts, x.dtype), astype(edges, x.dtype))


def histc(x: Array, bins: int = 100, min: float = 0, max: float = 0) -> Array:
    """Counts of the values in `bins` equal bins from `min` to `max` (of x itself if both are equal); no gradient."""
    plain = concrete(x, "histc")
    low, high = (plain.min(), plain.max()) if min == max and plain.size else (min, max)
    wider = 0 if high > low else 1  # equal numbers then lie in the middle of the range
    edges = np.linspace(low - wider, high + wider, bins + 1)
    return astype(histogram_p(x, edges, density=False)[0], x.dtype)


def _histogram_shape(_x: Array, edges: Array, weight: Array = None, *, density: bool) -> tuple[Aval, Aval]:
    counted = np.dtype(np.int64) if weight is None else weight.dtype
    dtype = np.dtype(np.float64) if density else counted
    return Aval((edges.shape[0] - 1,), dtype), Aval(tuple(edges.shape), edges.dtype)


histogram_p = custom(
    "histogram",
    lambda _xp, x, edges, weight=None, *, density: np.histogram(x, edges, weights=weight, density=density),
    vjp=(None, None, None),
    jvp=(None, None, None),
    multiple=True,
    shape=_histogram_shape,
)
histogram_p.describe("how many values lie between the edges, or the sum of their weights", "none")


@takes_complex
def count_nonzero(x: Array, dim: Any = None) -> Array:
    """The number of elements that are not zero."""
    from glassgrad.ops.reduce import sum

    return sum(ew.not_equal(x, 0), dim)
