"""The form of a suspect: a title, a function from a program to places, and its words in `errors/suspects/`.

`suspects_each` and `suspects_rows` make one of a test of one item: most suspects look at one node at a time. `suspects`
makes one of a function that looks at the whole program.
"""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, UnionType
from typing import TypeVar, TypeVarTuple

from glassgrad import errors
from glassgrad.doctor.reading.nodes import is_op
from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.rule import Node, Spot, shown, spot

T = TypeVar("T")
Parts = TypeVarTuple("Parts")


@dataclass(frozen=True)
class Suspicion:
    """The words of a suspect.

    Attributes:
        weight: from 1 to 9, how much it says: about ten times the share of the programs with such a line in which the
            line was the fault.
        what: what the line does, and when that is wrong; `advice`: what to check; `remedy`: a line that may be meant.
    """

    weight: int
    what: str
    advice: str
    remedy: str = ""


@dataclass(frozen=True)
class Suspect:
    """A kind of line that is often a fault, and often not."""

    title: str
    look: Callable[[Program], Iterator[Spot]]

    @property
    def words(self) -> Suspicion:
        """What it says."""
        return suspicions()[self.title]


@functools.cache
def suspicions() -> dict[str, Suspicion]:
    """Return the words of all suspects by their titles."""
    files = sorted(Path(errors.__file__).with_name("suspects").glob("*.toml"))
    entries = [row for one in files for row in tomllib.loads(one.read_text(encoding="utf-8")).items()]
    return {
        title: Suspicion(int(entry["weight"]), entry["what"], entry["advice"], entry.get("remedy", ""))
        for title, entry in entries
    }


def suspects(title: str) -> Callable[[Callable[[Program], Iterator[Spot]]], Suspect]:
    """Make a suspect of the decorated function, which yields places."""
    return functools.partial(Suspect, title)


def suspects_each(
    title: str, of: type[T] | UnionType | Callable[[Program], Iterable[T]]
) -> Callable[[Callable[[Program, T], object]], Suspect]:
    """Make a suspect of the decorated test, which gets the program and one item after the other.

    The test yields places, or returns a place, or something true if the item itself is the place.

    Args:
        title: the title of the suspect.
        of: the kinds of the nodes that are tested, or a function that finds the items.
    """

    def made(test: Callable[[Program, T], object]) -> Suspect:
        def look(program: Program) -> Iterator[Spot]:
            items: Iterable[T] = _of_kind(program, of) if isinstance(of, type | UnionType) else of(program)
            for item in items:
                yield from _places(test(program, item), item)

        return Suspect(title, look)

    return made


def _of_kind(program: Program, kind: type[T] | UnionType) -> list[T]:
    return [one for one in program.nodes if isinstance(one, kind)]


def suspects_rows(
    title: str, of: Callable[[Program], Iterable[tuple[*Parts]]]
) -> Callable[[Callable[[Program, *Parts], object]], Suspect]:
    """Make a suspect of the decorated test, which gets the program and the parts of one row after the other."""

    def made(test: Callable[[Program, *Parts], object]) -> Suspect:
        def look(program: Program) -> Iterator[Spot]:
            for row in of(program):
                yield from _places(test(program, *row), row)

        return Suspect(title, look)

    return made


def _places(said: object, item: object) -> Iterator[Spot]:
    """Yield the places that a test of an item tells."""
    if isinstance(said, Iterator):
        yield from said
    elif isinstance(said, Spot):
        yield said
    elif said:
        assert isinstance(item, ast.expr | ast.stmt)
        yield look_at(item)


def operations(kinds: type[ast.operator] | UnionType) -> Callable[[Program], list[ast.BinOp]]:
    """Return a function that finds the operations of some kinds: `operations(ast.Add | ast.Sub)`."""
    return lambda program: [one for one in program.every(ast.BinOp) if is_op(one, kinds)]


def suspects_of(*modules: ModuleType) -> tuple[Suspect, ...]:
    """Return the suspects of some modules, in their order."""
    return tuple(one for module in modules for one in vars(module).values() if isinstance(one, Suspect))


def look_at(node: Node, *also: Node, **facts: str) -> Spot:
    """Return a place with what else belongs to it; its text is among the facts."""
    return spot(node, *also, text=shown(node), **facts)
