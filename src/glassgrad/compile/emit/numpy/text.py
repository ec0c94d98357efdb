"""Pieces of Python text that know how tightly they bind, so that brackets appear only where they must."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# How tightly each kind of expression binds; a piece goes into brackets where its surroundings bind tighter.
ATOM, POWER, UNARY, PRODUCT, SUM, BITWISE, COMPARISON, LOWEST = 9, 8, 7, 6, 5, 3, 2, 0


class Text(NamedTuple):
    """An expression and how tightly its outermost operator binds."""

    code: str
    level: int = ATOM

    def at(self, level: int) -> str:
        """Return the code, in brackets unless it binds at least as tightly as `level`."""
        return self.code if self.level >= level else f"({self.code})"


def binary(left: Text, operator: str, right: Text, level: int) -> Text:
    """Write an operator that groups from the left; the right operand must bind tighter."""
    return Text(f"{left.at(level)} {operator} {right.at(level + 1)}", level)


def call(function: str, *args: Any, **options: Any) -> Text:
    """Write a function call; arguments are pieces of text or values."""
    listed = [arg.code if isinstance(arg, Text) else literal(arg) for arg in args]
    listed += [f"{name}={value.code if isinstance(value, Text) else literal(value)}" for name, value in options.items()]
    return Text(f"{function}({', '.join(listed)})")


def method(owner: Text, name: str, *args: Any, **options: Any) -> Text:
    """Write a method call."""
    return Text(f"{owner.at(ATOM)}.{call(name, *args, **options).code}")


def number(value: Any) -> Text:
    """Write a Python number, exactly."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        name = "np.nan" if np.isnan(value) else "np.inf"
        return Text(f"-{name}", UNARY) if value < 0 else Text(name)
    return Text(repr(value), UNARY if isinstance(value, int | float) and repr(value).startswith("-") else ATOM)


def literal(value: Any) -> str:
    """Write a parameter: dtypes by their NumPy name, slices and tuples as in an index."""
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


def index(spec: tuple[Any, ...], arrays: list[Text]) -> str:
    """Write an index from a spec of `ops.index` and its arrays, without the square brackets."""
    supply = iter(arrays)
    parts = []
    for part in spec:
        if part is None:
            parts.append("None")
        elif part is Ellipsis:
            parts.append("...")
        elif isinstance(part, int):
            parts.append(str(part))
        elif type(part).__name__ == "Slice":
            parts.append(_slice(*part))
        else:
            parts.append(next(supply).code)
    return ", ".join(parts) if parts else "()"


def _slice(start: int | None, stop: int | None, step: int | None) -> str:
    text = f"{'' if start is None else start}:{'' if stop is None else stop}"
    return text if step in {None, 1} else f"{text}:{step}"
