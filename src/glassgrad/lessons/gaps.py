"""Detect gaps of an exercise that are still open: `...` as a statement or a value, or source that is unchanged."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from typing import Any

__all__ = ["find", "has_gap", "is_open"]


def has_gap(node: ast.AST) -> bool:
    """Tell whether a piece of program has a gap, `...`; in an index, `...` is NumPy's.

    Example:
        >>> has_gap(ast.parse("y = ...")), has_gap(ast.parse("y = x[..., None]"))
        (True, False)
    """
    if isinstance(node, ast.Subscript):
        return has_gap(node.value)
    if isinstance(node, ast.Constant):
        return node.value is ...
    return any(has_gap(child) for child in ast.iter_child_nodes(node))


def find(name: str, names: dict[str, Any]) -> Any:
    """Return the value of a name, also of a dotted one such as `Class.method`; `...` if there is none."""
    first, *rest = name.split(".")
    thing = names.get(first, ...)
    for part in rest:
        thing = inspect.getattr_static(thing, part, ...)
    return getattr(thing, "__func__", thing)


def is_open(name: str, names: dict[str, Any], given: dict[str, Any]) -> str | None:
    """Tell whether a name of an exercise is still open: as the starter made it, or with gaps left.

    Returns:
        A note: empty if the name is untouched, a sentence if changed code still has a gap; None if it is not open.
    """
    thing = find(name, names)
    if thing is ...:
        return ""
    mine = _parsed(thing)
    if mine is None:
        return None
    starter = _parsed(find(name, given))
    if starter is not None and ast.dump(mine) == ast.dump(starter):
        return ""
    return "There still is a `...` in it." if has_gap(mine) else None


def _parsed(thing: Any) -> ast.AST | None:
    """Return the syntax tree of a function or class; None if it has no source."""
    try:
        if inspect.isclass(thing):
            return _class(thing)
        return ast.parse(textwrap.dedent(inspect.getsource(thing))) if inspect.isfunction(thing) else None
    except (OSError, TypeError, SyntaxError):
        return None


def _class(thing: type) -> ast.AST | None:
    """Return the syntax tree of a class, found through one of its methods: an exercise is not an importable module."""
    methods = [value for value in vars(thing).values() if inspect.isfunction(value)]
    if not methods:
        return None
    code = methods[0].__code__
    tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.lineno <= code.co_firstlineno <= (node.end_lineno or 0)
    ]
    return found[-1] if found else None
