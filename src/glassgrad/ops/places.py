"""Splitting an index into its static part and its arrays, joining it again, and adding at many places at once.

An index is split into its arrays, which are arguments (they may be Tensors or Symbols), and a static
`Spec` of everything else, so that one primitive serves slices, integers, new axes and integer arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.errors.packages import present
from glassgrad.ops.axes import concrete
from glassgrad.ops.core import Array
from glassgrad.ops.kernels import products
from glassgrad.ops.kernels.choose import largest, least

Shape = tuple[int, ...]
Spec = tuple[Any, ...]

# From this many numbers on, loading SciPy's sparse matrices (once, 0.1 s) pays: they are three times as fast.
SPARSE_FROM = 1 << 16

# Up to this size, building a one-hot matrix and multiplying by it is fastest.
ONE_HOT_UP_TO = 1 << 16


class Slice(NamedTuple):
    """A slice in a spec; `slice` itself is not hashable before Python 3.12."""

    start: int | None
    stop: int | None
    step: int | None


class IndexArray:
    """Marker for the place of an integer array in a spec."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name.lower()

    def __reduce__(self) -> str:
        return self.name


ARRAY = IndexArray("ARRAY")  # as in x[index]: negative numbers count from the end
PLACES = IndexArray("PLACES")  # as in an embedding: negative numbers are errors
EVERYTHING = Slice(None, None, None)


def split_index(index: Any, shape: Shape | None = None) -> tuple[Spec, list[Any]]:
    """Split an index into its static part and its arrays; boolean arrays become their positions.

    If the indexed shape is given, masks must match it: a wrong one might still give positions in range.
    """
    given = index if type(index) is tuple else (index,)
    if BASIC.issuperset(map(type, given)):  # no arrays: usual in loops over time and in solvers
        return tuple([_slice(one.start, one.stop, one.step) if type(one) is slice else one for one in given]), []
    spec: list[Any] = []
    arrays: list[Any] = []
    parts = [part != 0 if is_byte_mask(part) else part for part in given]
    for number, part in enumerate(parts):
        if type(part) is slice:
            spec.append(_slice(part.start, part.stop, part.step))
        elif type(part) is int or part is None or part is Ellipsis:
            spec.append(part)
        elif isinstance(part, int | np.integer) and not isinstance(part, bool):
            spec.append(int(part))
        elif isinstance(part, bool | np.bool_) or (getattr(part, "dtype", None) == np.dtype(bool) and not part.shape):
            spec.append(bool(part))  # a mask of no dimensions: True adds an axis of length 1, False one of length 0
        else:
            if shape is not None:
                _expect_fit(parts, number, shape)
            found = _positions(part)
            spec.extend([ARRAY] * len(found))
            arrays.extend(found)
    return tuple(spec), arrays


def _width(part: Any) -> int:
    """Return how many dimensions a part of an index consumes; not defined for `...`."""
    if part is None or isinstance(part, bool | np.bool_):
        return 0
    kind = getattr(part, "dtype", None)
    return len(part.shape) if kind is not None and kind == np.dtype(bool) else 1


def _expect_fit(parts: Sequence[Any], number: int, shape: Shape) -> None:
    """Raise unless every array of an index has a dimension to index, and a mask matches its dimensions."""
    part = parts[number] if not isinstance(parts[number], list | tuple) else np.asarray(parts[number])
    before = [other for other in parts[:number] if other is not Ellipsis]
    if len(before) < number:  # parts after `...` count from the end
        first = len(shape) - sum(_width(other) for other in parts[number:])
    else:
        first = sum(_width(other) for other in before)
    covered = shape[first : first + _width(part)]
    mask = getattr(part, "dtype", None) == np.dtype(bool)
    if len(covered) < _width(part) or (mask and tuple(part.shape) != tuple(covered)):
        given = f"{'mask' if mask else 'index'} of shape {tuple(part.shape)}"
        raise errors.INDEX_DOES_NOT_FIT(given=given, first=first, shape=tuple(shape), where=provenance.here())


def is_byte_mask(part: Any) -> bool:
    """Tell whether a part is an older mask of PyTorch's, a tensor of uint8; a NumPy array of uint8 holds positions."""
    return getattr(part, "dtype", None) == _BYTE and type(part) is not np.ndarray


_BYTE = np.dtype(np.uint8)
BASIC = frozenset({int, slice, type(None), type(...)})


