"""The mutants of a file: those that `operators.py` makes, and the mistakes of planted.toml."""

from __future__ import annotations

import ast
import fnmatch
import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tools.mutants.operators import operators
from tools.mutants.pieces import PACKAGE, PIECES, ROOT

EXPLAINED = Path(__file__).with_name("explained.toml")
PLANTED = Path(__file__).with_name("planted.toml")


@dataclass(frozen=True)
class Mutant:
    """One change of a file: its path in the package, its text, and the text that it becomes."""

    file: str
    source: str
    text: str

    @property
    def key(self) -> str:
        """What its result is kept by: the changed function or statement, before and after."""
        first, count, becomes = self.span
        begin, end = next(
            (place for place in _parts(self.source) if place[0] <= first < place[1]), (first, first + count)
        )
        before, after = self.source.split("\n")[begin:end], self.text.split("\n")[begin : end + becomes - count]
        return hashlib.sha256("\n".join([self.file, *before, "becomes", *after]).encode()).hexdigest()

    @property
    def span(self) -> tuple[int, int, int]:
        """The first line that differs, from 0, and how many differ before and after the change."""
        before, after = self.source.split("\n"), self.text.split("\n")
        most = min(len(before), len(after))
        first = next((n for n in range(most) if before[n] != after[n]), most)
        last = next((n for n in range(most - first) if before[-1 - n] != after[-1 - n]), most - first)
        return first, len(before) - last - first, len(after) - last - first

    def lines(self) -> tuple[str, str]:
        """Return the lines that differ, before and after, each with single spaces."""
        first, *counts = self.span
        was, becomes = (
            " ".join(" ".join(text.split("\n")[first : first + count]).split())
            for text, count in zip((self.source, self.text), counts, strict=True)
        )
        return was, becomes

    def above(self) -> str:
        """Return the line above those that differ, for lines that stand in many places."""
        lines = self.source.split("\n")[: self.span[0]]
        return lines[-1].strip() if lines else ""

    def __str__(self) -> str:
        was, becomes = self.lines()
        return f"  {self.file}:{self.span[0] + 1}\n    - {was}\n    + {becomes}"


@lru_cache(maxsize=4)
def _parts(source: str) -> list[tuple[int, int]]:
    """Return the first line, from 0, and the end of every statement of a module or of a class in it."""
    tree = ast.parse(source)
    inner = [one for node in tree.body if isinstance(node, ast.ClassDef) for one in node.body]
    return [(node.lineno - 1, node.end_lineno or node.lineno) for node in (*inner, *tree.body)]


def planted(name: str) -> list[Mutant]:
    """Return the planted mistakes of a piece: one text that replaces another, which occurs once."""
    found = []
    for entry in tomllib.loads(PLANTED.read_text(encoding="utf-8"))["mutant"]:
        if entry["piece"] == name:
            source = (ROOT / PACKAGE / entry["file"]).read_text(encoding="utf-8")
            if source.count(entry["was"]) != 1:
                raise SystemExit(f"{PLANTED.name}: {entry['file']} does not hold exactly once: {entry['was']}")
            found.append(Mutant(entry["file"], source, source.replace(entry["was"], entry["becomes"])))
    return found


def explained() -> list[dict[str, str]]:
    """Return the explained mutants: `file`, the line as it `was`, what it `becomes`, and the `reason`.

    Where the line stands in many places, `below` is the line above the one that is meant.
    """
    return tomllib.loads(EXPLAINED.read_text(encoding="utf-8")).get("mutant", [])


def identity(entry: dict[str, str]) -> tuple[str | None, ...]:
    """Return what an entry of a list of mutants is found by."""
    return entry["file"], entry["was"], entry["becomes"], entry.get("below")


def identities(mutant: Mutant) -> set[tuple[str | None, ...]]:
    """Return what entries of a mutant are found by: without the line above it, and with it."""
    return {(mutant.file, *mutant.lines(), place) for place in (None, mutant.above())}


def patterns() -> list[dict[str, str]]:
    """Return what explains many mutants: `file`, expressions that `was` and `becomes` match whole, and the `reason`."""
    return tomllib.loads(EXPLAINED.read_text(encoding="utf-8")).get("pattern", [])


def fits(entry: dict[str, str], mutant: Mutant) -> bool:
    """Tell whether a pattern explains a mutant."""
    was, becomes = mutant.lines()
    same_file = fnmatch.fnmatch(mutant.file, entry["file"])
    return same_file and all(
        re.fullmatch(entry.get(name, ".*"), text) for name, text in (("was", was), ("becomes", becomes))
    )


def mutants_of(file: str) -> list[Mutant]:
    """Return the mutants of a file."""
    from cosmic_ray.ast import ast_nodes, get_ast

    source = (ROOT / PACKAGE / file).read_text(encoding="utf-8")
    root = get_ast(source)
    nodes = [node for node in ast_nodes(root) if node is not root]
    texts: dict[str, None] = {}
    for operator in operators():
        for node in nodes:
            for index, _ in enumerate(list(operator.mutation_positions(node))):
                text = _mutated(root, node, operator, index)
                if text != source:
                    texts[text] = None
    return [Mutant(file, source, text) for text in texts]


def of_piece(name: str) -> list[Mutant]:
    """Return the mutants of all files of a piece."""
    from tools.mutants import rules

    made = [mutant for file in PIECES[name].files() for mutant in mutants_of(file)]
    return rules.only(made) if PIECES[name].rules else made


def _mutated(root: Any, node: Any, operator: Any, index: int) -> str:
    """Return the text with one change, and undo the change, as operators change the nodes that they are given."""
    from cosmic_ray.ast import ast_nodes

    before = [
        (one, "children", list(one.children)) if hasattr(one, "children") else (one, "value", one.value)
        for one in (*ast_nodes(node), node.parent)
    ]
    siblings = node.parent.children
    try:
        siblings[next(n for n, one in enumerate(siblings) if one is node)] = operator.mutate(node, index)
        return str(root.get_code())
    finally:
        for one, name, value in before:
            setattr(one, name, value)
