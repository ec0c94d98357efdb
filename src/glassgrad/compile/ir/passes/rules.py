"""Rewrite rules, and the table of algebraic ones: pairs of a left and a right side.

Both sides are expressions. ``x``, ``y``, ``a``, ``b`` stand for any operand (the same letter for the same one), ``n``
for a Python number; functions are ops by name, and a letter may stand for a parameter, as in ``sum(x, axis=a)``. An op
on the right that is also the one on the left inherits its parameters. Only rewrites that preserve every rounding,
NaN and infinity are here: nothing is reassociated. A rewrite is used only if its result has the shape and dtype of the
replaced value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.ops.core import PRIMITIVES, Elementwise

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
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
}


class Pattern(NamedTuple):
    """An op applied to patterns, with required values of some parameters."""

    op: str
    args: tuple[Any, ...]
    params: tuple[tuple[str, Any], ...] = ()


class Letter(NamedTuple):
    """A wildcard for any operand; equal letters mean the same operand."""

    name: str


class Rule(NamedTuple):
    """One rewrite: a replacement for the result of an instruction.

    Attributes:
        op: the op of the instruction; "elementwise" for every op of that kind.
        match: the pattern to fit; None if the op suffices.
        build: a pattern; or a function ``(rewriter, instr, *values)`` that returns None if it does not apply. `values`
            are those of the letters or, without `match`, the operands.
        when: an additional condition ``(rewriter, instr)``.
    """

    op: str
    match: Pattern | None
    build: Any
    when: Callable[..., bool] | None = None


class Rules(dict[str, tuple[Rule, ...]]):
    """A pass as a list of rules, indexed by op; the first one that fits is used."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.listed = tuple(rules)

    def __missing__(self, op: str) -> tuple[Rule, ...]:
        kinds = {op, "elementwise"} if isinstance(PRIMITIVES.get(op), Elementwise) else {op}
        found = self[op] = tuple(rule for rule in self.listed if rule.op in kinds)
        return found


def _parse(node: ast.expr) -> Any:
    match node:
        case ast.BinOp(left, operator, right):
            return Pattern(_BINARY[type(operator)], (_parse(left), _parse(right)))
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
            return -value
        case ast.UnaryOp(ast.USub(), operand):
            return Pattern("negative", (_parse(operand),))
        case ast.Call(ast.Name(name), args, keywords):
            params = tuple((str(part.arg), _parse(part.value)) for part in keywords)
            return Pattern(name, tuple(map(_parse, args)), params)
        case ast.Name(name):
            return Letter(name)
        case ast.Constant(value):
            return value
    raise ValueError(f"not a pattern: {ast.unparse(node)}")


def pattern(text: str) -> Any:
    """Return an expression as a pattern."""
    return _parse(ast.parse(text, mode="eval").body)


def fits(part: Any, given: Any, behind: Callable[[Any], Instr | None], values: dict[str, Any]) -> bool:
    """Tell whether an instruction, operand or parameter fits a pattern; bind the letters in `values`."""
    if isinstance(part, Pattern):
        instr = given if isinstance(given, Instr) else behind(given)
        if instr is None or instr.op != part.op or len(instr.inputs) != len(part.args):
            return False
        return all(
            fits(one, value, behind, values) for one, value in zip(part.args, instr.inputs, strict=True)
        ) and all(
            fits(one, instr.params[name], behind, values) if isinstance(one, Letter) else instr.params[name] == one
            for name, one in part.params
        )
    if isinstance(part, Letter):
        if part.name == "n" and isinstance(given, Var):
            return False
        known = values.setdefault(part.name, given)
        return known is given or (not isinstance(given, Var) and type(known) is type(given) and bool(known == given))
    return not isinstance(given, Var) and type(given) in {int, float} and given == part


def rule(left: str, right: Any, when: Callable[..., bool] | None = None) -> Rule:
    """Make a rule from its left side (an expression or an op's name) and its right side or a function."""
    match, build = pattern(left), pattern(right) if isinstance(right, str) else right
    return Rule(match.name, None, build, when) if isinstance(match, Letter) else Rule(match.op, match, build, when)


ALGEBRA = tuple(rule(left, right) for left, right in RULES_TEXT)