def in_two_steps(index: Any) -> tuple[Any, Any] | None:
    """Split an index that NumPy and PyTorch read differently into its integers and the rest; else return None.

    In ``x[0, :, rows]`` NumPy treats the 0 as an array. The arrays are then not adjacent, so their dimension comes
    first. PyTorch takes the slice x[0] and then [:, rows] of it. Tensors behave like PyTorch's here.
    """
    if type(index) is not tuple or BASIC.issuperset(map(type, index)):
        return None
    kinds = [_kind(part) for part in index]
    found = [at for at, kind in enumerate(kinds) if kind != "slice"]
    if not {"integer", "array"} <= set(kinds) or found[-1] - found[0] + 1 == len(found):
        return None
    first: list[Any] = []
    for part, kind in zip(index, kinds, strict=True):
        if kind == "integer":
            first.append(int(part))
        elif part is Ellipsis:
            first.append(part)
        elif kind == "array":
            listed = part if hasattr(part, "dtype") else np.asarray(part)
            first += [slice(None)] * (len(listed.shape) if listed.dtype == np.dtype(bool) else 1)
        elif part is not None:
            first.append(slice(None))
    return tuple(first), tuple(part for part, kind in zip(index, kinds, strict=True) if kind != "integer")


def _kind(part: Any) -> str:
    if part is None or part is Ellipsis or type(part) is slice:
        return "slice"
    whole = isinstance(part, int | np.integer) and not isinstance(part, bool)
    # A 0-d tensor or array counts as a number; a Symbol of a trace does not.
    array = part.array if hasattr(part, "_tracks") else part
    one = isinstance(array, np.ndarray) and not array.ndim and array.dtype.kind in "iu"
    return "integer" if whole or one else "array"


def _slice(start: Any, stop: Any, step: Any) -> Slice:
    """Return a slice of Python integers, whichever integer types are given."""
    return Slice(*[part if part is None or type(part) is int else part.__index__() for part in (start, stop, step)])


def _positions(part: Any) -> list[Any]:
    """Return the integer arrays of one array-like index."""
    array = part if isinstance(getattr(part, "dtype", None), np.dtype) else _listed(part)
    if array.dtype == bool:
        mask = array.array if hasattr(array, "_tracks") else array
        return list(mask.nonzero() if hasattr(mask, "nonzero") else concrete(mask, "indexing with booleans"))
    if array.dtype.kind not in "iu":
        if math.prod(array.shape):
            raise errors.INDEX_KIND(dtype=array.dtype, where=provenance.here())
        return [np.asarray(concrete(array, "getitem"), dtype=np.int64)]
    return [array]


def _listed(part: Any) -> Array:
    if isinstance(part, list):
        part = [concrete(one, "getitem") if hasattr(one, "_tracks") else one for one in part]
    return np.asarray(part)


