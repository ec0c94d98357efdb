"""Parts of a script by their kind: nodes, operations, assignments, and what stands in what."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from types import UnionType
from typing import TypeGuard, TypeVar

from glassgrad.doctor.reading.program import Class, Function, Program
from glassgrad.doctor.reading.suspects.spelling import callee, ident, text

N = TypeVar("N")
Named = tuple[str, ast.expr, ast.stmt]


def nodes_in(root: ast.AST, kind: type[N]) -> Iterator[N]:
    """Yield the nodes of a kind in a part of a script."""
    return (one for one in ast.walk(root) if isinstance(one, kind))


def nodes(program: Program, kind: type[N] | UnionType) -> list[N]:
    """Return the nodes of a kind in a script, in the order of the source."""
    return [one for one in program.nodes if isinstance(one, kind)]


def is_binary(node: object, kinds: type[ast.operator] | UnionType) -> TypeGuard[ast.BinOp]:
    """Tell whether a node is an operation such as a sum: `is_binary(node, ast.Add | ast.Sub)`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, kinds)


def flat(node: ast.expr, kinds: type[ast.operator] | UnionType) -> list[ast.expr]:
    """Return the operands of operations of some kinds within one another: a, b and c of `a + (b + c)`."""
    return [*flat(node.left, kinds), *flat(node.right, kinds)] if is_binary(node, kinds) else [node]


def is_negative(node: object) -> TypeGuard[ast.UnaryOp]:
    """Tell whether a node is something with a minus before it."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def sides_of(node: ast.AST | None) -> list[tuple[int, ast.expr]]:
    """Return a and b of `a + b` and `a - b`, and a of `-a`, each with its sign; nothing for other expressions."""
    if is_negative(node):
        return [(-1, node.operand)]
    if is_binary(node, ast.Add | ast.Sub):
        return [(1, node.left), (1 if isinstance(node.op, ast.Add) else -1, node.right)]
    return []


def has_call(node: ast.AST, *names: str) -> bool:
    """Tell whether a part of the script calls a function or method of one of these names."""
    return any(callee(one) in names for one in nodes_in(node, ast.Call))


def is_within(program: Program, node: ast.AST, outer: ast.AST) -> bool:
    """Tell whether a node stands in another one."""
    return any(one is outer for one in program.outward(node))


def named_values(program: Program) -> list[Named]:
    """Return each assigned name with its value and statement; a returned value has the name of its function."""
    found = program.memo.get("named values")
    if not isinstance(found, list):
        found = program.memo["named values"] = list(_named_values(program))
    return found


def _named_values(program: Program) -> Iterator[Named]:
    for node in program.nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value, node)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _pairs(node.target, node.value, node)
        elif isinstance(node, ast.Return) and node.value is not None:
            function = program.function(node)
            yield (function.name if function is not None else ""), node.value, node


def _pairs(target: ast.expr, value: ast.expr, statement: ast.stmt) -> Iterator[Named]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, part in zip(target.elts, value.elts, strict=True):
            yield from _pairs(one, part, statement)
    elif isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
        yield ident(target), value, statement


@functools.lru_cache(maxsize=64)  # a dozen suspects walk the same functions: without it a long script takes minutes
def assigned(root: ast.AST) -> tuple[tuple[ast.expr, ast.expr, ast.Assign], ...]:
    """Return the targets of assignments with their values, paired within tuples, and the statements."""
    found: list[tuple[ast.expr, ast.expr, ast.Assign]] = []
    for node in nodes_in(root, ast.Assign):
        for target in node.targets:
            parts = target.elts if isinstance(target, ast.Tuple) else []
            values = node.value.elts if isinstance(node.value, ast.Tuple) else []
            paired = zip(parts, values, strict=True) if parts and len(parts) == len(values) else [(target, node.value)]
            found += [(one, value, node) for one, value in paired]
    return tuple(found)


def assignments(program: Program) -> tuple[tuple[ast.expr, ast.expr, ast.Assign], ...]:
    """Return the targets of all assignments of a script with their values and statements."""
    return assigned(program.tree)


def targets_of(program: Program, node: ast.AST) -> str:
    """Return the text of what the statement around a node assigns to."""
    statement = program.statement(node)
    return ", ".join(text(one) for one in statement.targets) if isinstance(statement, ast.Assign) else ""


def calls_of(*names: str) -> Callable[[Program], list[ast.Call]]:
    """Return a function that finds the calls of some functions by name, and of methods by name after a dot."""
    return lambda program: [call for name in names for call in program.calls_of(name)]


def functions(program: Program) -> list[Function]:
    """Return the functions of a script, the last one of each name."""
    return list(program.functions.values())


def classes(program: Program) -> list[Class]:
    """Return the classes of a script."""
    return list(program.classes.values())
