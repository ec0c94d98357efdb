"""Scripts as text: Python files, the code cells of notebooks, and folders of both."""

from __future__ import annotations

import ast
import json
import os
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from glassgrad import errors

SUFFIXES = ".py", ".ipynb"
_LEFT_OUT = frozenset({"__pycache__", "node_modules", "build", "dist", "site-packages", "venv"})
"""Folders that hold no scripts of the user's; folders whose names begin with a dot are left out too."""


@dataclass(frozen=True)
class Script:
    """The text of a script.

    Attributes:
        path: the path as the user gave it.
        text: the source; for a notebook, its code cells one after another.
        tree: its syntax tree.
        cells: for a notebook, (number of the cell, line of `text` where it begins).
    """

    path: str
    text: str
    tree: ast.Module
    cells: tuple[tuple[int, int], ...] = ()

    def place(self, line: int) -> tuple[int, int]:
        """Return the number of the cell that holds a line, 0 outside of notebooks, and the line in it."""
        cell, first = 0, 1
        for number, begins in self.cells:
            if begins <= line:
                cell, first = number, begins
        return cell, line - first + 1


@dataclass(frozen=True)
class Unreadable:
    """A file that cannot be read as a script: the place and the reason."""

    path: str
    line: int
    column: int
    reason: str

    def __str__(self) -> str:
        return errors.LINT_UNREADABLE.text(path=self.path, line=self.line, column=self.column, reason=self.reason)


def files(paths: Iterable[str]) -> Iterator[str]:
    """Yield the scripts and notebooks that are named or lie in the folders named, each once.

    Raises:
        InputError: a path does not exist, or is neither a folder nor a script.
    """
    seen: set[str] = set()
    for path in paths:
        place = Path(path)
        if not place.exists():
            raise errors.LINT_NO_FILE(path=path)
        if place.is_file() and not path.endswith(SUFFIXES):
            raise errors.LINT_NO_SCRIPT(path=path)
        for one in [path] if place.is_file() else sorted(_inside(path)):
            if os.path.realpath(one) not in seen:
                seen.add(os.path.realpath(one))
                yield one


def _inside(folder: str) -> Iterator[str]:
    for root, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in _LEFT_OUT and not one.startswith(".")]
        yield from (str(Path(root) / name) for name in names if name.endswith(SUFFIXES))


def read(path: str) -> Script | Unreadable:
    """Read a script or a notebook."""
    try:
        text, cells = _notebook(path) if path.endswith(".ipynb") else (_decoded(path), ())
    except (OSError, SyntaxError, ValueError, errors.GlassgradError) as error:
        return Unreadable(path, 1, 1, str(error).splitlines()[0] if str(error) else type(error).__name__)
    return parsed(path, text, cells)


def parsed(path: str, text: str, cells: tuple[tuple[int, int], ...] = ()) -> Script | Unreadable:
    """Parse the text of a script."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes and comparisons in the user's text
            return Script(path, text, ast.parse(text), cells)
    except SyntaxError as error:
        cell, line = Script(path, text, ast.Module([], []), cells).place(error.lineno or 1)
        shown = f"{path}:cell {cell}" if cell else path
        return Unreadable(shown, line, error.offset or 1, error.msg)
    except (ValueError, RecursionError) as error:  # a null byte; an expression nested too deeply
        return Unreadable(path, 1, 1, str(error))


def _decoded(path: str) -> str:
    with tokenize.open(path) as file:  # in the encoding that its first lines declare
        return file.read()


def _notebook(path: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the code of a notebook and where its cells begin."""
    held = json.loads(Path(path).read_text(encoding="utf-8"))
    cells_of = held.get("cells") if isinstance(held, dict) else None
    if cells_of is None:
        raise errors.LINT_NO_NOTEBOOK(missing="cells")
    lines: list[str] = []
    cells = []
    for number, cell in enumerate(cells_of, start=1):
        if cell.get("cell_type") == "code":
            cells.append((number, len(lines) + 1))
            text = cell.get("source", "")
            lines += _plain(("".join(text) if isinstance(text, list) else text).splitlines())
    return "\n".join(lines) + "\n", tuple(cells)


def _plain(lines: Sequence[str]) -> list[str]:
    """Replace commands of the notebook, which are not Python, line by line."""
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%") and first.split()[0] not in {"%%time", "%%timeit", "%%capture"}:
        return ["" for _ in lines]
    plain = []
    for line in lines:
        bare = line.lstrip()
        command = bare.startswith(("%", "!", "?")) or bare.rstrip().endswith("?")
        plain.append(f"{line[: len(line) - len(bare)]}pass" if command else line)
    return plain
