"""The place where an op was called: stored as (code object, instruction), resolved only on request.

Recording must cost a fraction of a microsecond, so a node stores only the code object and the byte
offset of the user's instruction. File, line, source text, the assigned variable and the text of the
operands are derived later from Python's position tables and the parsed source.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from functools import lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import ast

PACKAGE = os.path.realpath(__file__).removesuffix(f"base{os.sep}provenance.py")
# Models and training loops that ship with the package count as user code.
AS_USER = ("models", "train", "tasks", "cli")
# Lessons and exercises are programs, not modules.
_PROGRAMS = (f"lessons{os.sep}programs", f"lessons{os.sep}starters")
_AS_USER = tuple(PACKAGE + folder + os.sep for folder in (*AS_USER, *_PROGRAMS))

_LOOPS = PACKAGE + "train" + os.sep

# Libraries that call the engine on the user's behalf, e.g. np.full and scipy.stats: their lines don't help a user.
_LIBRARIES = tuple(
    f"{os.sep}{folder}{os.sep}{name}{os.sep}"
    for folder in ("site-packages", "dist-packages")
    for name in ("numpy", "scipy", "einops", "matplotlib", "pandas", "array_api_compat", "torch")
)


class _Internal(dict[str, bool]):
    """Filename -> whether it is the engine's or a library's; the search for the user's line skips such frames.

    Filenames are few and Python caches their hashes, so this look-up makes walking the stack cheap.
    """

    def __missing__(self, filename: str) -> bool:
        ours = filename.startswith(PACKAGE) and not filename.startswith(_AS_USER)
        known = self[filename] = ours or any(library in filename for library in _LIBRARIES)
        return known


INTERNAL = _Internal()


def is_internal(filename: str) -> bool:
    """Tell whether a file is part of the engine."""
    return INTERNAL[filename]


def user_frame(depth: int = 1) -> FrameType:
    """Return the innermost frame outside the engine, looking up from `depth` frames above the caller."""
    frame = inner = sys._getframe(depth + 1)
    try:
        while INTERNAL[frame.f_code.co_filename]:
            frame = frame.f_back  # type: ignore[assignment]  # None ends the loop by an error: to ask costs more
    except AttributeError:  # no user: a thread whose outermost function is the engine's
        frame = inner
        while frame.f_back is not None:
            frame = frame.f_back
    return frame


def stack_level() -> int:
    """Return the `stacklevel` with which a warning names the user's line; inside our training loops, their call."""
    level = 1
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
        level += 1
    return level


