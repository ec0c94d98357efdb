"""Batching rules: how each primitive works on a whole batch at once, for `vmap`.

A rule ``(prim, size, values, batched, params)`` gets arrays with the batch along axis 0 where `batched`
is true for it, and returns the result with the batch along axis 0. Elementwise primitives need no rule and fused
ones are decomposed; the rest follow a few patterns, except indexing and products, which have rules of their own.
An entry of the table names its rule (``batch=shifted``); primitives that this file itself uses are listed at its end.
A primitive without a rule is computed one example after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad.base.tables import words
from glassgrad.ops.core import REGISTRY, Array, Primitive
from glassgrad.ops.places import ARRAY, EVERYTHING, IndexArray, Spec
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.shape import broadcast_to_p, permute_p, reshape_p
from glassgrad.ops.vmap.batched import aligned, one_by_one

Values = list[Any]
Flags = list[bool]
Params = dict[str, Any]


def expanded(value: Array, size: int) -> Array:
    """Give an array shared by all examples a batch axis, without a copy."""
    return broadcast_to_p(reshape_p(value, shape=(1, *value.shape)), shape=(size, *value.shape))


def all_expanded(values: Values, batched: Flags, size: int) -> Values:
    """Return all values with a batch axis."""
    return [value if mine else expanded(value, size) for value, mine in zip(values, batched, strict=True)]


# --- patterns -------------------------------------------------------------------------------------


def native(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    """For primitives that ignore leading axes."""
    return prim(*all_expanded(values, batched, size), **params)


def stacked(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    """For primitives on the last axes whose arguments broadcast over the leading ones."""
    return prim(*aligned(values, batched), **params)


def _axis(axis: Any) -> Any:
    return axis + 1 if isinstance(axis, int | np.integer) else tuple(a + 1 for a in axis)


# How the parameter of a name changes when a leading axis is added.
_SHIFTS: dict[str, Callable[[Any, int], Any]] = {
    "axis": lambda axis, _size: _axis(axis),
    "axis1": lambda axis, _size: axis + 1,
    "axis2": lambda axis, _size: axis + 1,
    "axes": lambda axes, _size: (0, *_axis(axes)),
    "shape": lambda shape, size: (size, *shape),
    "widths": lambda widths, _size: ((0, 0), *widths),
}


def shifted(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    """For primitives whose parameters count axes from the front."""
    moved = {name: _SHIFTS[name](entry, size) if name in _SHIFTS else entry for name, entry in params.items()}
    return prim(*all_expanded(values, batched, size), **moved)


def _broadcast_to(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    (x,), shape = values, params["shape"]
    beside = reshape_p(x, shape=(size, *(1,) * (len(shape) + 1 - len(x.shape)), *x.shape[1:]))
    return prim(beside, shape=(size, *shape))


def _over_axis_or_all(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    """For argmin and the like: `axis=None` means the position in the flattened array."""
    if params["axis"] is not None:
        return shifted(prim, size, values, batched, params)
    (x,) = values
    y = prim(reshape_p(x, shape=(size, math.prod(x.shape[1:]))), axis=1, keepdims=False)
    return reshape_p(y, shape=(size, *(1,) * (len(x.shape) - 1))) if params["keepdims"] else y


# --- products -------------------------------------------------------------------------------------


def _matmul(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    a, b = values
    ranks = [len(v.shape) - mine for v, mine in zip(values, batched, strict=True)]
    if ranks == [1, 1]:
        # A dot product for each example, or one vector that is the same for all.
        return sum_p(a * b, axis=(1,), keepdims=False) if all(batched) else prim(a, b) if batched[0] else prim(b, a)
    if ranks == [2, 1] and batched == [False, True]:
        return prim(b, permute_p(a, axes=(1, 0)))
    if ranks == [1, 2] and batched == [True, False]:
        return prim(a, b)
    if ranks[0] == 1:
        a = reshape_p(a, shape=(*a.shape[:-1], 1, a.shape[-1]))
    if ranks[1] == 1:
        b = reshape_p(b, shape=(*b.shape, 1))
    y = prim(*aligned([a, b], batched))
    if 1 not in ranks:
        return y
    # Drop the axis that turned the vector into a matrix.
    return reshape_p(y, shape=(*y.shape[:-2], y.shape[-1] if ranks[0] == 1 else y.shape[-2]))


# --- indexing -------------------------------------------------------------------------------------


def _spelled_out(spec: Spec, rank: int) -> list[Any]:
    """Expand an index to one part for every axis of an array of this rank, plus the new axes."""
    parts = list(spec)
    rest = [EVERYTHING] * (rank - sum(part is not None and part is not Ellipsis for part in parts))
    if Ellipsis in [part for part in parts if part is None or part is Ellipsis]:
        at = next(position for position, part in enumerate(parts) if part is Ellipsis)
        return parts[:at] + rest + parts[at + 1 :]
    return parts + rest


class _Index:
    """An index of one example, rewritten for the whole batch.

    NumPy puts the axes of adjacent index arrays in the place of the first one, and those of separate index arrays in
    front; a number counts as an array if there are others. `order` sorts the axes of the rewritten index's result: the
    batch first, then the axes as for one example.
    """

    def __init__(self, spec: Spec, arrays: Values, batched: Flags, rank: int, size: int, of_batch: bool) -> None:
        self.parts = parts = _spelled_out(spec, rank)
        self.width = max((len(v.shape) - mine for v, mine in zip(arrays, batched, strict=True)), default=0)
        self.arrays = [self._widened(v, mine) for v, mine in zip(arrays, batched, strict=True)]
        kinds = (IndexArray, int) if arrays else IndexArray
        advanced = [at for at, part in enumerate(parts) if isinstance(part, kinds)]
        together = not advanced or advanced[-1] - advanced[0] == len(advanced) - 1
        self.rank = self.width + sum(map(_keeps_axis, parts))  # of the result, for one example
        lead = sum(map(_keeps_axis, parts[: advanced[0]])) if advanced and together else 0
        if not of_batch:
            self.order = self._order(lead)
        elif any(batched):
            # Numbering the examples adds one index array; NumPy then puts the axes of all of them first.
            self.parts = [ARRAY, *parts]
            self.arrays.insert(0, np.arange(size).reshape(size, *(1,) * self.width))
            self.order = self._order(0, behind=lead)
        else:
            self.parts = [EVERYTHING, *parts]
            self.order = self._order(0 if together else self.width)
        while len(self.parts) > 1 and self.parts[-1] == EVERYTHING:
            self.parts.pop()

    def _widened(self, v: Array, mine: bool) -> Array:
        return reshape_p(v, shape=(v.shape[0], *(1,) * (self.width + 1 - len(v.shape)), *v.shape[1:])) if mine else v

    def _order(self, batch: int, behind: int = 0) -> tuple[int, ...]:
        """Put axis `batch` first; of the rest, put the first `width` (those of the arrays) after `behind` others."""
        rest = [axis for axis in range(self.rank + 1) if axis != batch]
        if behind:
            arrays, others = rest[: self.width], rest[self.width :]
            rest = others[:behind] + arrays + others[behind:]
        return (batch, *rest)

    @property
    def spec(self) -> Spec:
        return tuple(self.parts)

    def to_batch_first(self, y: Array) -> Array:
        return y if self.order == tuple(range(self.rank + 1)) else permute_p(y, axes=self.order)

    def from_batch_first(self, g: Array) -> Array:
        inverse = tuple(int(axis) for axis in np.argsort(self.order))
        return g if self.order == tuple(range(self.rank + 1)) else permute_p(g, axes=inverse)


def _keeps_axis(part: Any) -> bool:
    """Tell whether a part of an index, a slice or a new axis, makes an axis of the result."""
    return part is None or isinstance(part, tuple)


def _put_along(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    x, value, index = values
    x, index = (v if mine else expanded(v, size) for v, mine in ((x, batched[0]), (index, batched[2])))
    # The value broadcasts against the index, from the right.
    (value,) = aligned([value], [batched[1]], widest=len(index.shape) - 1)
    return prim(x, value, index, axis=params["axis"] + 1)


def searched(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    """For `searchsorted`: one row of edges for all values, or one row of edges per row of values."""
    edges, x = values
    if not batched[0] and len(edges.shape) == 1:
        return prim(edges, x, **params)
    edges, x = all_expanded(values, batched, size)
    if len(edges.shape) > 2:
        return prim(edges, x, **params)
    rows = reshape_p(x, shape=(size, math.prod(x.shape[1:])))
    return reshape_p(prim(edges, rows, **params), shape=tuple(x.shape))


def first_only(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    """For elementwise functions of the first argument whose other arguments are lists of numbers."""
    if any(batched[1:]):
        return one_by_one(prim, size, values, batched, params)
    return prim(*values, **params)


def _getitem(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    x, *arrays = values
    index = _Index(params["spec"], arrays, batched[1:], len(x.shape) - batched[0], size, batched[0])
    return index.to_batch_first(prim(x, *index.arrays, spec=index.spec))


def _put_add(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    g, *arrays = values
    index = _Index(params["spec"], arrays, batched[1:], len(params["shape"]), size, True)
    g = g if batched[0] else expanded(g, size)
    return prim(index.from_batch_first(g), *index.arrays, spec=index.spec, shape=(size, *params["shape"]))


def _at_set(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    x, value, *arrays = values
    index = _Index(params["spec"], arrays, batched[2:], len(x.shape) - batched[0], size, True)
    x = x if batched[0] else expanded(x, size)
    if hasattr(value, "shape") and len(value.shape):
        own = value.shape[1:] if batched[1] else value.shape
        lead = size if batched[1] else 1
        value = index.from_batch_first(reshape_p(value, shape=(lead, *(1,) * (index.rank - len(own)), *own)))
    return prim(x, value, *index.arrays, spec=index.spec)


# --- the table ------------------------------------------------------------------------------------

Rule = Callable[[Any, int, Values, Flags, Params], Any]

_PATTERNS: dict[Rule, Sequence[str]] = {
    native: ("astype", "view_bits", "copy", "alias", "tril", "triu", "one_hot"),
    shifted: words("""
        reshape permute_dims flip roll pad concat sum max min logsumexp softmax log_softmax all any take_along_axis
        put_along_add
    """),
    _broadcast_to: ("broadcast_to",),
    _over_axis_or_all: ("argmax", "argmin"),
    _matmul: ("matmul",),
    _getitem: ("getitem",),
    _put_add: ("put_add",),
    _at_set: ("at_set",),
    _put_along: ("put_along_axis",),
}

RULES: dict[str, Rule] = {name: rule for rule, names in _PATTERNS.items() for name in names}

for _name, _rule in RULES.items():
    REGISTRY[_name].batch = _rule
