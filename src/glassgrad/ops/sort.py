"""Sorting and order statistics: sort, topk, median, quantiles, searching in sorted arrays.

The primitives compute positions only, which have no derivative. The values are gathered at these positions, so
gradients flow back to where each value came from. NaN counts as larger than every number, as in NumPy and PyTorch.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import concrete, like_one_element
from glassgrad.ops.core import Array, Aval, bad_option, canonical_axis, custom
from glassgrad.ops.index import take_along_axis_p
from glassgrad.ops.reduce import Extreme, any, sum
from glassgrad.ops.shape import astype, movedim, reshape_p
from glassgrad.ops.vmap.rules import first_only, searched, shifted

_INTEGER = np.dtype(np.int64)


def _positions(name: str, forward: Any, formula: str, shape: Any) -> Any:
    return custom(
        name,
        forward,
        vjp=(None,),
        jvp=(None,),
        batch=shifted,
        shape=lambda x, **params: Aval(shape(x, **params), _INTEGER),
    ).describe(formula, "none")


def _argsort(xp: ModuleType, x: Array, *, axis: int, descending: bool, stable: bool) -> Array:
    kind: Any = "stable" if stable else None
    if not descending:
        return np.argsort(x, axis=axis, kind=kind)
    # A stable descending order needs a flip before and after the sort.
    backwards = np.argsort(np.flip(x, axis=axis), axis=axis, kind=kind)
    return np.flip(x.shape[axis] - 1 - backwards, axis=axis)


argsort_p = _positions("argsort", _argsort, "positions that sort x", lambda x, **_: tuple(x.shape))


def _topk(xp: ModuleType, x: Array, *, k: int, axis: int, largest: bool, ordered: bool) -> Array:
    n = x.shape[axis]
    edge = (n - k if largest else k - 1) % max(n, 1)
    index = np.argpartition(x, edge, axis=axis) if 0 < k < n else np.argsort(x, axis=axis)
    index = np.take(index, range(n - k, n) if largest else range(k), axis=axis)
    if ordered:
        order = _argsort(np, np.take_along_axis(x, index, axis=axis), axis=axis, descending=largest, stable=True)
        index = np.take_along_axis(index, order, axis=axis)
    return index


topk_p = _positions(
    "topk",
    _topk,
    "positions of the k largest or smallest x",
    lambda x, *, k, axis, **_: (*x.shape[:axis], k, *x.shape[axis + 1 :]),
)


def _kth(xp: ModuleType, x: Array, *, k: int, axis: int, or_nan: bool = False) -> Array:
    """Position of the k-th smallest, where NaN is the largest; with `or_nan` the position of a NaN if there is one."""
    index = np.take(np.argpartition(x, k, axis=axis), [k], axis=axis)
    bad = x != x  # noqa: PLR0124 - that is what NaN is
    if or_nan and bad.any():
        index = np.where(bad.any(axis=axis, keepdims=True), bad.argmax(axis=axis, keepdims=True), index)
    return index


kth_p = _positions(
    "kth",
    _kth,
    "position of the k-th smallest x",
    lambda x, *, k, axis, **_: (*x.shape[:axis], 1, *x.shape[axis + 1 :]),
)


def _mode(xp: ModuleType, x: Array, *, axis: int) -> Array:
    """Last position of the most frequent x, on ties the smallest x; NaN is equal to nothing."""
    order = np.moveaxis(np.argsort(x, axis=axis, kind="stable"), axis, -1)
    ranked = np.take_along_axis(np.moveaxis(x, axis, -1), order, axis=-1)
    place = np.broadcast_to(np.arange(ranked.shape[-1]), ranked.shape)
    starts = np.ones(ranked.shape, bool)
    starts[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
    # At each place, the length so far of the run of equal elements: its maximum is the end of the longest run.
    run = place - np.maximum.accumulate(np.where(starts, place, 0), axis=-1)
    index = np.take_along_axis(order, run.argmax(axis=-1, keepdims=True), axis=-1)
    return np.moveaxis(index, -1, axis)


mode_p = _positions(
    "mode", _mode, "position of the most frequent x", lambda x, *, axis: (*x.shape[:axis], 1, *x.shape[axis + 1 :])
)


def _searchsorted(xp: ModuleType, edges: Array, x: Array, *, right: bool) -> Array:
    side: Any = "right" if right else "left"
    if edges.ndim == 1:
        return np.searchsorted(edges, x, side=side)
    count = math.prod(edges.shape[:-1])
    rows, wanted = edges.reshape(count, edges.shape[-1]), x.reshape(count, x.shape[-1])
    found = np.empty(wanted.shape, _INTEGER)
    for place, row, values in zip(found, rows, wanted, strict=True):
        place[...] = np.searchsorted(row, values, side=side)
    return found.reshape(x.shape)


searchsorted_p = custom(
    "searchsorted",
    _searchsorted,
    vjp=(None, None),
    jvp=(None, None),
    shape=lambda edges, x, *, right: Aval(tuple(x.shape), _INTEGER),
    batch=searched,
)
searchsorted_p.describe("where x fits into sorted edges", "none")
isin_p = custom(
    "isin",
    lambda _xp, x, choices: np.isin(x, choices),
    vjp=(None, None),
    jvp=(None, None),
    batch=first_only,
    shape=lambda x, choices: Aval(tuple(x.shape), np.dtype(bool)),
)
isin_p.describe("whether x is one of the choices", "none")

# --- public functions -----------------------------------------------------------------------------


def sort(x: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Extreme:
    """The sorted elements along `dim`, and the previous position of each.

    Example:
        >>> import glassgrad as gg
        >>> values, indices = gg.tensor([3.0, 1.0, 2.0]).sort()
        >>> values.tolist(), indices.tolist()
        ([1.0, 2.0, 3.0], [1, 2, 0])
    """
    if not x.shape:
        return Extreme(x, argsort(x, dim))
    axis = canonical_axis(dim, len(x.shape))
    index = argsort_p(x, axis=axis, descending=descending, stable=stable)
    return Extreme(take_along_axis_p(x, index, axis=axis), index)


def argsort(x: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Array:
    """The positions that would sort x along `dim`."""
    if not x.shape:
        return reshape_p(argsort(reshape_p(x, shape=(1,)), dim), shape=())
    return argsort_p(x, axis=canonical_axis(dim, len(x.shape)), descending=descending, stable=stable)


def msort(x: Array) -> Array:
    """x sorted along its first dimension."""
    return sort(x, 0).values


@like_one_element
def topk(x: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Extreme:
    """The `k` largest (or smallest) elements along `dim`, in order, and where they are."""
    axis = canonical_axis(dim, len(x.shape))
    size = x.shape[axis] if x.shape else 1
    if not 0 <= k <= size:
        raise bad_option("topk", "k", k, f"between 0 and {size}, the size of dim {dim}")
    index = topk_p(x, k=int(k), axis=axis, largest=largest, ordered=sorted)
    return Extreme(take_along_axis_p(x, index, axis=axis), index)


@like_one_element
def kthvalue(x: Array, k: int, dim: int = -1, keepdim: bool = False) -> Extreme:
    """The `k`-th smallest element along `dim`, counted from 1, and where it is; NaN is larger than every number."""
    axis = canonical_axis(dim, len(x.shape))
    if not 1 <= k <= x.shape[axis]:
        raise bad_option("kthvalue", "k", k, f"between 1 and {x.shape[axis]}")
    return _read(x, kth_p(x, k=k - 1, axis=axis), axis, keepdim)


@like_one_element
def mode(x: Array, dim: int = -1, keepdim: bool = False) -> Extreme:
    """The most frequent element along `dim` (on ties the smallest) and the index of its last occurrence.

    The gradient flows to that place. NaN is equal to nothing, so each counts once.

    Example:
        >>> import glassgrad as gg
        >>> values, indices = gg.tensor([3.0, 1.0, 1.0, 3.0, 2.0]).mode()
        >>> values.item(), indices.item()
        (1.0, 2)
    """
    axis = canonical_axis(dim, len(x.shape))
    if not x.shape[axis]:
        raise bad_option("mode", "dim", dim, "a dimension with elements")
    return _read(x, mode_p(x, axis=axis), axis, keepdim)


def _middle(x: Array, axis: int, keepdim: bool) -> Extreme:
    """The lower of the two middle elements, and where it is; NaN if there is one."""
    return _read(x, kth_p(x, k=(x.shape[axis] - 1) // 2, axis=axis, or_nan=True), axis, keepdim)


def _read(x: Array, index: Array, axis: int, keepdim: bool) -> Extreme:
    """The elements at an index of size 1 along an axis, and the index itself."""
    values = take_along_axis_p(x, index, axis=axis)
    if keepdim:
        return Extreme(values, index)
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return Extreme(reshape_p(values, shape=shape), reshape_p(index, shape=shape))


@like_one_element
def median(x: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element (the lower of two) of all elements, or `(values, indices)` along `dim`.

    NumPy's median, the mean of the two middle elements, is `quantile(x, 0.5)` or `np.median`.
    """
    if dim is None:
        flat = reshape_p(x, shape=(math.prod(x.shape),))
        if not flat.shape[0]:
            return sum(flat) * math.nan
        return _middle(flat, 0, keepdim=False).values
    return _middle(x, canonical_axis(dim, len(x.shape)), keepdim)


