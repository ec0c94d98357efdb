"""A lesson is a program: its docstring is the title and one line, comments at the left margin are prose in Markdown.

The rest is code. The page in the documentation, the view in the terminal and the notebook are made from the same cells.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

from glassgrad.lessons.gaps import has_gap

__all__ = ["Cell", "Program", "for_readers", "programs"]

PROSE, CODE = "prose", "code"


def execute(code: CodeType, names: dict[str, Any]) -> None:
    """Run compiled code of a lesson or of a learner in a dictionary of names."""
    exec(code, names)  # noqa: S102 - running programs is what lessons are for


def for_readers(text: str) -> str:
    """Return a program without comments for the linter."""
    return re.sub(r"  # noqa:[^\n]*", "", text)


@dataclass(frozen=True)
class Cell:
    """A piece of a program: prose, or code that starts at a line of its file."""

    kind: str
    text: str
    line: int

    @property
    def code(self) -> str:
        """The code for readers, without comments for the linter."""
        return for_readers(self.text.strip("\n"))


@dataclass(frozen=True)
class Program:
    """A lesson or the starter of an exercise: a file whose name begins with its number.

    In a starter the comment `# From the lesson: f, g` stands for the definitions of `f` and `g` in its lesson.

    Example:
        >>> from glassgrad.lessons import programs
        >>> programs()[1].title
        'A linear layer by hand'
    """

    path: Path

    @property
    def number(self) -> int:
        """The number, from the name of the file."""
        return int(self.path.name[:2])

    @cached_property
    def written(self) -> str:
        """The file as it is."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def text(self) -> str:
        """The source; a starter includes the definitions that it takes from its lesson."""
        lesson = self.path.parent.parent / "programs" / self.path.name
        return re.sub(
            r"^# From the lesson: (.+)$",
            lambda line: _definitions(lesson.read_text(encoding="utf-8"), set(line[1].split(", "))),
            self.written,
            flags=re.MULTILINE,
        )

    @cached_property
    def title(self) -> str:
        """The first line of the docstring, without its full stop."""
        return self._docstring.partition("\n")[0].rstrip(".")

    @cached_property
    def summary(self) -> str:
        """The rest of the docstring: one line about the lesson."""
        return " ".join(self._docstring.partition("\n")[2].split())

    @property
    def _docstring(self) -> str:
        """The docstring, and no line below it: a list of all programs shows their titles at once."""
        for token in tokenize.generate_tokens(io.StringIO(self.written).readline):
            if token.type == tokenize.STRING:
                return inspect.cleandoc(str(ast.literal_eval(token.string)))
            if token.type not in {tokenize.COMMENT, tokenize.NL}:
                break
        return self.path.stem

    @property
    def has_gaps(self) -> bool:
        """Whether the cell has a gap, `...`, to fill in."""
        return has_gap(ast.parse(self.text))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The program cut into prose and code, in order."""
        return tuple(_cells(self.text))

    def section(self, heading: str) -> list[Cell]:
        """Return the cells below a heading (`## ...`), up to the next one; the heading is left out."""
        found: list[Cell] = []
        inside = False
        for cell in self.cells:
            if cell.kind == CODE:
                found += [cell] * inside
                continue
            for part in re.split(r"^(?=## )", cell.text, flags=re.MULTILINE):
                first, _, rest = part.partition("\n")
                if first.startswith("## "):
                    inside = first[3:].strip() == heading
                    part = rest
                if inside and part.strip():
                    found.append(Cell(PROSE, part.strip("\n"), cell.line))
        return found


def programs(folder: str = "programs") -> list[Program]:
    """Return the programs of a folder beside this file, in order: `programs` for lessons, `starters` for exercises.

    Example:
        >>> programs()[0].title
        'The chain rule on numbers'
    """
    return [Program(path) for path in sorted((Path(__file__).parent / folder).glob("[0-9][0-9]_*.py"))]


def _cells(source: str) -> list[Cell]:
    lines = source.splitlines()
    body = ast.parse(source).body
    inside = {  # lines within a statement, where a line that starts with # is not prose
        line for node in body for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    start = (body[0].end_lineno or 1) + 1  # behind the docstring
    cells: list[Cell] = []
    for number in range(start, len(lines) + 1):
        text = lines[number - 1]
        kind = PROSE if text.startswith("#") and number not in inside else CODE
        if kind == PROSE:
            text = text[2:]
        elif not text and cells and cells[-1].kind == PROSE:
            kind, text = "end", ""
        if cells and cells[-1].kind == kind:
            cells[-1] = Cell(kind, f"{cells[-1].text}\n{text}", cells[-1].line)
        else:
            cells.append(Cell(kind, text, number))
    return [cell for cell in cells if cell.kind != "end" and cell.text.strip()]


def _definitions(source: str, names: set[str]) -> str:
    """Return the statements of a program that define some names, each with the prose above it."""
    lines = source.splitlines()
    end, taken = 0, []
    for node in ast.parse(source).body:
        if names & _defined(node):
            taken.append("\n".join(lines[end : node.end_lineno]))
        end = node.end_lineno or end
    # The code between a function and the next piece may be left out, so two empty lines follow each function.
    return re.sub(r"(\n +[^\n]+)\n\n(?=\S)", r"\1\n\n\n", "\n".join(taken))


def _defined(node: ast.stmt) -> set[str]:
    """Return the names that a statement of a program defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
