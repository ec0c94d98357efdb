"""Python expressions as text with operator precedence, so that brackets appear only where necessary.

They also record their names and indices, which differ if a line is repeated for another layer or time step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from glassgrad.ops.core import Array
from glassgrad.ops.narrow import NARROW

# Precedence of each kind of expression; an expression gets brackets if its context binds tighter.
ATOM, POWER, UNARY, PRODUCT, SUM, SHIFT, AND, XOR, OR, COMPARISON, LOWEST = 12, 11, 10, 9, 8, 7, 6, 5, 4, 2, 0

Token = str | int


class Text:
    """An expression, joined from parts, and how tightly its outermost operator binds.

    Attributes:
        pieces: the text before, between and after the tokens.
        tokens: names of values, and the integers of indices.
        level: how tightly it binds.
    """

    __slots__ = ("level", "pieces", "tokens")

    def __init__(self, *parts: str | Text, level: int = ATOM) -> None:
        pieces = [""]
        tokens: list[Token] = []
        for part in parts:
            if isinstance(part, str):
                pieces[-1] += part
                continue
            first, *more = part.pieces
            pieces[-1] += first
            pieces += more
            tokens += part.tokens
        self.pieces: tuple[str, ...] = tuple(pieces)
        self.tokens: tuple[Token, ...] = tuple(tokens)
        self.level = level

    @staticmethod
    def token(value: Token) -> Text:
        """Return the name of a value, or an integer of an index."""
        made = Text()
        made.pieces, made.tokens = ("", ""), (value,)
        return made

    @staticmethod
    def woven(pieces: Sequence[str], texts: Iterable[Text], level: int = ATOM) -> Text:
        """Return pieces joined by the texts between them."""
        pairs = zip(texts, pieces[1:], strict=True)
        return Text(pieces[0], *[part for pair in pairs for part in pair], level=level)

    @property
    def code(self) -> str:
        """The expression as Python source."""
        pairs = zip(self.pieces, [*map(str, self.tokens), ""], strict=True)
        return "".join([part for pair in pairs for part in pair])

    def filled(self, texts: Iterable[Text]) -> Text:
        """Return the expression with the tokens replaced by other texts."""
        return Text.woven(self.pieces, texts, self.level)

    def at(self, level: int) -> Text:
        """Return the expression, in brackets unless it binds at least as tightly as `level`."""
        return self if self.level >= level else Text("(", self, ")")


def listed(items: Iterable[str | Text]) -> Text:
    """Write pieces with commas between them."""
    parts = [part for item in items for part in (", ", item)]
    return Text(*parts[1:])


def binary(left: Text, operator: str, right: Text, level: int) -> Text:
    """Write a left-associative operator; the right operand must bind tighter."""
    # Python chains comparisons, so a comparison on either side needs brackets.
    return Text(left.at(level + (level == COMPARISON)), f" {operator} ", right.at(level + 1), level=level)


def prefix(sign: str, operand: Text) -> Text:
    """Write a prefix operator with its operand."""
    return Text(sign, operand.at(UNARY), level=UNARY)


def power(base: Text, exponent: Text) -> Text:
    """Write a power."""
    # A sign before the exponent needs no brackets.
    return Text(base.at(POWER + 1), "**", exponent.at(UNARY), level=POWER)


def call(function: str, *args: object, **options: object) -> Text:
    """Write a function call; arguments are pieces of text or values."""
    given = [("", arg) for arg in args] + [(f"{name}=", value) for name, value in options.items()]
    parts = [part for key, one in given for part in (", ", key, one if isinstance(one, Text) else literal(one))]
    return Text(f"{function}(", *parts[1:], ")")


def method(owner: Text, name: str, *args: object, **options: object) -> Text:
    """Write a method call."""
    return Text(owner.at(ATOM), ".", call(name, *args, **options))


def number(value: object) -> Text:
    """Write a Python number, exactly."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        name = "np.nan" if np.isnan(value) else "np.inf"
        return prefix("-", Text(name)) if value < 0 else Text(name)
    ratio = ratio_of(value)
    if ratio is not None:
        return Text(f"{ratio[0]} / {ratio[1]}", level=PRODUCT)
    return Text(repr(value), level=UNARY if isinstance(value, int | float) and repr(value).startswith("-") else ATOM)


