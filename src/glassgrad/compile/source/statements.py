"""The user's statements behind instructions: their text, and the names that they assign to."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from glassgrad.base import provenance
from glassgrad.compile.front.origin import Origin
from glassgrad.compile.source.naming.names import without_numbers

# Prefix of the names of files that are generated from another library's modules, with one line per op.
WRITTEN = "<torch module"
Span = tuple[int, int | None, int | None, int | None]


@dataclass(frozen=True)
class Statement:
    """One statement of the user.

    Attributes:
        file, line: its beginning.
        text: its source on one line, without a comment.
        targets: the names that it assigns to; () if none.
        returns: whether it is a return.
        calls: whether it assigns the result of a call.
        spans: the places in the file of the expression that gives the value: the whole of it, then the objects whose
            methods and attributes it takes, for methods that compute nothing.
    """

    file: str
    line: int
    text: str
    targets: tuple[str, ...] = ()
    returns: bool = False
    calls: bool = False
    spans: tuple[Span, ...] = ()

    @property
    def unnumbered(self) -> object:
        """The key for comparing statements; in a generated file, without the numbers of layers."""
        return without_numbers(self.text) if self.file.startswith(WRITTEN) else self

    @property
    def place(self) -> str:
        return f"{provenance.shorten(self.file)}:{self.line}"


_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr, ast.Assert)


@lru_cache(maxsize=4096)
def statement_of(code: CodeType, lasti: int) -> Statement:
    """Return the innermost statement that an instruction belongs to; without source, just its line."""
    line, _, column, _ = provenance._position(code, lasti)
    found = [node for node in _by_line(code.co_filename).get(line, ()) if _covers(node, line, column)]
    if not found:
        return Statement(code.co_filename, line, linecache.getline(code.co_filename, line).strip())
    node = max(found, key=lambda one: (one.lineno, one.col_offset))
    return Statement(
        code.co_filename,
        node.lineno,
        _text(code.co_filename, node),
        _targets(node),
        isinstance(node, ast.Return),
        isinstance(getattr(node, "value", None), ast.Call),
        tuple(_spans(node)),
    )


def span_of(code: CodeType, lasti: int) -> Span:
    """Return the span of an instruction's expression in its file."""
    return provenance._position(code, lasti)


@lru_cache(maxsize=4096)
def called_name(code: CodeType, lasti: int) -> str | None:
    """Return the name of the function, method or layer whose call in the user's source an instruction belongs to."""
    node = _expressions(code.co_filename).get(span_of(code, lasti))
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
        case ast.Call(func=ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name
    return None


def unnumbered(code: CodeType, lasti: int) -> object:
    """Return the place of an instruction; in a generated file, its statement without numbers."""
    written = code.co_filename.startswith(WRITTEN)
    return statement_of(code, lasti).unnumbered if written else (code, span_of(code, lasti))


def place_of(where: Origin) -> tuple[object, object]:
    """Return where an instruction stands in the user's source and in the library, the same in every turn of a loop."""
    # Spans, not offsets: Python's specialised instructions report another offset for the same place.
    inner = None if where.inner is None else (where.inner[0], span_of(*where.inner))
    return unnumbered(where.code, where.lasti), inner


@lru_cache(maxsize=4096)
def loop_of(code: CodeType, lasti: int) -> tuple[str, str | None] | None:
    """Return the first line of the loop around an instruction, and its variable if it counts up from 0."""
    line = span_of(code, lasti)[0]
    around = [loop for loop in _loops(code.co_filename) if _within(loop, line)]
    around = [loop for loop in around if loop.lineno >= code.co_firstlineno]
    if not around:
        return None
    loop = max(around, key=lambda one: one.lineno)
    if isinstance(loop, ast.While):
        return f"while {ast.unparse(loop.test)}:", None
    counts = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "range" and len(loop.iter.args) == 1
    variable = loop.target.id if counts and isinstance(loop.target, ast.Name) else None
    return f"for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}:", variable


def _within(loop: ast.For | ast.While, line: int) -> bool:
    return loop.body[0].lineno <= line <= (loop.body[-1].end_lineno or line)


def _spans(node: Any) -> Iterator[Span]:
    if isinstance(node, ast.AugAssign):
        yield _span(node)
        return
    part = getattr(node, "value", None)
    while isinstance(part, ast.expr):
        yield _span(part)
        match part:
            case ast.Call(func=ast.Attribute(value=owner)) | ast.Attribute(value=owner) | ast.Subscript(value=owner):
                part = owner
            case _:
                return


def _span(node: ast.expr | ast.stmt) -> Span:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _text(file: str, node: ast.stmt) -> str:
    """Return a statement as the user typed it, on one line."""
    segment = ast.get_source_segment("".join(linecache.getlines(file)), node)
    return " ".join((segment or ast.unparse(node)).split())


@lru_cache(maxsize=64)
def _nodes(file: str) -> list[ast.AST]:
    try:
        return list(ast.walk(ast.parse("".join(linecache.getlines(file)))))
    except SyntaxError:
        return []


@lru_cache(maxsize=64)
def _expressions(file: str) -> dict[Span, ast.expr]:
    return {_span(node): node for node in _nodes(file) if isinstance(node, ast.expr)}


@lru_cache(maxsize=64)
def _loops(file: str) -> list[ast.For | ast.While]:
    return [node for node in _nodes(file) if isinstance(node, ast.For | ast.While)]


@lru_cache(maxsize=64)
def _by_line(file: str) -> dict[int, list[ast.stmt]]:
    table: dict[int, list[ast.stmt]] = {}
    for node in _nodes(file):
        if isinstance(node, _SIMPLE):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                table.setdefault(line, []).append(node)
    return table


def _covers(node: ast.stmt, line: int, column: int | None) -> bool:
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return column is None or (start <= (line, column) and (end[0] is None or (line, column) <= end))


def _targets(node: Any) -> tuple[str, ...]:
    match node:
        case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return _names(target)
    return ()


def _names(target: ast.expr) -> tuple[str, ...]:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return (name,)
        case ast.Subscript(value=value):
            return _names(value)
        case ast.Starred(value=value):
            return _names(value)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return tuple(name for part in parts for name in _names(part))
    return ()
