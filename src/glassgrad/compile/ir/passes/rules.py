"""The table of algebraic rewrites: what is left, what is right, and when.

Left and right are written as expressions. ``x``, ``y``, ``a``, ``b`` stand for any operand (the same letter for the
same one), ``n`` for a Python number; functions are ops by name. Only rewrites that keep every rounding, NaN and
infinity are here: nothing is reassociated. A rewrite is used only when its result has the shape and dtype of what
it replaces.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, NamedTuple

RULES_TEXT: tuple[tuple[str, str], ...] = (
    # identities
    ("x + 0", "x"),
    ("0 + x", "x"),
    ("x - 0", "x"),
    ("x * 1", "x"),
    ("1 * x", "x"),
    ("x / 1", "x"),
    ("x ** 1", "x"),
    # signs
    ("-(-x)", "x"),
    ("0 - x", "-x"),
    ("x * -1", "-x"),
    ("-1 * x", "-x"),
    ("x + -y", "x - y"),
    ("-x + y", "y - x"),
    ("x - -y", "x + y"),
    ("-x * -y", "x * y"),
    ("-(x - y)", "y - x"),
    ("-x * y", "-(x * y)"),
    ("x * -y", "-(x * y)"),
    ("-x / y", "-(x / y)"),
    ("square(-x)", "square(x)"),
    ("abs(-x)", "abs(x)"),
    # powers
    ("x ** 2", "square(x)"),
    ("x ** -1", "reciprocal(x)"),
    ("1 / x", "reciprocal(x)"),
    ("reciprocal(sqrt(x))", "rsqrt(x)"),
    # selection
    ("where(x, y, y)", "y"),
    ("where(logical_not(x), a, b)", "where(x, b, a)"),
    ("logical_not(logical_not(x))", "x"),
    ("maximum(x, 0)", "relu(x)"),
    ("maximum(x, x)", "x"),
    ("minimum(x, x)", "x"),
    # the same memory
    ("copy(x)", "x"),
    ("alias(x)", "x"),
)

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power",
}  # fmt: skip  # a table


class Pattern(NamedTuple):
    """An op applied to patterns."""

    op: str
    args: tuple[Any, ...]


class Letter(NamedTuple):
    """Stands for any operand; the same letter for the same one."""

    name: str


@dataclass(frozen=True)
class Rule:
    """One rewrite, with the op that its left side begins with."""

    text: str
    left: Pattern
    right: Any
    op: str = field(default="")


def _parse(node: ast.expr) -> Any:
    match node:
        case ast.BinOp(left, operator, right):
            return Pattern(_BINARY[type(operator)], (_parse(left), _parse(right)))
        case ast.UnaryOp(ast.USub(), ast.Constant(value)):
            return -value  # type: ignore[operator]  # a number
        case ast.UnaryOp(ast.USub(), operand):
            return Pattern("negative", (_parse(operand),))
        case ast.Call(ast.Name(name), args):
            return Pattern(name, tuple(map(_parse, args)))
        case ast.Name(name):
            return Letter(name)
        case ast.Constant(value):
            return value
    raise ValueError(f"not a pattern: {ast.unparse(node)}")


def parsed(left: str, right: str) -> Rule:
    """Return a rule from its two sides as text."""
    pattern = _parse(ast.parse(left, mode="eval").body)
    return Rule(f"{left} -> {right}", pattern, _parse(ast.parse(right, mode="eval").body), pattern.op)


RULES = tuple(parsed(left, right) for left, right in RULES_TEXT)
BY_OP: dict[str, list[Rule]] = {}
for _rule in RULES:
    BY_OP.setdefault(_rule.op, []).append(_rule)