def join_index(spec: Spec, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Join the parts of an index, for the array library."""
    if not arrays:
        return tuple([slice(*part) if type(part) is Slice else part for part in spec])
    for array in arrays:
        refuse_huge(array)
    supply = iter(arrays)
    return tuple(
        next(supply) if type(part) is IndexArray else slice(*part) if type(part) is Slice else part for part in spec
    )


def makes_axis(part: Any) -> bool:
    """Tell whether an entry of a spec consumes no dimension of the source: None, or a 0-d mask."""
    return part is None or isinstance(part, bool)


def has_masks(spec: Spec) -> bool:
    """Tell whether a spec has 0-d masks; with them, an index without arrays makes a copy, too."""
    return any(isinstance(part, bool) for part in spec)


def spec_entries(spec: Sequence[Any], shape: Shape) -> list[Any]:
    """Return the entries of a spec with the ellipsis expanded, one for each dimension of `shape` or new axis."""
    named = sum(part is not Ellipsis and not makes_axis(part) for part in spec)
    filler = [EVERYTHING] * (len(shape) - named)
    at = next((place for place, part in enumerate(spec) if part is Ellipsis), len(spec))
    return [*spec[:at], *filler, *(part for part in spec[at:] if part is not Ellipsis)]


def refuse_huge(index: Array) -> None:
    """Raise for an unsigned number so large that NumPy would wrap it to a negative index."""
    if index.dtype.char in _UNSIGNED_64 and index.size and largest(index) >= 1 << 63:
        raise errors.INDEX_HUGE(index=largest(index), where=provenance.here())


_UNSIGNED_64 = frozenset("LQ" if np.dtype("L").itemsize == 8 else "Q")


def check_places(index: Array, size: int, axis: int) -> None:
    """Raise `IndexError` for a negative place; an overlarge one is found where it is used."""
    if index.dtype.char in _UNSIGNED_64:
        refuse_huge(index)
    if index.size and least(index) < 0:
        at = tuple(map(int, np.argwhere(index < 0)[0]))
        raise IndexError(
            f"index {index[at]} at position {at} is out of range for dim {axis} of size {size}; expected 0 to "
            f"{size - 1}: negative ones do not count from the end here, as they do in x[index]"
        )


_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def all_classes(labels: Array, classes: int) -> bool:
    """Tell whether all labels are from 0 to classes - 1."""
    # Viewed as unsigned integers, negative labels are huge: one pass checks both ends.
    return not labels.size or bool(largest(labels.view(_UNSIGNED[labels.dtype.itemsize])) < classes)


def check_classes(op: str, labels: Array, classes: int) -> None:
    """Raise `IndexRangeError` for a label that is not a class."""
    if not all_classes(labels, classes):
        label = labels[(labels < 0) | (labels >= classes)].flat[0]
        where = provenance.here()
        raise errors.CLASS_OUT_OF_RANGE(op=op, label=label, classes=classes, last=classes - 1, where=where)


def check_spec(spec: Spec, arrays: Sequence[Array], shape: Shape) -> None:
    """Raise `IndexError` for a negative number in the array of a spec that ends in `PLACES`."""
    if arrays and spec[-1] is PLACES:
        check_places(arrays[-1], shape[len(spec) - 1], len(spec) - 1)


def add_at(xp: Any, g: Array, spec: Spec, arrays: Sequence[Array], shape: Shape) -> Array:
    """Return zeros of `shape` with `g` added at an index, once for every time a place occurs in it."""
    if not arrays:
        out = xp.zeros(shape, dtype=g.dtype)
        out[join_index(spec, ())] = g
        return out
    lead = len(spec) - 1
    last_only = type(spec[-1]) is IndexArray and (not lead or all(part == EVERYTHING for part in spec[:-1]))
    if len(arrays) == 1 and last_only:
        return _add_along(xp, g, arrays[0], lead, shape)
    if len(spec) == len(arrays):
        # Index arrays first, whole rows after them: combine the indices into one row number.
        sizes = shape[: len(arrays)]
        joined = np.ravel_multi_index(np.broadcast_arrays(*map(_wrapped, arrays, sizes)), sizes)
        rows = g.reshape(joined.size, math.prod(shape[len(sizes) :]))
        return add_rows(rows, joined.reshape(-1), math.prod(sizes)).reshape(shape)
    everywhere = np.arange(math.prod(shape)).reshape(shape)[join_index(spec, arrays)]
    return add_rows(g.reshape(-1, 1), everywhere.reshape(-1), math.prod(shape)).reshape(shape)


def _wrapped(index: Array, size: int) -> Array:
    if index.size and largest(index) >= size:  # in a flattened array this would silently be another row
        raise IndexError(f"index {largest(index)} is out of range for a dimension of size {size}")
    return np.where(index < 0, index + size, index) if index.size and least(index) < 0 else index


def _add_along(xp: ModuleType, g: Array, index: Array, axis: int, shape: Shape) -> Array:
    """Add slices of `g` at positions along one axis."""
    shape = tuple(shape)  # indexing a Size is a Python call
    if axis == 0 and shape[0] <= 256 and index.size * shape[0] <= ONE_HOT_UP_TO:
        # Few rows: the product with their one-hot matrix is a single BLAS call.
        # If a number is not finite, 0 * inf makes NaN in rows that no index names: add row by row then.
        flat = g.reshape(-1)
        if _is_finite(flat):
            one_hot = _identity(shape[0], g.dtype).take(index.reshape(-1), 0)
            rows = flat.reshape(index.size, shape[1] if len(shape) == 2 else math.prod(shape[1:]))
            few = rows.shape[1] > 1 and one_hot.size * rows.shape[1] < products.FROM
            total = one_hot.T.dot(rows) if few else products.dot(one_hot.T, rows)
            return total if len(shape) == 2 else total.reshape(shape)
    rows = _wrapped(index, shape[axis]).reshape(-1)
    if axis == 0:
        return add_rows(g.reshape(rows.size, math.prod(shape[1:])), rows, shape[0]).reshape(shape)
    before, after = shape[:axis], shape[axis + 1 :]
    outer, inner = math.prod(before), math.prod(after)
    first = np.moveaxis(g.reshape(outer, rows.size, inner), 1, 0)
    added = add_rows(first.reshape(rows.size, outer * inner), rows, shape[axis])
    return np.moveaxis(added.reshape(shape[axis], *before, *after), 0, axis)


def _is_finite(flat: Array) -> bool:
    """Tell whether all numbers of an array of one dimension are finite."""
    if flat.dtype.char not in "fd" or not flat.size:
        return bool(np.isfinite(flat).all())
    # Both propagate NaN, and take less time than an array of booleans.
    return math.isfinite(flat.item(flat.argmax())) and math.isfinite(flat.item(flat.argmin()))


@lru_cache(maxsize=8)
def _identity(count: int, dtype: Any) -> Array:
    return np.eye(count, dtype=dtype)


def add_rows(g: Array, rows: Array, count: int) -> Array:
    """Return `count` rows of zeros with the rows of `g` (n, width) added at `rows`: an embedding's backward.

    `np.add.at` is slow on rows and fast on single numbers, so small cases add number by number; large ones
    are a product with the sparse 0/1 matrix that has a single 1 in each column.
    """
    n, width = g.shape
    if n * width >= SPARSE_FROM and g.dtype.char in "fd" and present("scipy"):
        from scipy.sparse import csc_array

        ones = np.ones(n, g.dtype)
        return csc_array((ones, rows, np.arange(n + 1)), shape=(count, n)) @ g
    out = np.zeros(count * width, g.dtype)
    places = rows if width == 1 else (rows[:, None] * width + np.arange(width)).reshape(-1)
    np.add.at(out, places, g.reshape(-1))
    return out.reshape(count, width)