def count_of(factor: Any) -> int | None:
    """Return n for a factor 1 / n that would have many digits."""
    if not isinstance(factor, float) or not 0 < factor < 0.4 or len(repr(factor)) < 6:
        return None
    count = round(1 / factor)
    return count if 1 / count == factor and str(count).strip("0") != "1" else None


def ratio_of(value: Any) -> tuple[int, int] | None:
    """Return p and q for a number with many digits that equals p / q exactly, such as n / (n - 1)."""
    if not isinstance(value, float) or len(repr(value)) < 10 or not 0.4 <= value < 1000:
        return None
    found = Fraction(value).limit_denominator(10_000)
    p, q = found.numerator, found.denominator
    return (p, q) if q > 1 and p / q == value else None


def scalar(value: Any) -> Text:
    """Write a NumPy number: as 1 / n if it equals that, and otherwise as short as its precision allows."""
    count = round(1 / float(value)) if 0 < value < 0.4 else 0
    code = f"1 / {count}" if count and value.dtype.type(1 / count) == value else str(value)
    return call(literal(value.dtype), Text(code)) if value.dtype != np.float64 else Text(code, level=PRODUCT)


def literal(value: object) -> str:
    """Write a parameter: dtypes by their NumPy name, slices and tuples as in an index."""
    if isinstance(value, np.dtype) and value.kind == NARROW:  # not a NumPy name, although registered with it
        return f'np.dtype("{value.name}")'
    if isinstance(value, np.dtype):
        return f"np.{value.name}" if value.name != "bool" else "bool"
    if isinstance(value, type) and issubclass(value, np.generic):
        return f"np.{value.__name__}"
    if isinstance(value, tuple):
        inner = ", ".join(map(literal, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, bool | int | float | np.generic) and value is not None:
        return number(value).code
    return repr(value)


def index(spec: tuple[Any, ...], arrays: list[Text]) -> Text:
    """Write an index from a spec of `ops.index` and its arrays, without the square brackets."""
    supply = iter(arrays)
    parts = []
    for part in spec:
        if part is None:
            parts.append(Text("None"))
        elif part is Ellipsis:
            parts.append(Text("..."))
        elif isinstance(part, int):
            parts.append(_place(part))
        elif type(part).__name__ == "Slice":
            start, stop, step = part
            stride = () if step in {None, 1} else (":", _place(step))
            parts.append(Text(_place(start), ":", _place(stop), *stride))
        else:
            parts.append(next(supply))
    return listed(parts) if parts else Text("()")


def _place(at: int | None) -> Text:
    """Write an integer of an index, or nothing; integers that count from the end are the same in every repetition."""
    return Text.token(at) if at is not None and at >= 0 else Text("" if at is None else str(at))


def constant(value: Array) -> Text | None:
    """Write an array as a NumPy expression; None if that would be long."""
    if value.ndim == 0:
        return call(literal(value.dtype), value.item())
    flat = value.reshape(-1)
    if flat.size and (flat == flat[0]).all():
        return _filled(value, flat[0])
    if value.ndim == 1 and value.dtype.kind == "i" and (np.diff(value) == 1).all():
        start = int(value[0])
        return call("np.arange", *([start, start + value.size] if start else [value.size]))
    found = _matrix(value) if value.ndim == 2 else None
    if found is None and flat.size <= 16:
        return call("np.array", value.tolist(), value.dtype)
    return found


def _filled(value: Array, entry: Any) -> Text:
    """Write an array whose elements are all the same."""
    name = {0: "np.zeros", 1: "np.ones"}.get(entry.item()) if value.dtype.kind in "fiu" else None
    if name is None or np.signbit(entry):
        return call("np.full", value.shape, entry.item(), value.dtype)
    return call(name, value.shape, value.dtype)


def _matrix(value: Array) -> Text | None:
    """Write a matrix with a pattern."""
    if value.shape[0] == value.shape[1] and (value == np.eye(len(value))).all():
        return call("np.eye", len(value), dtype=value.dtype)
    if value.dtype == bool and (value == np.tril(np.ones_like(value))).all():
        return call("np.tril", call("np.ones", value.shape, value.dtype))
    if value.dtype == bool and (value == np.triu(np.ones_like(value), k=1)).all():
        return call("np.triu", call("np.ones", value.shape, value.dtype), k=1)
    return None
