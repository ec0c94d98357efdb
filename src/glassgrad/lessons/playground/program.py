"""The text of a program: its syntax tree with dragged numbers, its names with their lines, and its run."""

from __future__ import annotations

import ast
import linecache
import math
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Self

from glassgrad.base import provenance
from glassgrad.compile.source.statements import called_name, loop_of, statement_of
from glassgrad.engine.mode import MODE
from glassgrad.engine.tensor import Tensor
from glassgrad.errors.tracebacks import shortened
from glassgrad.explanation.recording import Recorder
from glassgrad.lessons.program import execute

RESULT = "_result"
"""The name that holds the value of an expression in the last line."""

Data = dict[str, object]


class Caught:
    """Catches whatever a block raises: a program may raise anything, SystemExit too."""

    error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        self.error = error
        return error is not None


@dataclass
class Program:
    """A program that can be run.

    Attributes:
        file: the name under which Python knows its lines.
        lines: the line of the last assignment to each name.
        shown: whether the last line is an expression, whose value is `RESULT`.
    """

    text: str
    file: str
    tree: ast.Module
    lines: dict[str, int]
    shown: bool


@dataclass
class Ran:
    """What a run left.

    Attributes:
        names: the variables.
        recorder: the ops.
        error: what the program raised; None if it came to its end.
    """

    program: Program
    names: dict[str, object]
    recorder: Recorder
    error: BaseException | None = None
    root: Tensor | None = field(default=None)


def read(text: str, file: str, sliders: Mapping[str, float]) -> Program:
    """Parse a text and put in the numbers of sliders, which are named as LINE:COLUMN.

    Raises:
        SyntaxError: it is no Python.
    """
    lines = text.splitlines(keepends=True)
    linecache.cache[file] = (len(text), None, lines, file)
    tree = ast.parse(text, file)
    for node in _numbers(tree):
        place = f"{node.lineno}:{column_of(lines, node.lineno, node.col_offset)}"
        if place in sliders:
            number = sliders[place]
            node.value = int(number) if isinstance(node.value, int) and number == int(number) else number
    last = tree.body[-1] if tree.body else None
    shown = isinstance(last, ast.Expr)
    if isinstance(last, ast.Expr):
        target = ast.copy_location(ast.Name(RESULT, ast.Store()), last.value)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    return Program(text, file, tree, _assigned(tree), shown)


def column_of(lines: list[str], line: int, offset: int) -> int:
    """Return the column of an offset in bytes."""
    return len(lines[line - 1].encode()[:offset].decode(errors="replace")) if line <= len(lines) else offset


def sliders(text: str) -> list[Data]:
    """Return every number of a text with its place and a range to drag it in; nothing for a text that is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    lines = text.splitlines(keepends=True)
    found: list[Data] = []
    for node in _numbers(tree):
        value = node.value
        assert isinstance(value, int | float)
        if not math.isfinite(value):
            continue
        column = column_of(lines, node.lineno, node.col_offset)
        end = column_of(lines, node.lineno, node.end_col_offset or node.col_offset)
        low, high, step = _range(value)
        place = {"line": node.lineno, "column": column, "end": end}
        found.append({**place, "value": value, "low": low, "high": high, "step": step})
    return found


def _range(value: float) -> tuple[float, float, float]:
    """Return a range around a number of the program: from 0 to its double, in a hundred steps or whole ones."""
    if isinstance(value, int):
        return (0, max(10, 2 * value), 1) if abs(value) < _WHOLE else (0, 2 * value, max(1, value // 50))
    scale = abs(value) or 1.0
    return (0.0 if value else -1.0), 2 * scale if value else 1.0, float(f"{scale / 50:.1g}")


_WHOLE = 1000


def _numbers(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the numbers of a program; those of an f-string have no place of their own."""
    hidden = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) in {int, float} and id(node) not in hidden:
            yield node


def _assigned(tree: ast.Module) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = max(node.lineno, found.get(node.id, 0))
    return found


def rounds_of(tree: ast.Module, line: int, names: Mapping[str, object]) -> int | None:
    """Return how often the loop over a range around a line runs; None outside of one, and in loops of loops."""
    around = [one for one in ast.walk(tree) if isinstance(one, ast.For | ast.While)]
    around = [one for one in around if one.body[0].lineno <= line <= (one.body[-1].end_lineno or line)]
    match around:
        case [ast.For(iter=ast.Call(func=ast.Name("range"), args=args))]:
            given = [one.value if isinstance(one, ast.Constant) else names.get(ast.unparse(one)) for one in args]
            bounds = [one for one in given if isinstance(one, int)]
            return len(range(*bounds)) if len(bounds) == len(args) > 0 else None
    return None


def run(program: Program, recorder: Recorder) -> Ran:
    """Run a program and record its ops; whatever it raises is in the result.

    It runs as a script does, in a module of its own that is `__main__` meanwhile.
    """
    module = ModuleType("__main__")
    module.__file__ = program.file
    names = vars(module)
    before, mode = sys.modules["__main__"], MODE.saved()
    sys.modules["__main__"] = module
    ran = Ran(program, names, recorder)
    recorder.file = program.file
    # Python calls code equal that differs in the name of its file alone: the places of the run before would be found.
    for known in (provenance.resolve, provenance.called, statement_of, called_name, loop_of):
        known.cache_clear()
    caught = Caught()
    try:
        with caught, recorder:
            execute(compile(program.tree, program.file, "exec"), names)
    finally:
        sys.modules["__main__"] = before
        MODE.restore(mode)
        recorder.close()
    ran.error = caught.error
    if ran.error is None or isinstance(ran.error, SystemExit):
        ran.root = result_of(ran)
    return ran


def result_of(ran: Ran) -> Tensor | None:
    """Return the number that is differentiated: the last line's value, else `loss`, else the youngest number."""
    chosen = [one for name in (RESULT, "loss") if (one := _number(ran.names.get(name))) is not None]
    others = [one for value in ran.names.values() if (one := _number(value)) is not None]
    return chosen[0] if chosen else max(others, key=lambda one: 0 if one.node is None else one.node.seq, default=None)


def _number(value: object) -> Tensor | None:
    return value if isinstance(value, Tensor) and value.numel() == 1 and value.node is not None else None


def error_data(error: BaseException, program: Program | None, file: str) -> Data:
    """Return an error with the user's line, the column of its expression, and the traceback from the user's code on."""
    if isinstance(error, SyntaxError) and error.filename == file:
        column = None if error.offset is None else max(error.offset - 1, 0)
        told = "".join(traceback.format_exception_only(error))
        return _error(error, error.lineno, column, error.msg, told)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = frames[-1].lineno if frames else None
    column = frames[-1].colno if frames else None
    if program is not None and line is not None and column is not None:
        column = column_of(program.text.splitlines(keepends=True), line, column)
    trace = shortened(error) if isinstance(error, Exception) else error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != file:
        trace = trace.tb_next
    told = "".join(traceback.format_exception(type(error), error, trace, limit=-_MOST_FRAMES))
    return _error(error, line, column, str(error), told)


_MOST_FRAMES = 20  # of a traceback; that of an endless recursion is long


def _error(error: BaseException, line: int | None, column: int | None, message: str, told: str) -> Data:
    kind = type(error).__name__
    return {"event": "error", "line": line, "column": column, "kind": kind, "message": message, "traceback": told}
