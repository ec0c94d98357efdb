"""The form of a rule about scripts: a title, a small function from a program to places, and its words in `errors`."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glassgrad import errors
from glassgrad.doctor.reading.program import Program

_FILES = "reading.toml", "reading_runs.toml", "reading_values.toml"
SEVERITIES = "error", "warning", "info"
Node = ast.expr | ast.stmt


@dataclass(frozen=True)
class Spot:
    """A place where a rule finds something.

    Attributes:
        node: what is wrong there; its first line is the line of the remark.
        also: other places that belong to the fault, where a run may see it.
        facts: the words that the message of the rule holds.
    """

    node: Node
    also: tuple[Node, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


def spot(node: Node, *also: Node, **facts: str) -> Spot:
    """Return a place with what else belongs to it."""
    return Spot(node, also, facts)


@dataclass(frozen=True)
class Words:
    """The words of a rule in a file `reading*.toml` of `errors`.

    `confirmed` holds the titles of a run's findings with the same meaning.
    """

    severity: str
    what: str
    advice: str
    remedy: str = ""
    confirmed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A rule: the title of what it finds, and the function that looks for it."""

    title: str
    look: Callable[[Program], Iterator[Spot]]

    @property
    def name(self) -> str:
        """Its stable name, which is also its place on the page of all findings."""
        return name_of(self.title)

    @property
    def words(self) -> Words:
        """What it says."""
        return words()[self.title]


def name_of(title: str) -> str:
    """Return the name of a title, as that of a finding: "softmax-twice"."""
    return re.sub(r"[^\w-]+", "-", title.lower())


@functools.cache
def words() -> dict[str, Words]:
    """Return the words of all rules by their titles."""
    folder = Path(errors.__file__)
    text = "\n".join(folder.with_name(name).read_text(encoding="utf-8") for name in _FILES)
    return {
        title: Words(
            str(entry["severity"]),
            str(entry["what"]),
            str(entry["advice"]),
            str(entry.get("remedy", "")),
            tuple(entry.get("confirmed", ())),
        )
        for title, entry in tomllib.loads(text).items()
    }


def reads(title: str) -> Callable[[Callable[[Program], Iterator[Spot]]], Rule]:
    """Make a rule of the decorated function, which yields places."""
    return functools.partial(Rule, title)


def rules_of(names: Mapping[str, object]) -> tuple[Rule, ...]:
    """Return the rules among the names of a module, in their order."""
    return tuple(one for one in names.values() if isinstance(one, Rule))


def shown(node: ast.AST, most: int = 60) -> str:
    """Return an expression as text on one line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= most else f"{text[: most - 4]} ..."
