"""Map values to the indices of an array: one route for each axis, for gathers and scatters."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassgrad.compile.ir.graph import Instr, Operand, Var
from glassgrad.compile.plan.indexing.indices import Index, Indices
from glassgrad.ops.places import IndexArray, Slice, spec_entries


@dataclass(frozen=True)
class Route:
    """The source of the index along one axis of an array, for an element that is gathered from or scattered to it.

    It is either ``start + sum of step * i`` over the `terms` (dimension of the values, step), or an element of index
    array number `array`, whose dimensions are the values' dimensions `dims` (None if broadcast).
    """

    extent: int
    terms: tuple[tuple[int, int], ...] = ()
    start: int = 0
    array: int | None = None
    dims: tuple[int | None, ...] = ()

    def read(self) -> set[int]:
        """Return the values' dimensions that the index depends on."""
        return {dim for dim in self.dims if dim is not None} | {dim for dim, _ in self.terms}

    def affine(self, at: Indices) -> Index:
        """Return the index for the value at `at`, without an index array."""
        return functools.reduce(lambda total, term: total + at[term[0]] * term[1], self.terms, Index(self.start))

    def of_array(self, at: Indices) -> Indices:
        """Return the position in the index array of the index for the value at `at`."""
        return tuple(Index() if dim is None else at[dim] for dim in self.dims)


def axis_routes(instr: Instr, index: Operand, shape: Sequence[int]) -> tuple[Route, ...]:
    """Return the routes if an index array gives the index along one axis."""
    assert isinstance(index, Var)
    dims = tuple(None if extent == 1 else place for place, extent in enumerate(index.shape))
    return tuple(
        Route(extent, array=0, dims=dims) if place == instr.params["axis"] else Route(extent, ((place, 1),))
        for place, extent in enumerate(shape)
    )


def spec_routes(
    instr: Instr, arrays: Sequence[Operand], shape: tuple[int, ...]
) -> tuple[tuple[Route, ...], tuple[int, ...]]:
    """Return the routes of ``source[spec]``, for the shape of the source, and the shape of the values."""
    entries = spec_entries(instr.params["spec"], shape)
    given = [array.shape for array in arrays if isinstance(array, Var)]
    broadcast = np.broadcast_shapes(*given)
    # NumPy puts the dimensions of index arrays at the position of the first one, or in front if they are not
    # adjacent. An integer besides an array counts as a 0-d array.
    fancy = [place for place, part in enumerate(entries) if isinstance(part, IndexArray | int)]
    together = fancy == list(range(fancy[0], fancy[-1] + 1))
    position = sum(part is None or type(part) is Slice for part in entries[: fancy[0]]) if together else 0
    routes: list[Route] = []
    plain: list[int] = []  # extents of the values' dimensions that no array gives
    supply = iter(enumerate(given))
    for part in entries:
        if part is None:
            plain.append(1)
            continue
        extent = shape[len(routes)]
        if isinstance(part, IndexArray):
            number, sizes = next(supply)
            first = position + len(broadcast) - len(sizes)
            dims = tuple(None if size == 1 else first + at for at, size in enumerate(sizes))
            routes.append(Route(extent, array=number, dims=dims))
        elif isinstance(part, int):
            routes.append(Route(extent, start=part % extent))
        else:
            start, stop, step = slice(*part).indices(extent)
            behind = len(broadcast) if len(plain) >= position else 0
            routes.append(Route(extent, ((len(plain) + behind, step),), start))
            plain.append(len(range(start, stop, step)))
    return tuple(routes), (*plain[:position], *broadcast, *plain[position:])
