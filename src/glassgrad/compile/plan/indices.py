"""Where a loop nest reads and writes: affine indices, and how view ops move them.

An `Index` says which position along one dimension of an array a turn of the loops touches: an offset plus a
multiple of each loop counter. Reading through a view (reshape, transpose, slice, ...) is reading its source
at indices computed here; no view is ever a loop of its own unless somebody needs its bytes in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glassgrad.compile.ir.graph import Instr, Shape
from glassgrad.ops.places import Slice

_WHOLE = Slice(None, None, None)

Axis = int
Extents = Mapping[Axis, int]


@dataclass(frozen=True, slots=True)
class Index:
    """offset + sum of stride * counter over the terms (axis, stride); strides are not 0."""

    offset: int = 0
    terms: tuple[tuple[Axis, int], ...] = ()

    def shifted(self, offset: int) -> Index:
        return Index(self.offset + offset, self.terms)

    def scaled(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return Index()
        return Index(self.offset * factor, tuple((axis, stride * factor) for axis, stride in self.terms))

    def plus(self, other: Index) -> Index:
        if not other.terms:
            return self.shifted(other.offset) if other.offset else self
        strides = dict(self.terms)
        for axis, stride in other.terms:
            strides[axis] = strides.get(axis, 0) + stride
        return Index(
            self.offset + other.offset, tuple(sorted((axis, stride) for axis, stride in strides.items() if stride))
        )

    def substituted(self, replacement: Mapping[Axis, Index]) -> Index:
        """Replace counters by indices in other counters."""
        if not any(axis in replacement for axis, _ in self.terms):
            return self
        result = Index(self.offset)
        for axis, stride in self.terms:
            result = result.plus(replacement.get(axis, Index(0, ((axis, 1),))).scaled(stride))
        return result

    @property
    def axes(self) -> frozenset[Axis]:
        return frozenset(axis for axis, _ in self.terms)


Indices = tuple[Index, ...]


class NeedsSplit(Exception):  # noqa: N818 - a request to the caller, not an error
    """An index can be expressed only when `axis` becomes two axes, the inner one of extent `inner`."""

    def __init__(self, axis: Axis, inner: int) -> None:
        super().__init__(axis, inner)
        self.axis = axis
        self.inner = inner


class NotAffine(Exception):  # noqa: N818 - a request to the caller, not an error
    """A view whose positions are no affine function of the loop counters."""


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
        total = total.plus(index.scaled(stride))
    return total


def unflatten(flat: Index, shape: Shape, extents: Extents) -> Indices:
    """Return the indices along `shape` of a flat position; raises `NeedsSplit` or `NotAffine`."""
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
    """Take out of `rest` the terms that move along a dimension with this stride, in units of it."""
    mine = []
    for axis, step in list(rest):
        if step >= stride:
            if step % stride:
                raise NotAffine
            mine.append((axis, step // stride))
            rest.remove((axis, step))
        elif step * extents[axis] > stride:
            # The counter runs over the boundary between this dimension and the next.
            if stride % step or extents[axis] % (stride // step):
                raise NotAffine
            raise NeedsSplit(axis, stride // step)
    return mine


# --- views --------------------------------------------------------------------------------------


def _reshape(instr: Instr, out: Indices, source: Shape, extents: Extents) -> Indices:
    matched = _same_dimensions(out, instr.output.shape, source)
    if matched is not None:
        return matched
    return unflatten(flatten(out, row_strides(instr.output.shape)), source, extents)


def _same_dimensions(out: Indices, shape: Shape, source: Shape) -> Indices | None:
    """A reshape that only adds or drops dimensions of size 1 keeps every index, whatever it is."""
    kept = [index for index, extent in zip(out, shape, strict=True) if extent != 1]
    if [extent for extent in shape if extent != 1] != [extent for extent in source if extent != 1]:
        return None
    remaining = iter(kept)
    return tuple(Index() if extent == 1 else next(remaining) for extent in source)


def _permute(instr: Instr, out: Indices, source: Shape, extents: Extents) -> Indices:
    found: list[Index] = [Index()] * len(out)
    for position, axis in enumerate(instr.params["axes"]):
        found[axis] = out[position]
    return tuple(found)


def broadcast(out: Indices, source: Shape) -> Indices:
    """Return the indices of an operand of shape `source` that NumPy broadcasts to the indices `out`."""
    lead = len(out) - len(source)
    return tuple(Index() if extent == 1 else out[lead + position] for position, extent in enumerate(source))


def _broadcast(instr: Instr, out: Indices, source: Shape, extents: Extents) -> Indices:
    return broadcast(out, source)


def _same(instr: Instr, out: Indices, source: Shape, extents: Extents) -> Indices:
    return out


def _flip(instr: Instr, out: Indices, source: Shape, extents: Extents) -> Indices:
    axes = instr.params["axis"]
    return tuple(
        index.scaled(-1).shifted(source[position] - 1) if position in axes else index
        for position, index in enumerate(out)
    )


def spec_entries(spec: Sequence[Any], source: Shape) -> list[Any]:
    """Return the entries of an index spec with the ellipsis written out, one for each dimension or new axis."""
    named = sum(part is not None and part is not Ellipsis for part in spec)
    filler = [_WHOLE] * (len(source) - named)
    at = next((place for place, part in enumerate(spec) if part is Ellipsis), len(spec))
    return [*spec[:at], *filler, *(part for part in spec[at:] if part is not Ellipsis)]


def slice_indices(spec: Sequence[Any], out: Indices, source: Shape) -> Indices:
    """Return the source's indices of an element of ``source[spec]`` for a spec of slices, ints and None."""
    found: list[Index] = []
    position = 0
    for entry in spec_entries(spec, source):
        if entry is None:
            position += 1
            continue
        extent = source[len(found)]
        if type(entry) is Slice:
            start, _, step = slice(*entry).indices(extent)
            found.append(out[position].scaled(step).shifted(start))
            position += 1
        else:
            found.append(Index(int(entry) % extent))
    return tuple(found)


def _getitem(instr: Instr, out: Indices, source: Shape, extents: Extents) -> Indices:
    return slice_indices(instr.params["spec"], out, source)


View = Callable[[Instr, Indices, Shape, Extents], Indices]

# op -> the indices of its source at given indices of its result
VIEWS: dict[str, View] = {
    "reshape": _reshape, "permute_dims": _permute, "broadcast_to": _broadcast, "alias": _same, "copy": _same,
    "flip": _flip, "getitem": _getitem,
}  # fmt: skip  # a table
