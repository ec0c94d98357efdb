"""Extents that follow the sizes of a call: sums of products of named sizes, fitted to traces at several of them.

A trace has fixed shapes. So a function is traced at two sizes of each dynamic axis. An integer that differs between
traces is written as the polynomial, linear in each size, that goes through all of them. One additional trace checks the
polynomial.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Extent:
    """A size that depends on the sizes of the call: the sum of coefficient * product of the named sizes.

    Attributes:
        terms: pairs (names, coefficient), without zeros; the constant has no names.
    """

    terms: tuple[tuple[tuple[str, ...], int], ...]

    def at(self, sizes: Sizes) -> int:
        """Return the number for given sizes."""
        return sum(factor * math.prod(sizes[name] for name in names) for names, factor in self.terms)

    def __str__(self) -> str:
        parts = []
        for names, factor in self.terms:
            factors = [*([] if factor == 1 and names else [str(factor)]), *names]
            parts.append("*".join(factors))
        return " + ".join(parts)


Dim = int | Extent | None  # None: it depends on the sizes, but not as such a polynomial


class Samples:
    """The sizes at which a function is traced, and the fit of integers to them.

    Args:
        first: a size of every name.
        second: another size of every name.
        check: a third size of every name, for the trace that checks the fit.
    """

    def __init__(self, first: Sizes, second: Sizes, check: Sizes) -> None:
        self.names = tuple(first)
        corners = itertools.product((0, 1), repeat=len(self.names))
        self.sizes: list[dict[str, int]] = [
            {name: (first, second)[which][name] for name, which in zip(self.names, corner, strict=True)}
            for corner in corners
        ]
        monomials = [
            chosen for count in range(len(self.names) + 1) for chosen in itertools.combinations(self.names, count)
        ]
        self._monomials = monomials
        rows = [[math.prod(sizes[name] for name in names) for names in monomials] for sizes in self.sizes]
        self._inverse = np.linalg.inv(np.array(rows, np.float64))
        if self.names:
            self.sizes.append(dict(check))

    def fit(self, values: Sequence[int]) -> Dim:
        """Return the integer that all traces share, the polynomial through them, or None if there is none."""
        if len(set(values)) == 1:
            return values[0]
        factors = np.rint(self._inverse @ np.array(values[: len(self._monomials)], np.float64)).astype(int).tolist()
        terms = tuple([(names, factor) for names, factor in zip(self._monomials, factors, strict=True) if factor])
        found = Extent(terms)
        same = all(found.at(sizes) == value for sizes, value in zip(self.sizes, values, strict=True))
        return found if same else None
