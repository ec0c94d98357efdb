"""Split formulas as they are written: signed terms, factors, and the word by which a reader knows each part."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.program import FUNCTIONS, Program, number
from glassgrad.doctor.reading.suspects.spelling import called, is_binary, is_negative, operand, text

GAMMA = re.compile(r"gamma|discount", re.IGNORECASE)
REWARD = re.compile(r"(^|_)(r|rs|rews?|rewards?)(_|s|\d|$)", re.IGNORECASE)
"""Names of the discount, and of rewards."""
_REDUCING = named("mean sum nanmean")
_KEEPING = _REDUCING | named(
    "detach squeeze unsqueeze view reshape flatten clone to float double long int item cpu cuda numpy tensor as_tensor "
    "from_numpy expand expand_as contiguous repeat t transpose FloatTensor Tensor array stack cat bool clamp pow square"
)
Named = tuple[str, ast.expr, ast.stmt]


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
        while isinstance(target, ast.Subscript):
            target = target.value
        yield getattr(target, "attr", getattr(target, "id", "")), value, statement


def bare(program: Program, node: ast.expr) -> ast.expr:
    """Return an expression without the casts, shapes, indices, means and signs around it."""
    while True:
        inner: ast.expr | None = None
        if isinstance(node, ast.Subscript | ast.Starred):
            inner = node.value
        elif isinstance(node, ast.UnaryOp):
            inner = node.operand
        elif isinstance(node, ast.Call) and called(program, node) in _KEEPING:
            inner = operand(program, node)
        if inner is None:
            return node
        node = inner


def word(program: Program, node: ast.expr | None) -> str:
    """Return the name of a part of a formula: of a variable, an attribute, or the called function; empty for others."""
    if node is None:
        return ""
    inner = bare(program, node)
    inner = inner.func if isinstance(inner, ast.Call) else inner
    return getattr(inner, "attr", getattr(inner, "id", ""))


def signed(program: Program, node: ast.expr, sign: int = 1) -> list[tuple[int, ast.expr]]:
    """Return the terms of a sum with their signs, through means, quotients and numeric factors."""
    if is_negative(node):
        return signed(program, node.operand, -sign)
    if is_binary(node, ast.Add | ast.Sub):
        behind = -sign if isinstance(node.op, ast.Sub) else sign
        return [*signed(program, node.left, sign), *signed(program, node.right, behind)]
    if is_binary(node, ast.Mult):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            value = number(side)
            if value is not None:
                return signed(program, other, -sign if value < 0 else sign)
        return [(sign * sign_of(node), node)]
    if is_binary(node, ast.Div) and isinstance(node.left, ast.BinOp | ast.UnaryOp):
        return signed(program, node.left, sign)
    if isinstance(node, ast.Call) and called(program, node) in _REDUCING:
        inner = operand(program, node)
        if inner is not None:
            return signed(program, inner, sign)
    return [(sign, node)]


def sign_of(node: ast.expr) -> int:
    """Return -1 for a product with an odd number of minus signs."""
    negative = [one for one in factors(node) if is_negative(one)]
    return -1 if len(negative) % 2 else 1


def factors(node: ast.expr) -> list[ast.expr]:
    """Return the factors of a product."""
    if is_binary(node, ast.Mult):
        return [*factors(node.left), *factors(node.right)]
    return [node]


def held(program: Program, node: ast.expr) -> ast.expr:
    """Return the expression that a variable stands for; any other expression itself."""
    value = program.value_of(node) if isinstance(node, ast.Name) else None
    return node if value is None else value


def around(program: Program, node: ast.AST) -> str:
    """Return the source of the function around a node; of the whole script if there is none."""
    outer = program.function(node) or program.tree
    known = program.memo.setdefault("texts", {})
    assert isinstance(known, dict)
    if outer not in known:
        known[outer] = text(outer)
    return str(known[outer])


def mentions_any(program: Program, pattern: re.Pattern[str]) -> bool:
    """Tell whether a name, an attribute, a parameter or a function of the script matches."""
    known = program.memo.get("all names")
    if not isinstance(known, frozenset):
        known = program.memo["all names"] = frozenset(_all_names(program))
    return any(pattern.search(one) for one in known)


def _all_names(program: Program) -> Iterator[str]:
    for node in program.nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node.name


def words_in(node: ast.AST) -> list[str]:
    """Return the names and attributes in an expression."""
    found = (getattr(one, "id", None) or getattr(one, "attr", None) for one in ast.walk(node))
    return [one for one in found if isinstance(one, str)]
