"""The indices of a loop nest's reads and writes: affine indices, and how view ops transform them.

An `Index` is the position along one dimension of an array that an iteration accesses: an offset plus a multiple
of each loop counter. A read through a view (reshape, transpose, slice, ...) is a read of its source at indices
computed here. A view becomes a loop only if its bytes are needed in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glassgrad.compile.ir.graph import Instr, Shape
from glassgrad.ops.core import PRIMITIVES
from glassgrad.ops.views import in_order

Axis = int
Extents = Mapping[Axis, int]


@dataclass(frozen=True, slots=True)
class Index:
    """offset + sum of stride * counter over the terms (axis, stride); strides are not 0."""

    offset: int = 0
    terms: tuple[tuple[Axis, int], ...] = ()

    def __add__(self, other: Index | int) -> Index:
        if not isinstance(other, Index):
            return Index(self.offset + other, self.terms) if other else self
        if not other.terms:
            return self + other.offset
        strides = dict(self.terms)
        for axis, stride in other.terms:
            strides[axis] = strides.get(axis, 0) + stride
        return Index(
            self.offset + other.offset, tuple(sorted((axis, stride) for axis, stride in strides.items() if stride))
        )

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return Index()
        return Index(self.offset * factor, tuple((axis, stride * factor) for axis, stride in self.terms))

    def substituted(self, replacement: Mapping[Axis, Index]) -> Index:
        """Replace counters by indices in other counters."""
        if not any(axis in replacement for axis, _ in self.terms):
            return self
        result = Index(self.offset)
        for axis, stride in self.terms:
            result += replacement.get(axis, Index(0, ((axis, 1),))) * stride
        return result

    @property
    def axes(self) -> frozenset[Axis]:
        return frozenset(axis for axis, _ in self.terms)


Indices = tuple[Index, ...]


class NeedsSplit(Exception):  # noqa: N818 - a request to the caller, not an error
    """An index can be expressed only if `axis` is split into two axes, the inner one of extent `inner`."""

    def __init__(self, axis: Axis, inner: int) -> None:
        super().__init__(axis, inner)
        self.axis = axis
        self.inner = inner


class NotAffine(Exception):  # noqa: N818 - a request to the caller, not an error
    """A view whose positions are not an affine function of the loop counters."""


def row_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous array."""
    strides = [1] * len(shape)
    for position in range(len(shape) - 2, -1, -1):
        strides[position] = strides[position + 1] * shape[position + 1]
    return tuple(strides)


def flatten(indices: Indices, strides: Sequence[int]) -> Index:
    """Return the position in memory of an element."""
    total = Index()
    for index, stride in zip(indices, strides, strict=True):
        total += index * stride
    return total


def unflatten(flat: Index, shape: Shape, extents: Extents) -> Indices:
    """Return the indices along `shape` of a flat position; raise `NeedsSplit` or `NotAffine`."""
    rest, offset = list(flat.terms), flat.offset
    if offset < 0 or any(stride < 0 for _, stride in rest):
        raise NotAffine
    found = []
    for extent, stride in zip(shape, row_strides(shape), strict=True):
        if extent == 1:
            found.append(Index())
            continue
        mine = _take_terms(rest, stride, extents)
        index = Index(offset // stride, tuple(sorted(mine)))
        offset %= stride
        if index.offset + sum(step * (extents[axis] - 1) for axis, step in mine) >= extent:
            raise NotAffine
        found.append(index)
    if offset + sum(step * (extents[axis] - 1) for axis, step in rest) >= 1:
        raise NotAffine
    return tuple(found)


def _take_terms(rest: list[tuple[Axis, int]], stride: int, extents: Extents) -> list[tuple[Axis, int]]:
    """Remove from `rest` the terms that move along a dimension with this stride, and return them in units of it."""
    mine = []
    for axis, step in list(rest):
        if step >= stride:
            if step % stride:
                raise NotAffine
            mine.append((axis, step // stride))
            rest.remove((axis, step))
        elif step * extents[axis] > stride:
            # The counter crosses the boundary between this dimension and the next.
            if stride % step or extents[axis] % (stride // step):
                raise NotAffine
            raise NeedsSplit(axis, stride // step)
    return mine


# --- views --------------------------------------------------------------------------------------


def source_indices(instr: Instr, out: Indices, extents: Extents) -> Indices:
    """Return the source indices of an element of a view; raise `NeedsSplit` or `NotAffine`."""
    source: Any = instr.inputs[0]
    if instr.op == "hold":
        return out
    rule: Any = PRIMITIVES[instr.op].indices
    if rule is in_order:
        return reshaped(out, instr.output.shape, source.shape, extents)
    return tuple([at if isinstance(at, Index) else Index(at) for at in rule(out, source, **instr.params)])


def reshaped(out: Indices, shape: Shape, source: Shape, extents: Extents) -> Indices:
    """Return the indices in another shape of the element at the same flat position."""
    matched = _same_dimensions(out, shape, source)
    return unflatten(flatten(out, row_strides(shape)), source, extents) if matched is None else matched


def _same_dimensions(out: Indices, shape: Shape, source: Shape) -> Indices | None:
    """Keep every index of a reshape that only adds or drops dimensions of size 1; None for any other reshape."""
    kept = [index for index, extent in zip(out, shape, strict=True) if extent != 1]
    if [extent for extent in shape if extent != 1] != [extent for extent in source if extent != 1]:
        return None
    remaining = iter(kept)
    return tuple(Index() if extent == 1 else next(remaining) for extent in source)
