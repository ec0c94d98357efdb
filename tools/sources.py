"""The Python files of the repository, each parsed once for all checks of the source.

Two million nodes are too many to keep, so a syntax tree is dropped once its imports, functions and calls are known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OPENING = frozenset({"open", "fdopen", "read_text", "write_text", "TextIOWrapper", "NamedTemporaryFile"})
_OPENING = re.compile(rf"\b(?:{'|'.join(sorted(OPENING))})\s*\(")
_NAMED = re.compile(r"""["']glassgrad\.""")
_MODULE = re.compile(r"glassgrad\.([a-z_]+(?:\.[a-z_]+)*)")
_COMMENT_OR_STRING = re.compile(
    r'''(?s:"""(?:\\.|[^\\])*?""")|(?s:\'\'\'(?:\\.|[^\\])*?\'\'\')'''
    r"""|"(?:\\(?s:.)|[^"\\\n])*"|'(?:\\(?s:.)|[^'\\\n])*'|#[^\n]*"""
)


@dataclass(frozen=True)
class Function:
    """A function's name, its first line and its length, without docstring and decorators."""

    name: str
    line: int
    length: int


@dataclass(frozen=True)
class Source:
    """The facts about a source that are kept."""

    functions: list[Function] = field(default_factory=list)
    imports: list[tuple[ast.Import | ast.ImportFrom, str]] = field(default_factory=list)  # with "top" or "lazy"
    modules: list[tuple[str, int]] = field(default_factory=list)  # named in strings, with their lines
    opening: list[tuple[str, ast.Call]] = field(default_factory=list)  # calls that open or write files


def parsed(text: str) -> Source:
    """Return the facts of a source."""
    found = Source()
    tree = ast.parse(text)
    _statements(tree.body, "top", found)
    if _NAMED.search(text) or _OPENING.search(text):  # most files need no walk through their expressions
        for node in ast.walk(tree):
            _expression(node, found)
    return found


@cache
def text_of(file: Path) -> str:
    """Return the text of a file; the first call reads it."""
    return file.read_text(encoding="utf-8")


@cache
def source(file: Path) -> Source:
    """Return the facts of a file; the first call parses it."""
    return parsed(text_of(file))


@cache
def python_files(folder: str) -> list[Path]:
    """Return the Python files below a folder of the tree, in the order of their names."""
    return sorted((ROOT / folder).rglob("*.py"))


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a source, each with its line."""
    line, place = 1, 0
    for found in _COMMENT_OR_STRING.finditer(text):
        if found.group().startswith("#"):
            line, place = line + text.count("\n", place, found.start()), found.start()
            yield line, found.group()


def _statements(children: Iterable[ast.AST], form: str, found: Source) -> None:
    """Note functions, and imports outside of `if TYPE_CHECKING`; expressions contain neither."""
    for node in children:
        if isinstance(node, ast.Import | ast.ImportFrom):
            if form != "types":
                found.imports.append((node, form))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions.append(Function(node.name, node.lineno, _length(node)))
            _statements(node.body, "lazy" if form == "top" else form, found)
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            _statements(node.body, "types", found)
            _statements(node.orelse, form, found)
        elif not isinstance(node, ast.expr):
            _statements(ast.iter_child_nodes(node), form, found)


def _is_type_checking(test: ast.expr) -> bool:
    return (test.id if isinstance(test, ast.Name) else getattr(test, "attr", "")) == "TYPE_CHECKING"


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node, clean=False) is not None:
        length -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    return length


def _expression(node: ast.AST, found: Source) -> None:
    """Note a module that a string names (whole strings only: prose mentions many), and a call that opens a file."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if matched := _MODULE.fullmatch(node.value):
            found.modules.append((matched[1], node.lineno))
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in OPENING:
            found.opening.append((name, node))