@like_one_element
def nanmedian(x: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """`median` of the elements that are not NaN."""
    if dim is None:
        flat = reshape_p(x, shape=(math.prod(x.shape),))
        return nanmedian(flat, 0).values if flat.shape[0] else sum(flat) * math.nan
    axis = canonical_axis(dim, len(x.shape))
    order = argsort_p(x, axis=axis, descending=False, stable=False)
    valid = sum(ew.logical_not(ew.isnan(x)), axis, keepdim=True)
    rank = ew.maximum((valid - 1) // 2, 0)
    return _read(x, take_along_axis_p(order, rank, axis=axis), axis, keepdim)


_BETWEEN = {
    "linear": lambda low, high, weight: low + (high - low) * weight,
    "lower": lambda low, high, weight: low,
    "higher": lambda low, high, weight: ew.where(weight > 0, high, low),
    "midpoint": lambda low, high, weight: ew.where(weight > 0, (low + high) * 0.5, low),
    "nearest": lambda low, high, weight: low,  # `at` is already rounded
}


def quantile(
    x: Array, q: Array, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Array:
    """The values below which fractions `q` of the elements lie; several q add a leading dimension."""
    first, fractions, keep = _quantile_input("quantile", x, q, dim, keepdim, interpolation)
    at = fractions.reshape(-1) * (first.shape[0] - 1)
    at = np.rint(at) if interpolation == "nearest" else at  # rounds half to even, like NumPy and PyTorch
    below = np.floor(at).astype(np.int64)
    # Between two elements the quantile is linear in q, which may require a gradient.
    exact = reshape_p(q, shape=(fractions.size,)) * (first.shape[0] - 1) if hasattr(q, "_tracks") else at
    weight = reshape_p(astype(exact - below, x.dtype), shape=(fractions.size,) + (1,) * (len(first.shape) - 1))
    found = _BETWEEN[interpolation](first[below], first[np.ceil(at).astype(np.int64)], weight)
    hidden = any(ew.isnan(first), 0)  # NaN is sorted to the end, where no fraction may see it
    return reshape_p(ew.where(hidden, math.nan, found), shape=(*fractions.shape, *keep))


def nanquantile(
    x: Array, q: Array, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Array:
    """`quantile` of the elements that are not NaN; NaN where there are none."""
    first, fractions, keep = _quantile_input("nanquantile", x, q, dim, keepdim, interpolation)
    last = ew.maximum(sum(ew.logical_not(ew.isnan(first)), 0, keepdim=True) - 1, 0)
    given = reshape_p(q, shape=(fractions.size,)) if hasattr(q, "_tracks") else fractions.reshape(-1)
    at = reshape_p(given, shape=(fractions.size,) + (1,) * (len(first.shape) - 1)) * last
    at = ew.round_p(at) if interpolation == "nearest" else at
    below = ew.floor(at)
    low, high = (take_along_axis_p(first, astype(part, np.int64), axis=0) for part in (below, ew.ceil(at)))
    found = _BETWEEN[interpolation](low, high, astype(at - below, x.dtype))
    return reshape_p(found, shape=(*fractions.shape, *keep))


def _quantile_input(
    op: str, x: Array, q: Array, dim: int | None, keepdim: bool, interpolation: str
) -> tuple[Array, Array, tuple[int, ...]]:
    """Return the elements in order along the first dimension, the fractions, and the shape of the result of one."""
    if interpolation not in _BETWEEN:
        raise bad_option(op, "interpolation", interpolation, f"one of {', '.join(_BETWEEN)}")
    fractions = np.asarray(concrete(q, op), dtype=np.float64)
    if not ((fractions >= 0) & (fractions <= 1)).all():
        raise bad_option(op, "q", fractions.tolist(), "fractions between 0 and 1")
    if dim is None or not x.shape:
        canonical_axis(dim or 0, len(x.shape))
        keep = (1,) * len(x.shape) if keepdim else ()
        x, axis = reshape_p(x, shape=(math.prod(x.shape),)), 0
    else:
        axis = canonical_axis(dim, len(x.shape))
        keep = (*x.shape[:axis], *((1,) if keepdim else ()), *x.shape[axis + 1 :])
    return movedim(sort(x, axis).values, axis, 0), fractions, keep


def searchsorted(
    sorted_sequence: Array,
    x: Array,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Array:
    """Where to insert the elements of x to keep the last dimension of `sorted_sequence` sorted.

    `right` (or `side="right"`) inserts after equal elements. `sorter` holds the positions that would sort
    `sorted_sequence`.
    """
    if side not in {None, "left", "right"} or (right and side == "left"):
        raise bad_option("searchsorted", "side", side, "'left' or 'right', as `right` says")
    right = side == "right" if side is not None else right
    if sorter is not None:
        sorted_sequence = take_along_axis_p(sorted_sequence, sorter, axis=len(sorted_sequence.shape) - 1)
    if not hasattr(x, "dtype"):
        x = np.asarray(x)
    found = searchsorted_p(sorted_sequence, x, right=right)
    return astype(found, np.int32) if out_int32 else found


def bucketize(x: Array, boundaries: Array, *, out_int32: bool = False, right: bool = False) -> Array:
    """The index of the interval between `boundaries` that each element of x lies in."""
    if len(boundaries.shape) != 1:
        raise bad_option("bucketize", "boundaries", f"an array of shape {tuple(boundaries.shape)}", "one dimension")
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


def isin(x: Array, choices: Array, *, assume_unique: bool = False, invert: bool = False) -> Array:
    """Whether each element of x is one of `choices`, or with `invert` whether it is none of them."""
    found = isin_p(x, choices)
    return ew.logical_not(found) if invert else found
