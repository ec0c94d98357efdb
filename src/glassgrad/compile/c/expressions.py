"""Expressions of a loop nest as text of C, with the brackets that they need."""

from __future__ import annotations

from typing import Any, NamedTuple

from glassgrad.compile.c.builder import binary_text, c_function, cast_text, compare_text
from glassgrad.compile.c.helpers import Helpers
from glassgrad.compile.llvm.module.ir import BITS, is_float

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
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "round": "rint",
    "sin": "sin",
    "cos": "cos",
    "copysign": "copysign",
    "power": "pow",
    "fmod": "fmod",
    "nextafter": "nextafter",
}
SIMPLE = frozenset({"square", "isnan", "within"})
"""Ops whose text repeats an operand, which is therefore given a name first."""


def written(op: str, args: list[C], kinds: tuple[str, ...], kind: str, data: Any, helpers: Helpers) -> C:  # noqa: C901, PLR0911 - one return a form
    """Return an elementwise op as text; the operands have the element kinds `kinds`, the result has `kind`."""
    of = kinds[0] if kinds else kind
    if op in _SIGNS and is_float(of):
        sign, level = _SIGNS[op]
        return C(f"{args[0].at(level)} {sign} {args[1].at(level + 1)}", level)
    if op in _OPCODES:
        opcode = _ON_BOOLEANS[op] if of == "b1" else _OPCODES[op]
        return C(binary_text(opcode, args[0].at(ATOM), args[1].at(ATOM), of), BITS_LEVEL if of == "b1" else UNARY)
    if op in _COMPARED:
        floats, integers = _COMPARED[op]
        level = COMPARISON + 1
        predicate = floats if is_float(of) else integers
        return C(compare_text(predicate, args[0].at(level), args[1].at(level), of), COMPARISON)
    if op in _LOGICAL:
        return C(f"{args[0].at(ATOM)} {_LOGICAL[op]} {args[1].at(ATOM)}", BITS_LEVEL)
    if op in _BITWISE:
        return C(f"({_cast(kind)})({args[0].at(ATOM)} {_BITWISE[op]} {args[1].at(ATOM)})", UNARY)
    match op:
        case "where":
            return C(f"{args[0].at(CHOICE + 1)} ? {args[1].at(CHOICE + 1)} : {args[2].at(CHOICE)}", CHOICE)
        case "logical_not":
            return C(f"!{args[0].at(UNARY)}", UNARY)
        case "bitwise_not":
            return C(f"!{args[0].at(UNARY)}" if of == "b1" else f"({_cast(of)})~{args[0].at(UNARY)}", UNARY)
        case "negative":
            return _negative(args[0], of)
        case "square":
            return _square(args[0], of)
        case "isnan":
            return C(f"{args[0].at(ATOM)} != {args[0].at(ATOM)}", COMPARISON) if is_float(of) else C("false")
        case "within":
            low, high = data
            return C(f"{args[0].at(ATOM)} >= {low} && {args[0].at(ATOM)} < {high}", BITS_LEVEL)
        case "cast":
            return C(cast_text(args[0].at(ATOM), of, data, helpers), COMPARISON if data == "b1" else UNARY)
        case "abs":
            return _absolute(args[0], of, helpers)
    if op in _OF_LIBRARY and is_float(of):
        return C(f"{c_function(_OF_LIBRARY[op], of)}({', '.join(arg.text for arg in args)})")
    if op in {"floor", "ceil", "trunc", "round"}:
        return args[0]
    return C(helpers.call(op, [arg.text for arg in args], of, data))


def _cast(kind: str) -> str:
    return {"b1": "bool"}.get(kind, f"{'u' if kind[0] == 'u' else ''}int{BITS[kind]}_t")


def _negative(arg: C, kind: str) -> C:
    if is_float(kind):
        return C(f"-{arg.at(UNARY + 1)}", UNARY)
    return C(binary_text("sub", "0", arg.at(ATOM), kind), UNARY)


def _square(arg: C, kind: str) -> C:
    if is_float(kind):
        return C(f"{arg.at(ATOM)} * {arg.at(ATOM)}", PRODUCT)
    return C(binary_text("mul", arg.at(ATOM), arg.at(ATOM), kind), UNARY)


def _absolute(arg: C, kind: str, helpers: Helpers) -> C:
    if is_float(kind):
        return C(f"{c_function('fabs', kind)}({arg.text})")
    return C(helpers.call("abs", [arg.text], kind, None)) if kind[0] == "i" else arg
