"""Expressions of a loop nest as text of C, with the brackets that they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from glassgrad.compile.c.builder import binary_text, c_function, cast_text, compare_text
from glassgrad.compile.c.helpers import Helpers
from glassgrad.compile.c.words import TYPES
from glassgrad.compile.llvm.module.ir import is_float

ATOM, UNARY, PRODUCT, SUM, COMPARISON, BITS_LEVEL, CHOICE = 9, 8, 7, 6, 4, 2, 0


class C(NamedTuple):
    """A text of C, and how tightly its outermost operator binds."""

    text: str
    level: int = ATOM

    def at(self, level: int) -> str:
        """Return the text as an operand that has to bind at least this tightly."""
        return self.text if self.level >= level else f"({self.text})"


_SIGNS = {"add": ("+", SUM), "subtract": ("-", SUM), "multiply": ("*", PRODUCT), "divide": ("/", PRODUCT)}
_OPCODES = {"add": "add", "subtract": "sub", "multiply": "mul"}
_ON_BOOLEANS = {"add": "or", "subtract": "xor", "multiply": "and"}
_COMPARED = {
    "equal": ("oeq", "eq"),
    "not_equal": ("une", "ne"),
    "less": ("olt", "lt"),
    "less_equal": ("ole", "le"),
    "greater": ("ogt", "gt"),
    "greater_equal": ("oge", "ge"),
}
_LOGICAL = {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}
_BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_OF_LIBRARY = {
    **{name: name for name in ("sqrt", "floor", "ceil", "trunc", "sin", "cos", "copysign", "fmod", "nextafter")},
    "round": "rint",
    "power": "pow",
}
_WHOLE = frozenset({"floor", "ceil", "trunc", "round"})  # an integer is whole already
SIMPLE = frozenset({"square", "isnan", "within"})
"""Ops whose text repeats an operand, which is therefore given a name first."""


@dataclass(frozen=True)
class Applied:
    """An elementwise op on texts: element kinds of the operands and of the result, params, the program's functions."""

    op: str
    args: list[C]
    of: str
    kind: str
    data: object
    helpers: Helpers

    def at(self, number: int, level: int = ATOM) -> str:
        return self.args[number].at(level)


def written(op: str, args: list[C], kinds: tuple[str, ...], kind: str, data: object, helpers: Helpers) -> C:
    """Return an elementwise op as text; the operands have the element kinds `kinds`, the result has `kind`."""
    one = Applied(op, args, kinds[0] if kinds else kind, kind, data, helpers)
    return _FORMS.get(op, _called)(one)


def _arithmetic(one: Applied) -> C:
    if is_float(one.of):
        sign, level = _SIGNS[one.op]
        return C(f"{one.at(0, level)} {sign} {one.at(1, level + 1)}", level)
    if one.op == "divide":
        return _called(one)
    opcode = _ON_BOOLEANS[one.op] if one.of == "b1" else _OPCODES[one.op]
    return C(binary_text(opcode, one.at(0), one.at(1), one.of), BITS_LEVEL if one.of == "b1" else UNARY)


def _compared(one: Applied) -> C:
    floats, integers = _COMPARED[one.op]
    level = COMPARISON + 1
    text = compare_text(floats if is_float(one.of) else integers, one.at(0, level), one.at(1, level), one.of)
    return C(text, COMPARISON)


def _bitwise(one: Applied) -> C:
    return C(f"({TYPES[one.kind]})({one.at(0)} {_BITWISE[one.op]} {one.at(1)})", UNARY)


def _inverted(one: Applied) -> C:
    return C(f"!{one.at(0, UNARY)}" if one.of == "b1" else f"({TYPES[one.of]})~{one.at(0, UNARY)}", UNARY)


def _chosen(one: Applied) -> C:
    return C(f"{one.at(0, CHOICE + 1)} ? {one.at(1, CHOICE + 1)} : {one.at(2, CHOICE)}", CHOICE)


def _is_nan(one: Applied) -> C:
    return C(f"{one.at(0)} != {one.at(0)}", COMPARISON) if is_float(one.of) else C("false")


def _within(one: Applied) -> C:
    low, high = one.data if isinstance(one.data, tuple) else (0, 0)
    return C(f"{one.at(0)} >= {low} && {one.at(0)} < {high}", BITS_LEVEL)


def _converted(one: Applied) -> C:
    kind = str(one.data)
    return C(cast_text(one.at(0), one.of, kind, one.helpers), COMPARISON if kind == "b1" else UNARY)


def _negative(one: Applied) -> C:
    if is_float(one.of):
        return C(f"-{one.at(0, UNARY + 1)}", UNARY)
    return C(binary_text("sub", "0", one.at(0), one.of), UNARY)


def _square(one: Applied) -> C:
    if is_float(one.of):
        return C(f"{one.at(0)} * {one.at(0)}", PRODUCT)
    return C(binary_text("mul", one.at(0), one.at(0), one.of), UNARY)


def _absolute(one: Applied) -> C:
    if is_float(one.of):
        return C(f"{c_function('fabs', one.of)}({one.args[0].text})")
    return _called(one) if one.of[0] == "i" else one.args[0]


def _of_library(one: Applied) -> C:
    if is_float(one.of):
        return C(f"{c_function(_OF_LIBRARY[one.op], one.of)}({', '.join(arg.text for arg in one.args)})")
    return one.args[0] if one.op in _WHOLE else _called(one)


def _called(one: Applied) -> C:
    return C(one.helpers.call(one.op, [arg.text for arg in one.args], one.of, one.data))


_FORMS: dict[str, Callable[[Applied], C]] = {
    **dict.fromkeys(_SIGNS, _arithmetic),
    **dict.fromkeys(_COMPARED, _compared),
    **dict.fromkeys(_BITWISE, _bitwise),
    **dict.fromkeys(_OF_LIBRARY, _of_library),
    **{op: lambda one: C(f"{one.at(0)} {_LOGICAL[one.op]} {one.at(1)}", BITS_LEVEL) for op in _LOGICAL},
    "logical_not": lambda one: C(f"!{one.at(0, UNARY)}", UNARY),
    "bitwise_not": _inverted,
    "where": _chosen,
    "negative": _negative,
    "square": _square,
    "abs": _absolute,
    "isnan": _is_nan,
    "within": _within,
    "cast": _converted,
}
