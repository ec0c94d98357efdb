"""Functions that write or add to a copy of a tensor at given places: PyTorch's scatter and index families."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import as_row, concrete, fitting, unknown
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.core import Array, Aval, bad_option, canonical_axis, custom
from glassgrad.ops.expects import as_index, expect_along, expect_dtype, expect_mask, expect_slices
from glassgrad.ops.index import (
    _flat_places,
    _from_front,
    _own_copy,
    at_set_p,
    getitem,
    getitem_p,
    put_add_p,
    put_along_add_p,
    put_along_p,
    take_along_axis_p,
)
from glassgrad.ops.masks import instead_of_mask
from glassgrad.ops.places import ARRAY, EVERYTHING, PLACES, IndexArray, in_two_steps, split_index
from glassgrad.ops.samples import S, distinct, integers
from glassgrad.ops.scan import cumsum
from glassgrad.ops.shape import astype, broadcast_to_p, reshape_p
from glassgrad.ops.vmap.rules import shifted


def _value(value: Array, like: Array) -> Array:
    return value if hasattr(value, "shape") else np.asarray(value, dtype=like.dtype)


# --- extremes -------------------------------------------------------------------------------------


def _scatter_extreme(xp: ModuleType, x: Array, source: Array, index: Array, *, axis: int, largest: bool) -> Array:
    out = _own_copy(x)
    (np.maximum if largest else np.minimum).at(out.reshape(-1), _flat_places(index, axis, x.shape), source.reshape(-1))
    return out


def _reached(y: Array, x: Array, source: Array, index: Array, axis: int) -> tuple[Array, Array, Array]:
    """Return 0/1 masks of where x and the source equal the extreme, and how many of them do at each place."""
    by_x = astype(ew.equal(x, y), x.dtype)
    by_source = astype(ew.equal(source, take_along_axis_p(y, index, axis=axis)), x.dtype)
    return by_x, by_source, by_x + put_along_add_p(by_source, index, axis=axis, shape=tuple(x.shape))


def _scatter_extreme_vjp(
    g: Array, needs: Sequence[bool], y: Array, x: Array, source: Array, index: Array, *, axis: int, largest: bool
) -> Sequence[Array | None]:
    by_x, by_source, count = _reached(y, x, source, index, axis)
    share = g / count
    return share * by_x, take_along_axis_p(share, index, axis=axis) * by_source, None


def _scatter_extreme_jvp(
    tangents: Sequence[Array], y: Array, x: Array, source: Array, index: Array, *, axis: int, largest: bool
) -> Array:
    by_x, by_source, count = _reached(y, x, source, index, axis)
    total = 0 * count if tangents[0] is None else tangents[0] * by_x
    if tangents[1] is not None:
        total = total + put_along_add_p(tangents[1] * by_source, index, axis=axis, shape=tuple(x.shape))
    return total / count


scatter_extreme_p = custom(
    "scatter_extreme",
    _scatter_extreme,
    joint_vjp=_scatter_extreme_vjp,
    joint_jvp=_scatter_extreme_jvp,
    saves=("x", "y"),
    batch=shifted,
    shape=lambda x, source, index, **_: Aval(tuple(x.shape), x.dtype),
)
scatter_extreme_p.describe("extreme of x and of what is scattered there", "g shared by all that reach it")
scatter_extreme_p.samples = [
    S(distinct(3, 4), lambda rng: distinct(3, 5)(rng) + 0.11, integers(0, 4, 3, 5), axis=1, largest=True),
    S(distinct(3, 4), lambda rng: distinct(5, 4)(rng) + 0.11, integers(0, 3, 5, 4), axis=0, largest=False),
]

# --- anywhere -------------------------------------------------------------------------------------


def at_set(x: Array, index: Any, value: Any) -> Array:
    """A copy of x after x[index] = value.

    Example:
        >>> import glassgrad as gg
        >>> gg.at_set(gg.zeros(3), 1, 5.0).tolist()
        [0.0, 5.0, 0.0]
    """
    steps = in_two_steps(index)
    if steps is not None:
        return at_set(x, steps[0], at_set(getitem(x, steps[0]), steps[1], value))
    chosen = instead_of_mask(x, index, value)
    if chosen is not None:
        index, value = chosen
    spec, arrays = split_index(index)
    return at_set_p(x, _value(value, x), *arrays, spec=spec)


def at_add(x: Array, index: Any, value: Any) -> Array:
    """x with `value` added at an index; repeated places accumulate."""
    steps = in_two_steps(index)
    if steps is not None:
        return at_set(x, steps[0], at_add(getitem(x, steps[0]), steps[1], value))
    spec, arrays = split_index(index)
    value = _value(value, x)
    shape = getitem_p.abstract(x, *arrays, spec=spec).shape
    if tuple(value.shape) != shape:
        value = broadcast_to_p(value, shape=shape)
    return x + put_add_p(value, *arrays, spec=spec, shape=tuple(x.shape))


def index_put(x: Array, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Array:
    """`at_set` with PyTorch's tuple of index arrays, or `at_add` if `accumulate`."""
    return (at_add if accumulate else at_set)(x, tuple(indices), values)


