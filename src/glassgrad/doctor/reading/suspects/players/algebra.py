"""Split formulas as they are written: signed terms, factors, and the word by which a reader knows each part."""

from __future__ import annotations

import ast
import re

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import both_ways, factors_of, ident, is_negative, is_op
from glassgrad.doctor.reading.program import Program, constant, number
from glassgrad.doctor.reading.suspects.lookup import sides_of

GAMMA = re.compile(r"gamma|discount", re.IGNORECASE)
REWARD = re.compile(r"(^|_)(r|rs|rews?|rewards?)(_|s|\d|$)", re.IGNORECASE)
"""Names of the discount, and of rewards."""
_REDUCING = named("mean sum nanmean")
_KEEPING = _REDUCING | named(
    "detach squeeze unsqueeze view reshape flatten clone to float double long int item cpu cuda numpy tensor as_tensor "
    "from_numpy expand expand_as contiguous repeat t transpose FloatTensor Tensor array stack cat bool clamp pow square"
)


def core(program: Program, node: ast.expr) -> ast.expr:
    """Return an expression without the casts, shapes, indices, means and signs around it."""
    while True:
        inner: ast.expr | None = None
        if isinstance(node, ast.Subscript | ast.Starred):
            inner = node.value
        elif isinstance(node, ast.UnaryOp):
            inner = node.operand
        elif isinstance(node, ast.Call) and program.called(node) in _KEEPING:
            inner = program.operand(node)
        if inner is None:
            return node
        node = inner


def word(program: Program, node: ast.expr | None) -> str:
    """Return the name of a part of a formula: of a variable, an attribute, a key, or the called function; else none."""
    if isinstance(node, ast.Subscript) and isinstance(key := constant(node.slice), str):
        return key
    if node is None:
        return ""
    inner = core(program, node)
    inner = inner.func if isinstance(inner, ast.Call) else inner
    return ident(inner)


def signed(program: Program, node: ast.expr, sign: int = 1) -> list[tuple[int, ast.expr]]:
    """Return the terms of a sum with their signs, through means, quotients and numeric factors."""
    if sides := sides_of(node):
        return [one for turn, side in sides for one in signed(program, side, sign * turn)]
    if is_op(node, ast.Mult):
        for side, other in both_ways(node):
            value = number(side)
            if value is not None:
                return signed(program, other, -sign if value < 0 else sign)
        return [(sign * sign_of(node), node)]
    if is_op(node, ast.Div) and isinstance(node.left, ast.BinOp | ast.UnaryOp):
        return signed(program, node.left, sign)
    if isinstance(node, ast.Call) and program.called(node) in _REDUCING:
        inner = program.operand(node)
        if inner is not None:
            return signed(program, inner, sign)
    return [(sign, node)]


def sign_of(node: ast.expr) -> int:
    """Return -1 for a product with an odd number of minus signs."""
    negative = [one for one in factors_of(node) if is_negative(one)]
    return -1 if len(negative) % 2 else 1


def stands_for(program: Program, node: ast.expr) -> ast.expr:
    """Return the expression that a variable stands for; any other expression itself."""
    value = program.value_of(node)
    return node if value is None else value
