"""A finding as a question: which value does it blame, and where does the script make that value?"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading.chains import Chain, chain
from glassgrad.doctor.reading.flow import Value
from glassgrad.doctor.reading.origins.places import Places
from glassgrad.doctor.reading.program import Program

MOST = 2
"""The most lines that are named beside that of the finding."""


@dataclass(frozen=True)
class Origin:
    """A line of the script that a finding should name, in words such as "the targets are made".

    `certain` tells whether the fault was made there and not where the run has seen it.
    """

    what: str
    line: int
    certain: bool = True


@dataclass(frozen=True)
class Asked:
    """A finding of a run, and the script and its lines that the finding names."""

    finding: Finding
    places: Places
    lines: tuple[int, ...]

    @property
    def program(self) -> Program:
        """The script."""
        return self.places.program

    def calls(self) -> Iterator[ast.Call]:
        """Yield the calls that begin at these lines."""
        nodes = (node for line in self.lines for node in self.places.nodes(line))
        yield from (node for node in nodes if isinstance(node, ast.Call))

    def targets(self) -> Chain:
        """Return the way of the targets of the losses at these lines."""
        return self.from_(*(one for line in self.lines for one in self.places.targets(line)))

    def predictions(self) -> Chain:
        """Return the way of the predictions that the losses at these lines take."""
        return self.from_(*(one for line in self.lines for one in self.places.predictions(line)))

    def inputs(self, kind: str = "forward") -> Chain:
        """Return the way of the first argument of the model."""
        return self.from_(*self.places.entering(kind)[:1])

    def from_(self, *values: Value) -> Chain:
        """Return the way of values to their origins."""
        return chain(self.program, *values)


Role = Callable[[Asked], Iterator[Origin]]
"""Finds the lines where what a finding blames was made."""


def made(what: str, way: Chain, certain: bool = True) -> Iterator[Origin]:
    """Yield the lines where a chain of values begins, if it is clear which ones these are."""
    lines = sorted({one.node.lineno for one in way.ends})
    if 0 < len(lines) <= MOST:
        yield from (Origin(what, line, certain) for line in lines)
