"""Chains of views: which array a view shows, and where its elements lie in that array's memory."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.plan.indexing.indices import (
    Extents,
    Index,
    Indices,
    NeedsSplit,
    NotAffine,
    flatten,
    row_strides,
    source_indices,
)
from glassgrad.ops.core import PRIMITIVES
from glassgrad.ops.views import in_order


@dataclass(frozen=True)
class Strided:
    """An operand as a strided block inside the memory of `root`; offset and strides count elements."""

    root: Var
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def contiguous(self) -> bool:
        wanted = row_strides(self.shape)
        pairs = zip(self.strides, wanted, self.shape, strict=True)
        return all(have == want or extent == 1 for have, want, extent in pairs)


HOLD = "hold"
"""The op that returns its first operand once its second operand is known; see `plan.recompute`."""


def only_moves(instr: Instr) -> bool:
    """Tell whether an instruction only moves elements, so that it may be read through instead of run."""
    if instr.op == HOLD:
        return True
    prim = PRIMITIVES.get(instr.op)
    return prim is not None and prim.indices is not None and len(instr.inputs) == 1


def keeps_order(instr: Instr) -> bool:
    """Tell whether an instruction leaves the elements in the order in which memory holds them."""
    return instr.op == HOLD or PRIMITIVES[instr.op].indices is in_order


class ViewChain:
    """Follows the instructions in `views` from a Var down to the Var that has memory or a value.

    Attributes:
        failed: the view at which a `NotAffine` was raised, None after a chain that could be followed.
    """

    def __init__(self, views: set[Instr], producer: Mapping[Var, Instr]) -> None:
        self.views = views
        self.producer = producer
        self.failed: Instr | None = None

    def step(self, var: Var) -> tuple[Instr, Var] | None:
        """Return the view that makes a Var and its source; None at the end of the chain."""
        instr = self.producer.get(var)
        if instr is None or instr not in self.views:
            return None
        source = instr.inputs[0]
        assert isinstance(source, Var)
        return instr, source

    def base(self, var: Var) -> Var:
        """Return the Var at the end of the chain."""
        while (found := self.step(var)) is not None:
            var = found[1]
        return var

    def in_order(self, var: Var) -> bool:
        """Tell whether the elements of a view are all those of its base, in the order of memory."""
        while (found := self.step(var)) is not None:
            if not keeps_order(found[0]):
                return False
            var = found[1]
        return True

    def indices(self, var: Var, at: Indices, extents: Extents) -> tuple[Var, Indices]:
        """Return the base and the indices there; raises `NeedsSplit` or `NotAffine`."""
        while (found := self.step(var)) is not None:
            instr, source = found
            self.failed = instr
            at = source_indices(instr, at, extents)
            var = source
        self.failed = None
        return var, at

    def flat(self, var: Var, at: Indices, extents: Extents) -> tuple[Var, Index]:
        """Return the base and the position in its memory; raises `NeedsSplit` or `NotAffine`.

        This covers more views than `indices` does: below a reshape of contiguous memory only the position counts.
        """
        while (found := self.step(var)) is not None:
            instr, source = found
            if keeps_order(instr) and self.in_order(source):
                break
            self.failed = instr
            at = source_indices(instr, at, extents)
            var = source
        self.failed = None
        return self.base(var), flatten(at, row_strides(var.shape))

    def _with_fresh_axes(self, var: Var) -> tuple[Index, dict[int, int], list[list[int]]]:
        """Return (position, extents, axes of each dimension), splitting axes as needed."""
        counter = itertools.count()
        dims: list[list[int]] = []
        extents: dict[int, int] = {}
        for extent in var.shape:
            axis = next(counter)
            extents[axis] = extent
            dims.append([axis])
        while True:
            try:
                return self.flat(var, _indices_of(dims, var.shape, extents), extents)[1], extents, dims
            except NeedsSplit as request:
                high, low = next(counter), next(counter)
                whole = extents.pop(request.axis)
                extents[high], extents[low] = whole // request.inner, request.inner
                for dim in dims:
                    if request.axis in dim:
                        at = dim.index(request.axis)
                        dim[at : at + 1] = [high, low]

    def is_affine(self, var: Var) -> bool:
        """Tell whether loops over the Var's dimensions can read it."""
        try:
            self._with_fresh_axes(var)
        except NotAffine:
            return False
        return True

    def strided(self, var: Var) -> Strided | None:
        """Return how a Var lies in memory, None if not as one strided block."""
        try:
            position, extents, dims = self._with_fresh_axes(var)
        except NotAffine:
            return None
        terms = dict(position.terms)
        strides = []
        for dim in dims:
            stride = expected = terms.get(dim[-1], 0)
            for axis in reversed(dim):
                if extents[axis] > 1 and terms.get(axis, 0) != expected:
                    return None
                expected *= extents[axis]
            strides.append(stride)
        return Strided(self.base(var), position.offset, var.shape, tuple(strides))


def _indices_of(dims: list[list[int]], shape: tuple[int, ...], extents: Extents) -> Indices:
    indices = []
    for dim, extent in zip(dims, shape, strict=True):
        stride, terms = 1, []
        for axis in reversed(dim):
            terms.append((axis, stride))
            stride *= extents[axis]
        indices.append(Index(0, tuple(sorted(terms))) if extent != 1 else Index())
    return tuple(indices)
