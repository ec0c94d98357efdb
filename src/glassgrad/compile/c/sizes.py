"""Names for sizes: the first dimension of the arguments is BATCH, those of an array `w` are W_ROWS and W_COLUMNS."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from glassgrad.compile.c.words import Names
from glassgrad.compile.ir.graph import Var

_LEAST = 3  # smaller sizes stay numbers
_DIMENSIONS = {
    1: ("SIZE",),
    2: ("ROWS", "COLUMNS"),
    3: ("ROWS", "STEPS", "COLUMNS"),
    4: ("FIRST", "SECOND", "HIGH", "WIDE"),
}


class Sizes:
    """The named sizes of a program.

    Attributes:
        names: size -> name, only of those that the program mentions.
    """

    def __init__(self, arguments: Mapping[Var, str], state: Mapping[Var, str]) -> None:
        self._known: dict[int, str] = {}
        self.names: dict[int, str] = {}
        names = Names()
        for size in self._batch(list(arguments), state):
            self._known[size] = names.take("BATCH")
        for var, name in (*arguments.items(), *state.items()):
            ends = _DIMENSIONS.get(var.ndim, tuple(f"D{axis}" for axis in range(var.ndim)))
            for size, end in zip(var.shape, ends, strict=True):
                if size >= _LEAST and size not in self._known:
                    self._known[size] = names.take(f"{name.upper()}_{end}")

    @staticmethod
    def _batch(arguments: Sequence[Var], state: Mapping[Var, str]) -> list[int]:
        """Return the first dimension that all arguments share, unless the state has the same size."""
        first = {var.shape[0] for var in arguments if var.ndim}
        own = {size for var in state for size in var.shape}
        return [size for size in first if len(first) == 1 and size >= _LEAST and size not in own]

    def text(self, size: int) -> str:
        """Return a size as its name, as a product of names, or as a number."""
        return self._product(size) or str(size)

    def _product(self, size: int) -> str | None:
        if size in self._known:
            return self._named(size)
        if size < _LEAST * _LEAST:
            return None
        own = sorted((one for one in self._known if size % one == 0), reverse=True)
        for count in (2, 3):
            for parts in itertools.combinations_with_replacement(own, count):
                if math.prod(parts) == size:
                    return " * ".join(map(self._named, parts))
        return None

    def _named(self, size: int) -> str:
        self.names[size] = self._known[size]
        return self._known[size]
