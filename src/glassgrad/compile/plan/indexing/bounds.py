"""The bounds of the indices of a program, and the errors for indices out of range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glassgrad import errors
from glassgrad.compile.ir.graph import Var
from glassgrad.ops.core import Array


@dataclass(frozen=True)
class IndexBounds:
    """The bounds, for native code, of an argument that is an index into an axis of length `extent`.

    Attributes:
        low: the least allowed index; -extent if negative ones count from the end.
        spare: one value that need not be a valid index, because the program replaces it.
    """

    var: Var
    extent: int
    low: int = 0
    spare: int | None = None


@dataclass(frozen=True, kw_only=True)
class IndexCheck(IndexBounds):
    """The bounds with the data for an error message.

    Attributes:
        select: returns the part of the array that is used as an index.
        where: the line that uses it.
    """

    select: Callable[[Array], Array]
    where: object = None

    def verify(self, array: Array) -> None:
        """Raise if an index in the argument is out of range."""
        part = np.asarray(self.select(array))
        wrong = (part < self.low) | (part >= self.extent)
        if self.spare is not None:
            wrong &= part != self.spare
        if not wrong.any():
            return
        worst = part[wrong].flat[0]
        if self.spare is not None and self.low == 0:
            raise errors.CLASS_OUT_OF_RANGE(
                op=f"labels {self.var.name or ''}".strip(),
                label=worst,
                classes=self.extent,
                last=self.extent - 1,
                where=self.where,
            )
        raise wrong_index(worst, self.low, self.extent, self.var.name or "", self.where)


def wrong_index(index: Array, low: int, extent: int, name: str, where: object) -> Exception:
    """Return the exception for an index out of range."""
    return errors.STEP_INDEX(index=index, extent=extent, low=low, high=extent - 1, name=name, where=where)


@dataclass(frozen=True)
class Computed:
    """An index that the program computes, so it can be checked only after the run."""

    var: Var
    low: int
    extent: int
    where: object