def masked_fill(x: Array, mask: Array, value: Any) -> Array:
    """`x` with the number `value` where the boolean `mask` is true; in the dtype of x.

    Raises:
        ArgumentError: the mask is not boolean, or a finite value is beyond the range of the dtype.
    """
    expect_mask("masked_fill", mask)
    return ew.where(mask, fitting("masked_fill", value, x.dtype), x)


def masked_select(x: Array, mask: Array) -> Array:
    """The elements of x where `mask` is true, in one dimension; the two broadcast."""
    expect_mask("masked_select", mask)
    shape = np.broadcast_shapes(tuple(x.shape), tuple(mask.shape))
    return getitem(broadcast_to_p(x, shape=shape), broadcast_to_p(mask, shape=shape))


def put(x: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """x with the elements of `source` at the places `index` of the flattened tensor; added there if `accumulate`.

    Negative places count from the end. If several elements have the same place, the last one wins.

    Raises:
        ArgumentError: index and source have different numbers of elements, or the source has another dtype than x.
        IndexRangeError: a place is outside of x.
    """
    index = as_index("put", index)
    expect_dtype("put", x, source)
    count = math.prod(index.shape)
    if math.prod(source.shape) != count:
        raise bad_option("put", "source", tuple(source.shape), f"as many elements as the index: {count}")
    flat, places, values = (reshape_p(part, shape=(math.prod(part.shape),)) for part in (x, index, source))
    return reshape_p((at_add if accumulate else at_set)(flat, places, values), shape=tuple(x.shape))


def masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    """x with the first elements of `source` in order where `mask` is true."""
    expect_mask("masked_scatter", mask)
    expect_dtype("masked_scatter", x, source)
    shape = np.broadcast_shapes(tuple(x.shape), tuple(mask.shape))
    x = x if tuple(x.shape) == shape else broadcast_to_p(x, shape=shape)
    flat = reshape_p(source, shape=(math.prod(source.shape),))
    if unknown(mask) and flat.shape[0]:
        # Where the values of the mask are unknown, each place reads the next element; one too many is out of range.
        mask = broadcast_to_p(mask, shape=shape)
        number = cumsum(reshape_p(mask, shape=(math.prod(shape),)), 0) - 1
        taken = getitem(flat, ew.where(mask, reshape_p(number, shape=shape), 0))
        return ew.where(mask, taken, x)
    plain = np.broadcast_to(concrete(mask, "masked_scatter"), shape)
    count = int(plain.sum())
    if math.prod(source.shape) < count:
        raise bad_option("masked_scatter", "source", tuple(source.shape), f"at least {count} elements")
    return at_set(x, plain, flat[:count])


# --- slices along a dimension ---------------------------------------------------------------------


def _slices(x: Array, dim: int, index: Array, kind: IndexArray = PLACES) -> tuple[Any, ...]:
    axis = canonical_axis(dim, len(x.shape))
    return (EVERYTHING,) * axis + (kind,), index if hasattr(index, "dtype") else np.asarray(index)


def index_add(x: Array, dim: int, index: Array, source: Array, *, alpha: float = 1) -> Array:
    """x with the slices of alpha * `source` added at `index` along `dim`; repeated places accumulate."""
    if not x.shape:  # a 0-d array has one place along dimension 0
        return reshape_p(index_add(as_row(x), dim, as_row(index), as_row(source), alpha=alpha), shape=())
    spec, places = _slices(x, dim, as_index("index_add", index, vector=True))
    expect_dtype("index_add", x, source)
    expect_slices("index_add", x, canonical_axis(dim, len(x.shape)), places, source)
    source = source if alpha == 1 else source * alpha
    return x + put_add_p(source, places, spec=spec, shape=tuple(x.shape))


def index_copy(x: Array, dim: int, index: Array, source: Array) -> Array:
    """x with the slices of `source` at `index` along `dim`."""
    if not x.shape:
        return reshape_p(index_copy(as_row(x), dim, as_row(index), as_row(source)), shape=())
    spec, places = _slices(x, dim, as_index("index_copy", index, vector=True))
    expect_dtype("index_copy", x, source)
    expect_slices("index_copy", x, canonical_axis(dim, len(x.shape)), places, source)
    return at_set_p(x, source, places, spec=spec)


def index_fill(x: Array, dim: int, index: Array, value: Any) -> Array:
    """x with `value` in the slices at `index` along `dim`; negative indices count from the end, as in PyTorch."""
    if not x.shape:
        return reshape_p(index_fill(as_row(x), dim, index, value), shape=())
    spec, places = _slices(x, dim, as_index("index_fill", index, vector=True), ARRAY)
    return at_set_p(x, _value(fitting("index_fill", value, x.dtype), x), places, spec=spec)


def select_scatter(x: Array, src: Array, dim: int, index: int) -> Array:
    """x with `src` as the slice at `index` along `dim`."""
    return _with_part("select_scatter", x, (*(slice(None),) * canonical_axis(dim, len(x.shape)), index), src)


def _with_part(op: str, x: Array, key: tuple[Any, ...], src: Array) -> Array:
    """x with a part replaced by one of the same shape."""
    wanted = np.broadcast_to(np.empty(()), tuple(x.shape))[key].shape
    if tuple(src.shape) != wanted:
        raise bad_option(op, "src", f"an array of shape {tuple(src.shape)}", f"the shape of the part, {wanted}")
    return at_set(x, key, src)


def slice_scatter(
    x: Array, src: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    """x with `src` as the part from `start` to `end` along `dim`."""
    if step < 1:
        raise bad_option("slice_scatter", "step", step, "at least 1")
    lead = (slice(None),) * canonical_axis(dim, len(x.shape))
    return _with_part("slice_scatter", x, (*lead, slice(start, end, step)), src)


def segment_sum(data: Array, segment_ids: Array, num_segments: int | None = None) -> Array:
    """The sums of the rows of `data` that have the same segment id: shape (num_segments, ...)."""
    if num_segments is None:
        plain = concrete(segment_ids, "segment_sum without num_segments")
        num_segments = int(plain.max()) + 1 if plain.size else 0
    return put_add_p(data, segment_ids, spec=(PLACES,), shape=(int(num_segments), *data.shape[1:]))


# --- along a dimension ----------------------------------------------------------------------------


def _fitted(source: Array, index: Array) -> Array:
    """Cut `source` to the shape of `index`, which may be smaller."""
    shape = tuple(index.shape)
    return source if tuple(source.shape) == shape else source[tuple(slice(0, n) for n in shape)]


def put_along_axis(x: Array, index: Array, value: Any, dim: int) -> Array:
    """x with `value` at `index` along `dim`: NumPy's `put_along_axis`, on a copy."""
    axis, row = canonical_axis(dim, len(x.shape)), as_row(x)
    return _put_along(x, _value(value, x), _from_front(as_row(index), row.shape[axis]), axis)


def _put_along(x: Array, value: Array, index: Array, axis: int) -> Array:
    y = put_along_p(as_row(x), value, as_row(index), axis=axis)
    return y if x.shape else reshape_p(y, shape=())


def scatter(
    x: Array, dim: int, index: Array, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Array:
    """x with y[index[i, j], j] = src[i, j] for dim 0; `src` may be a number. `reduce`: "add" or "multiply" instead."""
    given = value if src is None else src
    index = as_index("scatter", index)
    several = hasattr(given, "shape") and len(given.shape) > 0
    expect_along("scatter", x, canonical_axis(dim, len(x.shape)), index, given if several else None)
    expect_dtype("scatter", x, given if several else None)
    source = _fitted(given, index) if several else _value(fitting("scatter", given, x.dtype), x)
    if reduce is None:
        return _put_along(x, source, index, canonical_axis(dim, len(x.shape)))
    if reduce not in {"add", "multiply"}:
        raise bad_option("scatter", "reduce", reduce, "'add' or 'multiply'")
    source = source if source.shape else broadcast_to_p(source, shape=tuple(index.shape))
    return scatter_reduce(x, dim, index, source, "sum" if reduce == "add" else "prod")


def scatter_add(x: Array, dim: int, index: Array, src: Array) -> Array:
    """x with y[index[i, j], j] += src[i, j] for dim 0.

    Example:
        >>> import glassgrad as gg
        >>> gg.zeros(3).scatter_add(0, gg.tensor([0, 2, 0]), gg.ones(3)).tolist()
        [2.0, 0.0, 1.0]
    """
    axis = canonical_axis(dim, len(x.shape))
    index = as_index("scatter_add", index)
    expect_along("scatter_add", x, axis, index, src)
    expect_dtype("scatter_add", x, src)
    shape = tuple(x.shape)
    added = put_along_add_p(as_row(_fitted(src, index)), as_row(index), axis=axis, shape=shape or (1,))
    return x + (added if shape else reshape_p(added, shape=()))


def scatter_reduce(x: Array, dim: int, index: Array, src: Array, reduce: str, *, include_self: bool = True) -> Array:
    """Combine x with the elements of `src` for each place: "sum", "mean", "prod", "amax" or "amin".

    With `include_self=False` the elements of x stay only where nothing is scattered. Elements that are equal extremes
    share the gradient.
    """
    if not x.shape or not index.shape:
        row, places, parts = as_row(x), as_row(index), as_row(src)
        y = scatter_reduce(row, dim, places, parts, reduce, include_self=include_self)
        return reshape_p(y, shape=tuple(x.shape))
    axis, shape = canonical_axis(dim, len(x.shape)), tuple(x.shape)
    index = as_index("scatter_reduce", index)
    expect_along("scatter_reduce", x, axis, index, src)
    expect_dtype("scatter_reduce", x, src)
    if x.dtype.kind == "b":  # a sum of booleans is true if any is
        numbers = scatter_reduce(
            astype(x, np.int64), dim, index, astype(src, np.int64), reduce, include_self=include_self
        )
        return ew.not_equal(numbers, 0)
    source = _fitted(src, index)
    whole = x.dtype.kind in "iu"
    hits = put_along_add_p(np.ones(tuple(index.shape), np.int64 if whole else x.dtype), index, axis=axis, shape=shape)
    neutral = _neutral(reduce, x.dtype)
    if not include_self:
        x = ew.where(hits > 0, neutral, x)
    if reduce in {"amax", "amin"}:
        return scatter_extreme_p(x, source, index, axis=axis, largest=reduce == "amax")
    if reduce == "prod":
        return _scatter_prod(x, source, index, axis)
    total = x + put_along_add_p(source, index, axis=axis, shape=shape)
    if reduce == "sum":
        return total
    count = hits + 1 if include_self else ew.maximum(hits, 1)
    return ew.floor_divide(total, astype(count, x.dtype)) if whole else total / count


def _neutral(reduce: str, dtype: np.dtype[Any]) -> Any:
    """The neutral element of a reduction in a dtype."""
    ends = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (-math.inf, math.inf)
    neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": ends[0], "amin": ends[1]}
    if reduce not in neutral:
        raise bad_option("scatter_reduce", "reduce", reduce, ", ".join(map(repr, neutral)))
    return dtype.type(neutral[reduce])


def _scatter_prod(x: Array, source: Array, index: Array, axis: int) -> Array:
    """Multiply layer by layer: the k-th factor of every place, for k = 0, 1, ...

    Each layer hits a place at most once, so it is an ordinary product, with exact derivatives at zeros.
    """
    plain = concrete(index, "scatter_reduce with prod")
    rank = _occurrence(plain, axis, x.shape[axis])
    for layer in range(int(rank.max()) + 1 if rank.size else 0):
        factor = ew.where(rank == layer, source, x.dtype.type(1))
        here = np.where(rank == layer, plain, -1)
        x = x * _factors_at(factor, here, axis, x)
    return x


def _occurrence(index: Array, axis: int, size: int) -> Array:
    """Return for each element how many earlier ones along the axis go to the same place."""
    moved = np.moveaxis(index, axis, 0)
    seen = np.zeros((size, *moved.shape[1:]), np.int64)
    rank = np.zeros_like(moved)
    for step, row in enumerate(moved):
        places = (row, *np.ogrid[tuple(slice(n) for n in row.shape)]) if row.ndim else (row,)
        rank[step] = seen[places]
        seen[places] += 1
    return np.moveaxis(rank, 0, axis)


def _factors_at(factor: Array, index: Array, axis: int, x: Array) -> Array:
    """Return ones in the shape of x with the factors at the places in `index`; -1 means none."""
    valid = index >= 0
    wide = np.where(valid, index, x.shape[axis])
    shape = (*x.shape[:axis], x.shape[axis] + 1, *x.shape[axis + 1 :])
    placed = put_along_p(np.ones(shape, x.dtype), factor, wide, axis=axis)
    return placed[(*(slice(None),) * axis, slice(0, x.shape[axis]))]


all_take_complex(globals(), but=("scatter_reduce",))