def _is_ours(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return is_internal(file) or file.startswith(_LOOPS)


def caller() -> Place:
    """Return the place in the user's code that is being executed; inside our training loops, their call."""
    innermost = user_frame(2)
    frame: FrameType | None = innermost
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    found = frame or innermost
    return resolve(found.f_code, found.f_lasti)


def here(depth: int = 1) -> Place:
    """Return the place in the user's code that is being executed."""
    frame = user_frame(depth + 1)
    return resolve(frame.f_code, frame.f_lasti)


class Place(NamedTuple):
    """A place in the user's source.

    `variable` is the name that the result was assigned to, if the statement is a plain assignment; `operands`
    are the source texts of the op's operands, in order, if they can be read. `call` is the name of the function or
    method that was called; empty for an operator, or a method of `self`.
    """

    file: str
    line: int
    source: str
    function: str
    variable: str | None
    operands: tuple[str, ...]
    call: str = ""

    def __str__(self) -> str:
        return f"{shorten(self.file)}:{self.line}"

    def quoted(self) -> str:
        """Return the place with its source in brackets, if the source is readable."""
        return f"{self} ({self.source})" if self.source else str(self)


def shorten(path: str) -> str:
    """Return the path relative to the working directory if it is inside; for a notebook cell, its name."""
    if cell := _cell(path):
        return cell
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive on Windows
        return path
    return path if relative.startswith("..") else relative


def _cell(path: str) -> str | None:
    """Return "cell In[7]" for the file name of a compiled notebook cell, and None for any other file."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = named(path) if named is not None else None
    return f"{found[0].lower()} {found[1]}" if found else None


class Exits:
    """The last places where a value left the tape, for the message that a gradient has no path.

    Noted by methods that take values out of a tracked tensor (`item`, `detach`, `tolist`), never by ops.
    """

    def __init__(self) -> None:
        self._last: deque[tuple[str, CodeType, int]] = deque(maxlen=4)

    def note(self, call: str) -> None:
        """Record that the user's current line took values out with `call`."""
        frame = sys._getframe(2)  # a tensor's method calls this
        if INTERNAL[frame.f_code.co_filename]:
            frame = user_frame(2)
        self._last.append((call, frame.f_code, frame.f_lasti))

    def last(self) -> tuple[str, Place] | None:
        """Return the latest exit: the call and its place."""
        if not self._last:
            return None
        call, code, lasti = self._last[-1]
        return call, resolve(code, lasti)


EXITS = Exits()


@lru_cache(maxsize=4096)
def resolve(code: CodeType, lasti: int) -> Place:
    """Turn a recorded (code object, instruction offset) into a `Place`."""
    import linecache

    line, end_line, column, end_column = _position(code, lasti)
    file = code.co_filename
    source = linecache.getline(file, line).strip()
    variable: str | None = None
    operands: tuple[str, ...] = ()
    call = ""
    if column is not None and end_line is not None and end_column is not None:
        variable, operands, call = _names(file, (line, end_line, column, end_column))
    return Place(file, line, source, code.co_name, variable, operands, call)


@lru_cache(maxsize=4096)  # positions are one table for the whole code, which must be read from its beginning
def _position(code: CodeType, lasti: int) -> tuple[int, int | None, int | None, int | None]:
    wanted = lasti // 2
    for index, (line, end_line, column, end_column) in enumerate(code.co_positions()):
        if index == wanted:
            return line or code.co_firstlineno, end_line, column, end_column
    return code.co_firstlineno, None, None, None


Span = tuple[str, int, int | None, int | None, int | None]
"""The name of a file, and of an expression in it the first and the last line, and the first and the last column."""


def span_of(code: CodeType, lasti: int) -> Span:
    """Return where the expression of a recorded place stands."""
    return (shorten(code.co_filename), *_position(code, lasti))


def tree_of(file: str) -> ast.Module | None:
    """Return the parsed source of a file, kept from call to call; None where there is none."""
    import linecache

    return _tree(file, len(linecache.getlines(file)))


@lru_cache(maxsize=64)
def _tree(file: str, _stamp: int) -> ast.Module | None:
    import ast
    import linecache

    lines = linecache.getlines(file)
    try:
        return ast.parse("".join(lines)) if lines else None
    except SyntaxError:
        return None


def _names(file: str, span: tuple[int, int, int, int]) -> tuple[str | None, tuple[str, ...], str]:
    """Find the assigned variable, the operand texts and the called name of the expression that covers `span`."""
    import ast
    import linecache

    tree = tree_of(file)
    if tree is None:
        return None, (), ""
    text = "".join(linecache.getlines(file))
    variable: str | None = None
    operands: tuple[str, ...] = ()
    call = ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            covers = _span(node) if isinstance(node, ast.AugAssign) else _span(node.value)
            if covers == span:
                variable = ast.unparse(target)
        if isinstance(node, ast.expr | ast.AugAssign) and _span(node) == span:
            operands = tuple(ast.get_source_segment(text, part) or "" for part in _operand_nodes(node))
            call = _called(node)
    return variable, operands, call


def _called(node: ast.AST) -> str:
    """Return the name of a called function or method; empty for one of `self`, such as a layer called norm."""
    import ast

    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"))):
            return ""
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name
    return ""


@lru_cache(maxsize=4096)
def called(code: CodeType, lasti: int) -> str:
    """Return what the user's expression calls: the name of a function, a method or an attribute, "-" or "[]".

    It is empty where the source cannot be read.
    """
    import ast

    line, end_line, column, end_column = _position(code, lasti)
    tree = tree_of(code.co_filename)
    if tree is None or column is None or end_column is None:
        return ""
    span = (line, end_line, column, end_column)
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and _span(node) == span:
            return _name_called(node)
    return ""


def _name_called(node: ast.expr) -> str:
    import ast

    match node:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Attribute(attr=name) | ast.Call(func=ast.Name(id=name)):
            return name
        case ast.Subscript():
            return "[]"
        case ast.BinOp(op=ast.Sub()):
            return "-"
    return type(node).__name__


def _span(node: ast.expr | ast.stmt) -> tuple[int, int | None, int, int | None]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _operand_nodes(node: ast.AST) -> list[ast.expr]:
    import ast

    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.AugAssign():
            return [node.target, node.value]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.Subscript():
            return [node.value, node.slice]
        case ast.Call(func=ast.Attribute(value=owner)):
            # In `x.matmul(w)` the first name is the operand x; in `gg.matmul(x, w)` it is a module, which
            # the caller drops if there are more names than operands.
            return [owner, *node.args]
        case ast.Call():
            return list(node.args)
    return []


def pytorch() -> Any:
    """Return PyTorch if it is loaded; None if `torch` is another package, such as this one."""
    module = sys.modules.get("torch")
    return module if getattr(module, "__name__", "") == "torch" and hasattr(module, "_C") else None
