"""What all suspects read: the text of a script and of its parts, and the names of what is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import UnionType
from typing import TypeGuard, TypeVar

from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import Program

N = TypeVar("N")


def text(node: ast.AST | None) -> str:
    """Return an expression or a statement as source; empty for none."""
    return "" if node is None else ast.unparse(node)


def source(program: Program) -> str:
    """Return a script as one text, without comments."""
    found = program.memo.get("source")
    if not isinstance(found, str):
        found = program.memo["source"] = ast.unparse(program.tree)
    return found


def called(program: Program, call: ast.AST) -> str:
    """Return the last name of what is called: "mean" for `torch.mean(x)` and for `x.mean()`; empty for no call."""
    if not isinstance(call, ast.Call):
        return ""
    return last(program.names.full(call.func)) or getattr(call.func, "attr", getattr(call.func, "id", ""))


def operand(program: Program, call: ast.Call) -> ast.expr | None:
    """Return the object of a method, or the first argument of a function of a library."""
    if isinstance(call.func, ast.Attribute) and not program.names.full(call.func):
        return call.func.value
    return call.args[0] if call.args else None


def ident(node: ast.AST | None) -> str:
    """Return the name of a variable, an attribute, or what an index selects from; empty for other expressions."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def names_in(node: ast.AST) -> set[str]:
    """Return the variables in an expression or a statement."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def nodes_in(root: ast.AST, kind: type[N]) -> Iterator[N]:
    """Yield the nodes of a kind in a part of a script."""
    return (one for one in ast.walk(root) if isinstance(one, kind))


def nodes(program: Program, kind: type[N]) -> list[N]:
    """Return the nodes of a kind in a script, in the order of the source."""
    return [one for one in program.nodes if isinstance(one, kind)]


def is_binary(node: object, kinds: type[ast.operator] | UnionType) -> TypeGuard[ast.BinOp]:
    """Tell whether a node is an operation such as a sum: `is_binary(node, ast.Add | ast.Sub)`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, kinds)


def is_negative(node: object) -> TypeGuard[ast.UnaryOp]:
    """Tell whether a node is something with a minus before it."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
