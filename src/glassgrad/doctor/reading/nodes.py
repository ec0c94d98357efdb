"""Small questions about the nodes of a syntax tree, which all rules ask."""

from __future__ import annotations

import ast
from types import UnionType
from typing import TypeGuard, TypeVar

Kind = TypeVar("Kind", bound=ast.AST)


# --- what a node is ---


def is_op(node: object, kind: type[ast.operator] | UnionType) -> TypeGuard[ast.BinOp]:
    """Tell whether a node is an operation of a kind, such as `ast.Add`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, kind)


def is_negative(node: object) -> TypeGuard[ast.UnaryOp]:
    """Tell whether a node is something with a minus before it."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def compares(node: object, kind: type[ast.cmpop] | UnionType) -> TypeGuard[ast.Compare]:
    """Tell whether a node is a comparison of a kind, such as `ast.Eq`."""
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], kind)


def is_name(node: object, name: str) -> TypeGuard[ast.Name]:
    """Tell whether a node is a variable of a name."""
    return isinstance(node, ast.Name) and node.id == name


def of_self(node: object) -> TypeGuard[ast.Attribute]:
    """Tell whether a node is an attribute of `self`."""
    return isinstance(node, ast.Attribute) and is_name(node.value, "self")


# --- names ---


def ident(node: object) -> str:
    """Return the name of a variable or an attribute; empty for other nodes."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def callee_of(node: object) -> str:
    """Return the name of the function or method that a node calls; empty for no call."""
    return ident(node.func) if isinstance(node, ast.Call) else ""


def method_of(node: object) -> str:
    """Return the name behind the dot of a call: "mean" for `x.mean()`, "exp" for `torch.exp(x)`; empty for others."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def object_of(node: object) -> ast.expr | None:
    """Return what stands before the dot of a call: x of `x.mean()`; None for others."""
    return node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None


def names_in(*nodes: ast.AST) -> set[str]:
    """Return the variables in some expressions or statements."""
    return {one.id for node in nodes for one in within(node, ast.Name)}


def reads_in(*nodes: ast.AST) -> set[str]:
    """Return the variables that some expressions or statements read."""
    return {one.id for node in nodes for one in within(node, ast.Name) if isinstance(one.ctx, ast.Load)}


def mentions(node: ast.AST, name: str) -> bool:
    """Tell whether an expression uses a variable."""
    return name in names_in(node)


# --- parts of a node ---


def within(node: ast.AST | None, kind: type[Kind]) -> list[Kind]:
    """Return the nodes of a kind in a node, itself among them; nothing for None."""
    return [] if node is None else [one for one in ast.walk(node) if isinstance(one, kind)]


def holds(outer: ast.AST, inner: ast.AST) -> bool:
    """Tell whether a node is another one or a part of it."""
    return any(one is inner for one in ast.walk(outer))


def has_attribute(node: ast.AST, *names: str) -> bool:
    """Tell whether an attribute or a method of one of these names stands in a node."""
    return any(one.attr in names for one in within(node, ast.Attribute))


def both_ways(node: ast.BinOp | ast.Compare) -> tuple[tuple[ast.expr, ast.expr], tuple[ast.expr, ast.expr]]:
    """Return both orders of the two operands of an operation or a comparison."""
    left, right = node.left, node.right if isinstance(node, ast.BinOp) else node.comparators[0]
    return (left, right), (right, left)


def factors_of(node: ast.expr, kind: type[ast.operator] | UnionType = ast.Mult) -> list[ast.expr]:
    """Return the operands of nested operations of a kind, from left to right: the factors of a product."""
    return [*factors_of(node.left, kind), *factors_of(node.right, kind)] if is_op(node, kind) else [node]


def arguments(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call, the positional ones first."""
    return [*call.args, *(one.value for one in call.keywords)]


def elements(node: ast.AST | None) -> list[ast.expr]:
    """Return the elements of a tuple or a list that is written out; nothing for others."""
    return node.elts if isinstance(node, ast.Tuple | ast.List) else []


def indices(node: ast.Subscript) -> list[ast.expr]:
    """Return the indices in the brackets of `x[...]`, one for each axis."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def unindexed(node: ast.expr) -> ast.expr:
    """Return x of `x[0][:, 1]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def root_of(node: ast.expr) -> ast.expr:
    """Return x of `x.mean(0)[1].y`."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def without(node: ast.expr, *methods: str) -> ast.expr:
    """Return x of `x.view(-1).float()`: an expression without the calls of these methods around it."""
    while method_of(node) in methods and (inner := object_of(node)) is not None:
        node = inner
    return node


# --- assignments ---


def target_of(node: ast.AST | None) -> ast.expr | None:
    """Return the first target of an assignment; None for other nodes."""
    return node.targets[0] if isinstance(node, ast.Assign) else None


def only_target(node: ast.AST | None) -> ast.expr | None:
    """Return what an assignment with one target sets; None for other nodes."""
    return node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None


def set_by(node: ast.AST | None) -> set[str]:
    """Return the text of each target of an assignment; nothing for other nodes."""
    return {ast.unparse(one) for one in node.targets} if isinstance(node, ast.Assign) else set()


def target_text(node: ast.AST | None) -> str:
    """Return the text of the first target of an assignment; empty for other nodes."""
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
