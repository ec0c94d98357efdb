"""Pieces of Python text that know how tightly they bind, so that brackets appear only where they must."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# How tightly each kind of expression binds; a piece goes into brackets where its surroundings bind tighter.
ATOM, POWER, UNARY, PRODUCT, SUM, SHIFT, AND, XOR, OR, COMPARISON, LOWEST = 12, 11, 10, 9, 8, 7, 6, 5, 4, 2, 0


class Text(NamedTuple):
    """An expression and how tightly its outermost operator binds."""

    code: str
    level: int = ATOM

    def at(self, level: int) -> str:
        """Return the code, in brackets unless it binds at least as tightly as `level`."""
        return self.code if self.level >= level else f"({self.code})"


def binary(left: Text, operator: str, right: Text, level: int) -> Text:
    """Write an operator that groups from the left; the right operand must bind tighter."""
    # Python chains comparisons, so neither side may be one without brackets.
    return Text(f"{left.at(level + (level == COMPARISON))} {operator} {right.at(level + 1)}", level)


def prefix(sign: str, operand: Text) -> Text:
    """Write an operator in front of its operand."""
    return Text(f"{sign}{operand.at(UNARY)}", UNARY)


def power(base: Text, exponent: Text) -> Text:
    """Write a power."""
    # A sign in front of the exponent needs no brackets.
    return Text(f"{base.at(POWER + 1)}**{exponent.at(UNARY)}", POWER)


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
        return prefix("-", Text(name)) if value < 0 else Text(name)
    return Text(repr(value), UNARY if isinstance(value, int | float) and repr(value).startswith("-") else ATOM)


def count_of(factor: Any) -> int | None:
    """Return n for a factor 1 / n that would be a long number."""
    if not isinstance(factor, float) or not 0 < factor < 0.4 or len(repr(factor)) < 6:
        return None
    count = round(1 / factor)
    return count if 1 / count == factor and str(count).strip("0") != "1" else None


def scalar(value: Any) -> Text:
    """Write a NumPy number: 1 / n where it is that, and otherwise as short as its precision allows."""
    count = round(1 / float(value)) if 0 < value < 0.4 else 0
    code = f"1 / {count}" if count and value.dtype.type(1 / count) == value else str(value)
    return call(literal(value.dtype), Text(code)) if value.dtype != np.float64 else Text(code, PRODUCT)


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


def constant(value: Any) -> Text | None:
    """Write an array as NumPy would make it; None when that would be long."""
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


def _filled(value: Any, entry: Any) -> Text:
    """Write an array whose elements are all the same."""
    name = {0: "np.zeros", 1: "np.ones"}.get(entry.item()) if value.dtype.kind in "fiu" else None
    if name is None or np.signbit(entry):
        return call("np.full", value.shape, entry.item(), value.dtype)
    return call(name, value.shape, value.dtype)


def _matrix(value: Any) -> Text | None:
    """Write a matrix with a pattern."""
    if value.shape[0] == value.shape[1] and (value == np.eye(len(value))).all():
        return call("np.eye", len(value), dtype=value.dtype)
    if value.dtype == bool and (value == np.tril(np.ones_like(value))).all():
        return call("np.tril", call("np.ones", value.shape, value.dtype))
    if value.dtype == bool and (value == np.triu(np.ones_like(value), k=1)).all():
        return call("np.triu", call("np.ones", value.shape, value.dtype), k=1)
    return None
