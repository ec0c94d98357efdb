"""The text of a program: its syntax tree, its names with their lines, and its run."""

from __future__ import annotations

import ast
import linecache
import sys
import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import ModuleType

from glassgrad.base import provenance
from glassgrad.compile.source.statements import called_name, loop_of, statement_of
from glassgrad.engine.mode import MODE
from glassgrad.engine.tensor import Tensor
from glassgrad.errors.tracebacks import shortened
from glassgrad.explanation.recording import Recorder
from glassgrad.lessons.program import execute

RESULT = "_result"
"""The name that holds the value of an expression in the last line."""
_MOST_FRAMES = 20  # of a traceback; that of an endless recursion is long

Data = dict[str, object]


class Caught(AbstractContextManager["Caught"]):
    """Catches whatever a block raises: a program may raise anything, SystemExit too."""

    error: BaseException | None = None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        self.error = error
        return error is not None


@dataclass
class Program:
    """A program, and what its run left.

    Attributes:
        file: the name under which Python knows its lines.
        lines: the line of the last assignment to each name.
        shown: whether the last line is an expression, whose value is `RESULT`.
        error: why the text is no program, or what it raised; None if it came to its end.
        names: the variables; none before it runs.
        recorder: the ops.
        root: the number that is differentiated.
    """

    text: str
    file: str
    tree: ast.Module
    lines: dict[str, int]
    shown: bool
    error: BaseException | None
    names: dict[str, object] = field(default_factory=dict)
    recorder: Recorder = field(default_factory=Recorder)
    root: Tensor | None = None


def read(text: str, file: str) -> Program:
    """Parse a text."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    tree, caught = ast.Module([], []), Caught()
    with caught:
        tree = _parsed(text, file)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        target = ast.copy_location(ast.Name(RESULT, ast.Store()), last.value)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    stores = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    lines = {node.id: node.lineno for node in sorted(stores, key=lambda node: node.lineno)}
    return Program(text, file, tree, lines, isinstance(last, ast.Expr), caught.error)


def _parsed(text: str, file: str) -> ast.Module:
    """Parse a text; Python names no line of a null byte, and before 3.11.4 calls it another error."""
    before, null, _ = text.partition("\0")
    if null:
        line = before.count("\n") + 1
        place = file, line, len(before) - before.rfind("\n"), None
        raise SyntaxError("source code cannot contain null bytes", place)
    return ast.parse(text, file)


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


def run(program: Program) -> None:
    """Run a program and record its ops; what it raises is then in `program.error`.

    It runs as a script does, in a module of its own that is `__main__` meanwhile.
    """
    if program.error is not None:
        return
    module = ModuleType("__main__")
    module.__file__ = program.file
    program.names = vars(module)
    before, mode = sys.modules["__main__"], MODE.saved()
    sys.modules["__main__"] = module
    program.recorder.file = program.file
    # Python calls code equal that differs in the name of its file alone: the places of the run before would be found.
    for known in (provenance.resolve, provenance.called, statement_of, called_name, loop_of):
        known.cache_clear()
    caught = Caught()
    try:
        with caught, program.recorder:
            execute(compile(program.tree, program.file, "exec"), program.names)
    finally:
        sys.modules["__main__"] = before
        MODE.restore(mode)
        program.recorder.close()
    program.error = caught.error
    if program.error is None or isinstance(program.error, SystemExit):
        program.root = result_of(program.names)


def result_of(names: Mapping[str, object]) -> Tensor | None:
    """Return the number that is differentiated: the last line's value, else `loss`, else the youngest number."""
    chosen = [one for name in (RESULT, "loss") if (one := _number(names.get(name))) is not None]
    others = [one for value in names.values() if (one := _number(value)) is not None]
    return chosen[0] if chosen else max(others, key=lambda one: 0 if one.node is None else one.node.seq, default=None)


def _number(value: object) -> Tensor | None:
    return value if isinstance(value, Tensor) and value.numel() == 1 and value.node is not None else None


def error_data(error: BaseException, program: Program) -> Data:
    """Return an error with the user's line, the column of its expression, and the traceback from the user's code on."""
    line = column = trace = None
    message = str(error)
    if isinstance(error, SyntaxError) and error.filename == program.file:
        line, message = error.lineno, error.msg
        column = None if error.offset is None else max(error.offset - 1, 0)
    else:
        frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == program.file]
        if frames:
            line, column = frames[-1].lineno or 1, frames[-1].colno
            text = "".join(linecache.getlines(program.file)[line - 1 : line])
            column = len(text.encode()[:column].decode(errors="replace"))  # Python counts bytes
        trace = shortened(error) if isinstance(error, Exception) else error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != program.file:
            trace = trace.tb_next
    told = "".join(traceback.format_exception(type(error), error, trace, limit=-_MOST_FRAMES))
    kind = type(error).__name__
    return {"event": "error", "line": line, "column": column, "kind": kind, "message": message, "traceback": told}
