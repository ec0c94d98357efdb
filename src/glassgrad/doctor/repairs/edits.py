"""Changes of a script's text."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """A change of a script.

    Attributes:
        line: the first line that it changes, counted from 1; `new`: what stands there afterwards, one line.
        text: the whole script after the change.
        means: what is wrong with the script if the change helps.
        rescales: whether the change may alter the scale of the loss, so that a lower loss says nothing.
        shown: whether it stands in a function that the script's figures are computed with too.
        tunes: whether it changes a choice that may be sound, such as a rate; it must help much more.
        prior: how likely it is to be the fault before anything has run; only the order matters.
    """

    line: int
    new: str
    text: str
    means: str
    rescales: bool = False
    shown: bool = False
    tunes: bool = False
    prior: float = 1.0


class Text:
    """The text of a script, by the positions of its syntax tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [line.encode() for line in text.splitlines(keepends=True)]
        self._begins = [0]
        for line in self._lines:
            self._begins.append(self._begins[-1] + len(line))
        self._bytes = b"".join(self._lines)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        lines, columns = ("lineno", "end_lineno"), ("col_offset", "end_col_offset")
        begin, end = (self._begins[getattr(node, line) - 1] for line in lines)
        return begin + getattr(node, columns[0]), end + getattr(node, columns[1])

    def of(self, node: ast.AST) -> str:
        """Return the text of a node."""
        begin, end = self._span(node)
        return self._bytes[begin:end].decode()

    def replaced(self, *pairs: tuple[ast.AST, str]) -> str:
        """Return the script with nodes replaced; the nodes do not overlap."""
        spans = sorted((*self._span(node), new) for node, new in pairs)
        parts, at = [], 0
        for begin, end, new in spans:
            parts += [self._bytes[at:begin], new.encode()]
            at = end
        return b"".join([*parts, self._bytes[at:]]).decode()

    def indent(self, statement: ast.stmt) -> str:
        """Return the blanks before a statement."""
        return " " * statement.col_offset

    def block(self, statement: ast.stmt, indent: str) -> str:
        """Return the whole lines of a statement, indented otherwise."""
        lines = self.text.splitlines()[statement.lineno - 1 : statement.end_lineno]
        before = statement.col_offset
        return "".join(f"{indent}{line[before:] if not line[:before].strip() else line}\n" for line in lines)

    def moved(self, removed: ast.stmt | None, before_line: int, block: str) -> str:
        """Return the script with the lines of a statement removed, and a block put before a line."""
        lines = self.text.splitlines(keepends=True)
        gone = range(removed.lineno - 1, removed.end_lineno or removed.lineno) if removed is not None else range(0)
        kept: list[str] = []
        for at, line in enumerate(lines):
            if at == before_line - 1:
                kept.append(block)
            if at not in gone:
                kept.append(line)
        if before_line - 1 >= len(lines):
            kept.append(block)
        return "".join(kept)


def line_of(text: str, line: int) -> str:
    """Return a line of a text without the blanks around it."""
    lines: Sequence[str] = text.splitlines()
    return lines[line - 1].strip() if line <= len(lines) else ""
