"""Primitives that pick elements by position and put them back: indexing, gather, scatter, embedding.

`places` turns an index into arrays and a static `spec`. Reading and adding at the same places are
linear, and each is the transpose of the other. Rules keep the index arrays, never the values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import as_row, concrete
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.core import Array, Aval, Linear, bad_option, canonical_axis, custom, linear
from glassgrad.ops.expects import as_index, expect_along
from glassgrad.ops.kernels.choose import largest, least
from glassgrad.ops.places import (
    ARRAY,
    EVERYTHING,
    PLACES,
    IndexArray,
    Shape,
    Slice,
    Spec,
    add_at,
    add_rows,
    check_classes,
    check_places,
    check_spec,
    in_two_steps,
    join_index,
    makes_axis,
    refuse_huge,
    spec_entries,
    split_index,
)
from glassgrad.ops.samples import S, integers
from glassgrad.ops.shape import broadcast_to_p, reshape_p

ROWS = (PLACES,)  # the spec of an embedding

# --- reading and adding ---------------------------------------------------------------------------


def _getitem(xp: ModuleType, x: Array, *arrays: Array, spec: Spec) -> Array:
    if arrays and spec[-1] is PLACES:
        check_places(arrays[-1], x.shape[len(spec) - 1], len(spec) - 1)  # also detects huge indices
    if len(spec) == 1 and arrays:
        if spec[0] is not PLACES:
            refuse_huge(arrays[0])
        return x.take(arrays[0], axis=0) if xp is np else xp.take(x, arrays[0], axis=0)
    y = x[join_index(spec, arrays)]
    if isinstance(y, np.generic) and not arrays:
        return x[(*join_index(spec, ()), ...)]  # a single element, as a writable view
    return y


def _put_add(xp: ModuleType, g: Array, *arrays: Array, spec: Spec, shape: Shape) -> Array:
    check_spec(spec, arrays, shape)
    return add_at(xp, g, spec, arrays, shape)


def _indexed(x: Array, *arrays: Array, spec: Spec) -> Aval:
    zeros = [np.broadcast_to(np.int64(0), tuple(array.shape)) for array in arrays]
    return Aval(np.broadcast_to(np.empty(()), tuple(x.shape))[join_index(spec, zeros)].shape, x.dtype)


def _getitem_transpose(g: Array, needs: Sequence[bool], x: Array, *arrays: Array, spec: Spec) -> tuple[Any, ...]:
    if type(g) is np.ndarray and (not arrays or _PLAIN.issuperset(map(type, arrays))):
        # The forward pass has already checked the index.
        return add_at(np, g, spec, arrays, x.shape), *_no_gradients(len(arrays))
    return put_add_p(g, *arrays, spec=spec, shape=x.shape), *_no_gradients(len(arrays))


_PLAIN = frozenset({np.ndarray})


def _no_gradients(count: int) -> tuple[None, ...]:
    return (None,) * count


_ROWS = (
    S((5, 2), integers(0, 5, 4), spec=(ARRAY,)),
    S((4, 3), spec=(Slice(None, None, 2), 1)),
    S((4, 3), integers(0, 4, 2, 2), integers(0, 3, 2), spec=(ARRAY, ARRAY)),
    S((3, 2), spec=(None, Ellipsis, Slice(None, None, -1))),
    S((4, 3, 2), integers(0, 3, 5), spec=(Slice(1, 3, None), ARRAY)),
)


def _first(rule: Any) -> Any:
    """Turn a rule for the first argument into a joint rule."""
    return lambda g, needs, *x, **params: (rule(g, *x, **params), *_no_gradients(len(x) - 1))


def _first_jvp(primitive: Any) -> Any:
    return lambda tangents, y, x, *arrays, **params: primitive()(tangents[0], *arrays, **params)


def _sliced_places(at: Any, x: Array, *, spec: Spec) -> Any:
    """For an index without arrays: a slice steps along its dimension, an integer is constant."""
    found: list[Any] = []
    places = iter(at)
    for entry in spec_entries(spec, x.shape):
        if makes_axis(entry):
            next(places)
        elif type(entry) is Slice:
            start, _, step = slice(*entry).indices(x.shape[len(found)])
            found.append(next(places) * step + start)
        else:
            found.append(int(entry) % x.shape[len(found)])
    return tuple(found)


getitem_p = linear(
    "getitem",
    _getitem,
    joint_transpose=_getitem_transpose,
    saves_from=1,
    shape=_indexed,
    indices=_sliced_places,
    write_back=lambda x, view, assign, *, spec: assign(x, view, [], spec),
)
getitem_p.describe("x[index]", "zeros with g added at index")
getitem_p.samples = _ROWS
getitem_p.joint_jvp = _first_jvp(lambda: getitem_p)
put_add_p: Linear = linear(
    "put_add",
    _put_add,
    joint_transpose=_first(lambda g, x, *arrays, spec, shape: getitem_p(g, *arrays, spec=spec)),
    saves_from=1,
    shape=lambda x, *arrays, spec, shape: Aval(shape, x.dtype),
)
put_add_p.describe("zeros(shape) with x added at index", "g[index]")
put_add_p.samples = [
    S((4, 2), integers(0, 5, 4), spec=(ARRAY,), shape=(5, 2)),
    S((3,), integers(0, 4, 3), integers(0, 3, 3), spec=(ARRAY, ARRAY), shape=(4, 3)),
]
put_add_p.joint_jvp = _first_jvp(lambda: put_add_p)


# --- writing --------------------------------------------------------------------------------------


def _own_copy(x: Array) -> Array:
    # NumPy turns 0-d arrays into scalars, whose copies cannot be written to.
    return np.array(x) if isinstance(x, np.generic) else x.copy()


def _at_set(xp: ModuleType, x: Array, value: Array, *arrays: Array, spec: Spec) -> Array:
    check_spec(spec, arrays, x.shape)
    out = _own_copy(x)
    out[join_index(spec, arrays)] = value
    return out


def _at_set_vjp(
    g: Array, needs: Sequence[bool], y: Array, x: Array, value: Array, *arrays: Array, spec: Spec
) -> Sequence[Array | None]:
    to_x = at_set_p(g, 0, *arrays, spec=spec) if needs[0] else None
    to_value = None
    if needs[1]:
        to_value = getitem_p(g, *arrays, spec=spec)
        if arrays:
            # If several values go to one place, the last one stays, and only that one has a gradient.
            number = np.arange(math.prod(to_value.shape)).reshape(to_value.shape)
            owner = at_set_p(np.zeros(x.shape, np.int64), number, *arrays, spec=spec)
            to_value = ew.where(ew.equal(getitem_p(owner, *arrays, spec=spec), number), to_value, 0)
    return (to_x, to_value, *_no_gradients(len(arrays)))


def _at_set_jvp(tangents: Sequence[Array], y: Array, x: Array, value: Array, *arrays: Array, spec: Spec) -> Array:
    t_x = np.zeros(x.shape, x.dtype) if tangents[0] is None else tangents[0]
    t_value = 0 if tangents[1] is None else tangents[1]
    return at_set_p(t_x, t_value, *arrays, spec=spec)


at_set_p = custom(
    "at_set",
    _at_set,
    joint_vjp=_at_set_vjp,
    joint_jvp=_at_set_jvp,
    saves_from=2,
    shape=lambda x, *rest, spec: Aval(tuple(x.shape), x.dtype),
    takes_complex=True,
)
at_set_p.describe("x with x[index] = value", "g with 0 at index, g[index]")
at_set_p.samples = [
    S((4, 3), (3,), spec=(1,)),
    S((4, 3), (2, 3), lambda rng: rng.permutation(4)[:2], spec=(ARRAY,)),
    S((4, 3), (5, 1), integers(0, 4, 5), spec=(ARRAY,)),
]


# --- along an axis --------------------------------------------------------------------------------


def _grids(shape: Shape, axis: int) -> tuple[Any, ...]:
    """Return the positions along every axis, to be broadcast; None for the axis itself."""
    return _small_grids(shape, axis) if max(shape) <= _REMEMBERED else _small_grids.__wrapped__(shape, axis)


_REMEMBERED = 4096  # longest row of positions to cache; making longer rows costs little compared with using them


@lru_cache(maxsize=256)
def _small_grids(shape: Shape, axis: int) -> tuple[Any, ...]:
    ndim = len(shape)
    return tuple(
        None if at == axis else np.arange(n).reshape((1,) * at + (n,) + (1,) * (ndim - at - 1))
        for at, n in enumerate(shape)
    )


def _along(index: Array, axis: int) -> tuple[Any, ...]:
    grids = list(_grids(index.shape, axis))
    grids[axis] = index
    return tuple(grids)


def _rows(index: Array, axis: int, shape: Shape) -> Array | None:
    """Return the row numbers if an index along axis 0 was expanded over whole rows; else None."""
    if axis or index.ndim < 2 or not index.size or index.shape[1:] != shape[1:]:
        return None
    repeats = all(n == 1 or not stride for n, stride in zip(index.shape[1:], index.strides[1:], strict=True))
    return index[(slice(None), *(0,) * (index.ndim - 1))] if repeats else None


def _take_along(xp: ModuleType, x: Array, index: Array, *, axis: int) -> Array:
    rows = _rows(index, axis, x.shape) if xp is np else None
    if rows is not None:
        check_places(rows, x.shape[0], 0)
        return x.take(rows, axis=0)
    check_places(index, x.shape[axis], axis)
    return x[_along(index, axis)] if xp is np else xp.take_along_axis(x, index, axis=axis)


def _flat_places(index: Array, axis: int, shape: Shape) -> Array:
    """Return the position in the flattened array of each index along the axis."""
    check_places(index, shape[axis], axis)
    if index.size and largest(index) >= shape[axis]:
        raise IndexError(f"index {index.max()} is out of range for dim {axis} of size {shape[axis]}")
    places = index * math.prod(shape[axis + 1 :])
    for at, grid in enumerate(_grids(index.shape, axis)):
        if grid is not None and grid.size > 1:
            places = places + grid * math.prod(shape[at + 1 :])
    return places.reshape(-1)


def _put_along_add(xp: ModuleType, g: Array, index: Array, *, axis: int, shape: Shape) -> Array:
    rows = _rows(index, axis, shape)
    if rows is not None:
        size = math.prod(shape[1:])
        return add_rows(g.reshape(-1, size), _flat_places(rows, 0, shape[:1]), shape[0]).reshape(shape)
    if index.shape[axis] == 1:  # then no place repeats
        check_places(index, shape[axis], axis)
        out = np.zeros(shape, g.dtype)
        out[_along(index, axis)] = g
        return out
    places = _flat_places(index, axis, shape)
    return add_rows(g.reshape(-1, 1), places, math.prod(shape)).reshape(shape)


take_along_axis_p: Linear = linear(
    "take_along_axis",
    _take_along,
    (lambda g, x, index, *, axis: put_along_add_p(g, index, axis=axis, shape=tuple(x.shape)), None),
    saves_from=1,
    shape=lambda x, index, *, axis: Aval(tuple(index.shape), x.dtype),
)
take_along_axis_p.describe("x[..., index, ...]", "zeros with g added at index")
take_along_axis_p.samples = [S((3, 4), integers(0, 4, 3, 2), axis=1), S((3, 4), integers(0, 3, 2, 4), axis=0)]
put_along_add_p: Linear = linear(
    "put_along_add",
    _put_along_add,
    (lambda g, x, index, *, axis, shape: take_along_axis_p(g, index, axis=axis), None),
    saves_from=1,
    shape=lambda x, index, *, axis, shape: Aval(shape, x.dtype),
)
put_along_add_p.describe("zeros(shape) with x added at index", "g[..., index, ...]")
put_along_add_p.samples = [S((3, 2), integers(0, 4, 3, 2), axis=1, shape=(3, 4))]


def _put_along(xp: ModuleType, x: Array, value: Array, index: Array, *, axis: int) -> Array:
    out = _own_copy(x)
    out.reshape(-1)[_flat_places(index, axis, x.shape)] = np.broadcast_to(value, index.shape).reshape(-1)
    return out


def _put_along_vjp(
    g: Array,
    needs: Sequence[bool],
    y: Array,
    x: Array,
    value: Array,
    index: Array,
    *,
    axis: int,
) -> Sequence[Array | None]:
    to_x = put_along_p(g, np.zeros((), g.dtype), index, axis=axis) if needs[0] else None
    to_value = None
    if needs[1]:
        # As above, the last value for a place wins.
        number = np.arange(math.prod(index.shape)).reshape(index.shape)
        owner = put_along_p(np.zeros(x.shape, np.int64), number, index, axis=axis)
        stays = ew.equal(take_along_axis_p(owner, index, axis=axis), number)
        to_value = ew.where(stays, take_along_axis_p(g, index, axis=axis), 0)
    return to_x, to_value, None


def _put_along_jvp(tangents: Sequence[Array], y: Array, x: Array, value: Array, index: Array, *, axis: int) -> Array:
    t_x = np.zeros(x.shape, x.dtype) if tangents[0] is None else tangents[0]
    t_value = np.zeros((), t_x.dtype) if tangents[1] is None else tangents[1]
    return put_along_p(t_x, t_value, index, axis=axis)


put_along_p = custom(
    "put_along_axis",
    _put_along,
    joint_vjp=_put_along_vjp,
    joint_jvp=_put_along_jvp,
    saves_from=2,
    shape=lambda x, value, index, *, axis: Aval(tuple(x.shape), x.dtype),
    takes_complex=True,
)
put_along_p.describe("x with x[..., index, ...] = value", "g with 0 at index, g[..., index, ...]")
put_along_p.samples = [
    S((3, 4), (3, 2), lambda rng: np.array([[0, 1], [3, 2], [1, 0]]), axis=1),
    S((3, 4), (1, 1), lambda rng: np.array([[2, 0]]), axis=0),
    S((2, 3), (2, 5), integers(0, 3, 2, 5), axis=1),
]

# --- one-hot --------------------------------------------------------------------------------------


def _one_hot(xp: ModuleType, index: Array, *, count: int) -> Array:
    check_classes("one_hot", index, count)
    return (index[..., None] == xp.arange(count)).astype(np.int64)


one_hot_p = custom(
    "one_hot",
    _one_hot,
    vjp=(None,),
    jvp=(None,),
    shape=lambda index, *, count: Aval((*index.shape, count), np.dtype(np.int64)),
)
one_hot_p.describe("1 at index, else 0", "none")

# --- public functions -----------------------------------------------------------------------------


_NO_ARRAYS = frozenset({int, slice, tuple, list, type(None), type(...)})
_INT64, _ONE_ARRAY = np.dtype(np.int64), (ARRAY,)


def getitem(x: Array, index: Any) -> Array:
    """x[index], with slices, integers, None, ..., integer arrays and boolean arrays."""
    if type(index) not in _NO_ARRAYS:
        array = getattr(index, "array", index)
        if type(array) is np.ndarray and array.dtype is _INT64 and len(x.shape):
            return getitem_p(x, index, spec=_ONE_ARRAY)  # as `split_index` would find
    if type(index) is tuple and len(index) > 2:
        steps = in_two_steps(index)
        if steps is not None:
            return getitem(getitem(x, steps[0]), steps[1])
    spec, arrays = split_index(index, x.shape)
    return getitem_p(x, *arrays, spec=spec)


def take_along_axis(x: Array, index: Array, dim: int | None = None) -> Array:
    """Pick along one axis; the other axes of `x` and `index` broadcast. Without `dim`, pick from the flattened tensor.

    Negative indices count from the end, as in NumPy.
    """
    if dim is None:
        x, dim = reshape_p(x, shape=(math.prod(x.shape),)), 0
        index = reshape_p(index, shape=(math.prod(index.shape),))
    axis = canonical_axis(dim, len(x.shape))
    if len(index.shape) != len(x.shape):
        given, expected = f"an array of shape {tuple(index.shape)}", f"{len(x.shape)} dimensions, as many as x has"
        raise bad_option("take_along_axis", "index", given, expected)
    if not x.shape:
        return reshape_p(take_along_axis(as_row(x), as_row(index), 0), shape=())
    index = _from_front(index, x.shape[axis])
    rest = slice(axis), slice(axis + 1, None)
    if any(x.shape[part] != index.shape[part] for part in rest):
        before, after = (np.broadcast_shapes(x.shape[part], index.shape[part]) for part in rest)
        x, index = (broadcast_to_p(one, shape=(*before, one.shape[axis], *after)) for one in (x, index))
    return take_along_axis_p(x, index, axis=axis)


def gather(x: Array, dim: int, index: Array, *, sparse_grad: bool = False) -> Array:
    """PyTorch's `gather`: y[i, j] = x[index[i, j], j] for dim 0. `index` may be smaller than `x`.

    Raises:
        IndexRangeError: an index is negative or beyond the end.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> gg.gather(x, 1, gg.tensor([[1], [0]])).tolist()
        [[2.0], [3.0]]
    """
    index, axis = as_index("gather", index), canonical_axis(dim, len(x.shape))
    if tuple(x.shape) == tuple(index.shape) != ():  # the usual case; the checks below are for other shapes
        return take_along_axis_p(x, index, axis=axis)
    expect_along("gather", x, axis, index)
    if not math.prod(index.shape) and len(index.shape) != len(x.shape):  # an empty index of any shape
        return reshape_p(reshape_p(x, shape=(math.prod(x.shape),))[:0], shape=tuple(index.shape))
    y = take_along_axis_p(as_row(x), as_row(index), axis=axis)
    return y if index.shape else reshape_p(y, shape=())


def index_select(x: Array, dim: int, index: Array) -> Array:
    """Return the slices of `x` at the positions `index` along `dim`.

    Raises:
        IndexRangeError: an index is negative or beyond the end.
    """
    return _slices_at(x, dim, as_row(as_index("index_select", index, vector=True)), PLACES)


def _slices_at(x: Array, dim: int, index: Array, kind: IndexArray) -> Array:
    axis = canonical_axis(dim, len(x.shape))
    if not x.shape:
        return reshape_p(_slices_at(reshape_p(x, shape=(1,)), 0, index, kind), shape=())
    return getitem_p(x, _array(index), spec=(EVERYTHING,) * axis + (kind,))


def take(x: Array, index: Array, dim: int | None = None) -> Array:
    """The elements of the flattened tensor at `index`, in its shape; with `dim` the slices along it, as in NumPy."""
    index = _array(index)
    if index.dtype.kind == "b":
        raise bad_option("take", "index", "an array of bool", "integers; x[mask] selects by truth")
    if dim is None:
        return getitem_p(reshape_p(x, shape=(math.prod(x.shape),)), _array(index), spec=(ARRAY,))
    return _slices_at(x, dim, index, ARRAY)


def _from_front(index: Array, size: int) -> Array:
    """Return an index with negative numbers, which count from the end, converted to positive ones."""
    plain = getattr(index, "array", index)
    if type(plain) is np.ndarray and (not plain.size or least(plain) >= 0):
        return index
    return ew.where(ew.less(index, 0), index + size, index)


def _array(index: Array) -> Array:
    return index if hasattr(index, "dtype") else np.asarray(index)


def embedding(index: Array, weight: Array) -> Array:
    """Return the rows of `weight` (count, width) at `index`: shape (*index.shape, width)."""
    return getitem_p(weight, index, spec=ROWS)


def one_hot(index: Array, num_classes: int = -1) -> Array:
    """Integers to vectors of 0 and a single 1: shape (*index.shape, num_classes), int64.

    Args:
        index: class numbers, from 0 to num_classes - 1.
        num_classes: by default one more than the largest number.

    Raises:
        IndexRangeError: a number is not a class.
        KindError: the numbers are not integers.
    """
    index = _array(index)
    if index.dtype.kind not in "iu":
        raise errors.EXPECTED_CLASSES(op="one_hot", dtype=index.dtype, where=provenance.here())
    if num_classes < 0:
        plain = concrete(index, "one_hot without num_classes")
        num_classes = int(plain.max()) + 1 if plain.size else 0
    if not num_classes and math.prod(index.shape):
        raise bad_option("one_hot", "num_classes", num_classes, "at least 1 for numbers that there are")
    return one_hot_p(index, count=num_classes)


all_take_complex(globals(), but=("embedding", "one_hot"))
