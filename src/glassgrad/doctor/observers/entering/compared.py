"""Read in the user's source what an output is compared with, and return its value in the frame."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from types import FrameType

from glassgrad.base import provenance
from glassgrad.doctor import library
from glassgrad.doctor.library import Array, Tensor

_LOSS = re.compile(r"loss|criterion|entropy|bce|mse|accuracy|eq$|score", re.IGNORECASE)
_DEEPEST = 3
_PLAIN = frozenset({"squeeze", "view", "reshape", "flatten", "float", "long", "int", "to", "cpu", "numpy", "double"})
"""Methods that leave the numbers of targets as they are."""


def targets(frame: FrameType | None) -> Iterator[Array]:
    """Yield the values that the result of the line under way is compared with, here or where it is returned to."""
    left = _DEEPEST
    while frame is not None and left:
        if not provenance.is_internal(frame.f_code.co_filename):
            left -= 1
            tree = provenance.tree_of(frame.f_code.co_filename)
            for node in _others(tree, frame) if tree is not None else ():
                value = _value(node, {**frame.f_globals, **frame.f_locals})
                array = library.numbers(value) if hasattr(value, "shape") else None
                if array is not None and array.ndim:
                    yield array
        frame = frame.f_back


def _others(tree: ast.Module, frame: FrameType) -> Iterator[ast.expr]:
    """Yield the expressions beside the result of a line in comparisons and losses of the function around it."""
    line = frame.f_lineno
    around = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    mine = [one for one in around if one.name == frame.f_code.co_name and one.lineno <= line <= (one.end_lineno or 0)]
    nodes = list(ast.walk(mine[-1] if mine else tree))
    names = _names_of(nodes, line)
    for node in nodes:
        pair: list[ast.expr] = []
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            pair = [node.left, node.comparators[0]]
        elif isinstance(node, ast.Call) and len(node.args) >= 2 and _LOSS.search(ast.unparse(node.func)):
            pair = node.args[:2]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            pair = [node.left, node.right]
        for one, other in (pair, pair[::-1]) if pair else ():
            if _holds(one, names, line) and not _is_mapped(one, names, line) and not _holds(other, names, line):
                yield other


def _names_of(nodes: list[ast.AST], line: int) -> set[str]:
    """Return the variables that hold the result of a line, or what later lines make of it."""
    names: set[str] = set()
    assigned = [node for node in nodes if isinstance(node, ast.Assign)]
    for node in sorted(assigned, key=lambda one: one.lineno):
        here = node.lineno <= line <= (node.end_lineno or 0)
        later = node.lineno > line and _holds(node.value, names, line)
        if (here or later) and not _is_mapped(node.value, names, line):
            parts = [one for target in node.targets for one in ast.walk(target)]
            names |= {one.id for one in parts if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return names


def _is_mapped(node: ast.expr, names: set[str], line: int) -> bool:
    """Tell whether an expression gives outputs other numbers: by a table, by arithmetic, or by the user's function."""
    return any(
        (isinstance(one, ast.Subscript) and _holds(one.slice, names, line))
        or (isinstance(one, ast.BinOp) and _holds(one, names, line))
        or (isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and _holds_any(one.args, names, line))
        for one in ast.walk(node)
    )


def _holds_any(nodes: list[ast.expr], names: set[str], line: int) -> bool:
    """Tell whether one of some arguments is a result: by its name, or as the call of a function on a line."""
    inner = [one for node in nodes for one in ast.walk(node)]
    return any(
        (isinstance(one, ast.Name) and one.id in names)
        or (isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.lineno == line)
        for one in inner
    )


def _holds(node: ast.expr, names: set[str], line: int) -> bool:
    """Tell whether an expression uses one of some variables, or is a call on a line itself."""
    return any(
        (isinstance(one, ast.Name) and one.id in names)
        or (isinstance(one, ast.Call) and one.lineno <= line <= (one.end_lineno or 0))
        for one in ast.walk(node)
    )


def _value(node: ast.expr, known: Mapping[str, Tensor]) -> Tensor:
    """Return the value of a name, a part of one, or an attribute; None for what may have effects or is unknown."""
    try:
        if isinstance(node, ast.Name):
            return known.get(node.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PLAIN:
            return _value(node.func.value, known)
        if isinstance(node, ast.Attribute):
            owner = _value(node.value, known)
            return vars(owner).get(node.attr) if hasattr(owner, "__dict__") else None
        if isinstance(node, ast.Subscript):
            owner, place = _value(node.value, known), _place(node.slice, known)
            return None if owner is None or place is None else owner[place]
    except (LookupError, TypeError, ValueError, RuntimeError, AttributeError):
        return None
    return None


def _place(node: ast.expr, known: Mapping[str, Tensor]) -> Tensor:
    if isinstance(node, ast.Slice):
        parts = [None if one is None else _place(one, known) for one in (node.lower, node.upper, node.step)]
        return slice(*parts)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_place(node.operand, known)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        left, right = _place(node.left, known), _place(node.right, known)
        return left + right if isinstance(node.op, ast.Add) else left * right
    if isinstance(node, ast.Tuple):
        return tuple(_place(one, known) for one in node.elts)
    return _value(node, known)
