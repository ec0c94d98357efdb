"""Ops whose result has a shape that depends on the numbers: nonzero, unique, bincount, histograms.

They need the numbers, so they refuse to work on what stands for an array inside a transformation. What
they find are positions; values come from indexing with them, through which gradients flow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad import errors, provenance
from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import concrete
from glassgrad.ops.core import Array, Aval, Custom, bad_option, canonical_axis, custom
from glassgrad.ops.index import getitem_p
from glassgrad.ops.places import ARRAY, EVERYTHING, add_rows
from glassgrad.ops.shape import astype, reshape_p, stack


def _needs_numbers(name: str, forward: Callable[..., Any], formula: str) -> Custom:
    """Declare a primitive of one argument that returns several arrays of positions or counts."""

    def refuse(*_args: Any, **_params: Any) -> Any:
        raise errors.NEEDS_NUMBERS(op=name, kind="shape and a dtype", where=provenance.here())

    return custom(
        name, lambda _xp, x, **params: forward(x, **params), vjp=(None,), jvp=(None,), formula=formula,
        derivative="none", multiple=True, shape=refuse, batch=refuse,
    )  # fmt: skip


nonzero_p = _needs_numbers("nonzero", lambda x: np.atleast_1d(x).nonzero(), "positions where x != 0")


def _unique(x: Array, *, axis: int | None) -> tuple[Array, Array, Array]:
    _, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    return first, inverse.reshape(x.shape) if axis is None else inverse.reshape(-1), counts


unique_p = _needs_numbers("unique", _unique, "first position, number and count of each different value")


def _consecutive(x: Array) -> tuple[Array, Array, Array]:
    first = np.flatnonzero(np.r_[True, x[1:] != x[:-1]][: x.size])
    inverse = np.cumsum(np.r_[0, x[1:] != x[:-1]][: x.size])
    return first, inverse, np.diff(np.r_[first, x.size])


consecutive_p = _needs_numbers("unique_consecutive", _consecutive, "starts and lengths of runs of equal values")


def _positions_of(x: Array, positions: Array, axis: int) -> Array:
    return getitem_p(x, positions, spec=(EVERYTHING,) * axis + (ARRAY,))


# --- public functions -----------------------------------------------------------------------------


def nonzero(x: Array, as_tuple: bool = False) -> Any:
    """The places where x is not zero: shape (count, ndim), or one array a dimension `as_tuple`."""
    found = nonzero_p(x)
    if as_tuple:
        return found
    return stack(found, 1) if x.shape else reshape_p(found[0], shape=(-1, 1))[:, :0]


def argwhere(x: Array) -> Array:
    """The places where x is not zero: shape (count, ndim)."""
    return nonzero(x)


def unique(
    x: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The different values in x, in order; with `dim` the different slices.

    Gradients flow to the first place where each value occurs.

    Returns:
        The values; with the flags a tuple (values, inverse, counts) of what was asked for.
    """
    axis = None if dim is None else canonical_axis(dim, len(x.shape))
    first, inverse, counts = unique_p(x, axis=axis)
    values = _positions_of(reshape_p(x, shape=(-1,)) if axis is None else x, first, axis or 0)
    return _asked(values, (inverse, return_inverse), (counts, return_counts))


def unique_consecutive(
    x: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The values of x without those that repeat the one before; with `dim` for a tensor of one dimension only."""
    if dim is not None and len(x.shape) != 1:
        raise bad_option("unique_consecutive", "dim", dim, "None for more than one dimension")
    flat = reshape_p(x, shape=(-1,))
    first, inverse, counts = consecutive_p(flat)
    inverse = reshape_p(inverse, shape=tuple(x.shape))
    return _asked(_positions_of(flat, first, 0), (inverse, return_inverse), (counts, return_counts))


def _asked(values: Array, *extras: tuple[Array, bool]) -> Any:
    wanted = [array for array, asked in extras if asked]
    return (values, *wanted) if wanted else values


def bincount(x: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """How often each of the integers 0, 1, ... occurs in x, or the sum of its `weights`, which get gradients."""
    plain = concrete(x, "bincount")
    if plain.dtype.kind not in "iub" or plain.ndim != 1 or (plain.size and plain.min() < 0):
        raise bad_option("bincount", "x", plain, "non-negative integers in one dimension")
    count = max(int(plain.max()) + 1 if plain.size else 0, minlength)
    if weights is None:
        return bincount_p(x, count=count)
    from glassgrad.ops.index import put_add_p

    return put_add_p(weights, x, spec=(ARRAY,), shape=(count,))


bincount_p = custom(
    "bincount", lambda _xp, x, *, count: add_rows(np.ones((x.size, 1), np.int64), x, count).reshape(count), vjp=(None,),
    jvp=(None,), formula="how often each integer occurs", derivative="none",
    shape=lambda x, *, count: Aval((count,), np.dtype(np.int64)),
)  # fmt: skip


def histogram(x: Array, bins: Any = 10, range: tuple[float, float] | None = None) -> tuple[Any, Any]:
    """Counts of the values between `bins` edges, and the edges: NumPy's `histogram`; no gradient."""
    bins = concrete(bins, "histogram") if np.ndim(bins) else bins
    edges = np.histogram_bin_edges(concrete(x, "histogram"), bins, range)
    return histogram_p(x, edges), edges


def histc(x: Array, bins: int = 100, min: float = 0, max: float = 0) -> Array:
    """Counts of the values in `bins` equal bins from `min` to `max` (of x itself if both are equal); no gradient."""
    plain = concrete(x, "histc")
    low, high = (plain.min(), plain.max()) if min == max and plain.size else (min, max)
    return astype(histogram_p(x, np.linspace(low, high if high > low else low + 1, bins + 1)), x.dtype)


histogram_p = custom(
    "histogram", lambda _xp, x, edges: np.histogram(x, edges)[0], vjp=(None, None), jvp=(None, None),
    formula="how many values lie between the edges", derivative="none",
    shape=lambda x, edges: Aval((edges.shape[0] - 1,), np.dtype(np.int64)),
)  # fmt: skip


def count_nonzero(x: Array, dim: Any = None) -> Array:
    """How many elements are not zero."""
    from glassgrad.ops.reduce import sum

    return sum(ew.not_equal(x, 0), dim)
