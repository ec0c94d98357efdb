"""The form of a suspect: a title, a function from a program to places, and its words in `errors/suspects/`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from glassgrad import errors
from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.rule import Spot

HEAVIEST = 9


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


def suspects_of(names: Mapping[str, object]) -> tuple[Suspect, ...]:
    """Return the suspects among the names of a module, in their order."""
    return tuple(one for one in names.values() if isinstance(one, Suspect))
