"""The text of an elementwise op without a template: its forward, evaluated on pieces of text in place of arrays.

So the program of an op follows from its entry in the table. A forward that asks for more than operators and NumPy's
elementwise functions has no text; an op whose program should read better has a template in `reading`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from glassgrad.compile.numpy import text
from glassgrad.compile.numpy.text import Text
from glassgrad.ops.core import PRIMITIVES, Elementwise


class _Term:
    """An expression with operators. It has no truth and is no array: a forward that asks for either has no text."""

    __slots__ = ("text",)
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # equal terms are a comparison, not the same key

    def __init__(self, written: Text) -> None:
        self.text = written

    def __getattr__(self, name: str) -> Any:
        # Not an AttributeError: getattr(x, "dtype", None) would go on with a formula for another dtype.
        raise TypeError(f"a piece of text has no {name}")

    def __bool__(self) -> bool:
        raise TypeError("a piece of text is neither true nor false")

    def __neg__(self) -> _Term:
        return _Term(Text(f"-{self.text.at(text.UNARY)}", text.UNARY))

    def __abs__(self) -> _Term:
        return _Term(text.call("np.abs", self.text))

    def __pow__(self, other: Any) -> _Term:
        return _Term(Text(f"{self.text.at(text.POWER + 1)}**{_text(other).at(text.UNARY)}", text.POWER))


def _text(value: Any) -> Text:
    return value.text if isinstance(value, _Term) else text.number(value)


def _binary(sign: str, level: int, *, turned: bool = False) -> Callable[[_Term, Any], _Term]:
    def operator(self: _Term, other: Any) -> _Term:
        left, right = (_text(other), self.text) if turned else (self.text, _text(other))
        if level == text.COMPARISON:  # Python chains comparisons, so neither side may be one without brackets
            return _Term(Text(f"{left.at(level + 1)} {sign} {right.at(level + 1)}", level))
        return _Term(text.binary(left, sign, right, level))

    return operator


for _name, _sign, _level in (
    ("add", "+", text.SUM), ("sub", "-", text.SUM), ("mul", "*", text.PRODUCT), ("truediv", "/", text.PRODUCT),
):  # fmt: skip  # a table
    setattr(_Term, f"__{_name}__", _binary(_sign, _level))
    setattr(_Term, f"__r{_name}__", _binary(_sign, _level, turned=True))
for _name, _sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!=")):
    setattr(_Term, f"__{_name}__", _binary(_sign, text.COMPARISON))


class _Space:
    """What a forward takes for `xp`: NumPy's elementwise functions and `where`, writing calls of themselves."""

    def __getattr__(self, name: str) -> Callable[..., _Term]:
        if name != "where" and not isinstance(getattr(np, name, None), np.ufunc):
            raise AttributeError(name)
        return lambda *args: _Term(text.call(f"np.{name}", *map(_text, args)))


def from_forward(op: str, operands: Sequence[Text], params: Mapping[str, Any]) -> Text | None:
    """Return an op applied to pieces of text; None where its forward is no formula."""
    prim = PRIMITIVES.get(op)
    if not isinstance(prim, Elementwise) or not callable(prim.forward):
        return None
    try:
        found = prim.forward(_Space(), *map(_Term, operands), **params)
    except (TypeError, AttributeError, ValueError):
        return None
    return found.text if isinstance(found, _Term) else None
