"""The forward and backward rule of each op of `glassgrad.scalar`, for any kind of number.

The emitters pass objects whose `+ - * /` emit code: NumPy source or LLVM instructions. `m` holds
the functions that have no operator (`m.exp`, `m.where`, ...), `g` is the cotangent of the result `y`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# The emitters' numbers, of any kind, with the operators `+ - * /`.
Number = Any


@dataclass(frozen=True)
class Rule:
    """`forward(m, number, *args)` and, for the argument at `index`, `pull(m, index, g, y, number, args)`."""

    forward: Callable[..., Any]
    pull: Callable[..., Any]


def _dot(m: Any, _number: float, *args: Number) -> Number:
    half = len(args) // 2
    if not half:
        return m.constant(0.0)
    total = args[0] * args[half]
    for left, right in zip(args[1:half], args[half + 1 :], strict=True):
        total = m.fma(left, right, total)
    return total


def _dot_pull(_m: Any, index: int, g: Number, _y: Number, _number: float, args: Number) -> Number:
    return g * args[(index + len(args) // 2) % len(args)]


def _each(*pulls: Callable[..., Any]) -> Callable[..., Any]:
    """One pull per argument, each written as f(m, g, y, *args)."""
    return lambda m, index, g, y, number, args: pulls[index](m, g, y, *args)


def _function(forward: Callable[..., Any], pull: Callable[..., Any]) -> Rule:
    return Rule(lambda m, number, x: forward(m, x), _each(pull))


def _power(m: Any, k: float, x: Number) -> Number:
    """x**k; small integer exponents by multiplication, which is faster than pow."""
    if k in {1, 2, 3, 4}:
        y = x
        for _ in range(int(k) - 1):
            y = y * x
        return y
    return m.pow(x, m.constant(k))


def _power_pull(m: Any, _index: int, g: Number, _y: Number, k: float, args: Number) -> Number:
    if k in {0, 1}:
        return g if k else m.constant(0.0) * g
    return g * (m.constant(k) * _power(m, k - 1.0, args[0]))


def _share(m: Any, g: Number, mine: Number, other: Number) -> Number:
    """The larger argument of max gets the cotangent; a tie is shared."""
    zero = m.constant(0.0)
    return m.where("gt", mine, other, g, m.where("eq", mine, other, m.constant(0.5) * g, zero * g))


def _sigmoid(m: Any, x: Number, zero: Number, one: Number) -> Number:
    """exp(min(x, 0)) / (1 + exp(-|x|)), which does not overflow for either sign."""
    return m.exp(m.where("lt", x, zero, x, zero)) / (one + m.exp(-m.abs(x)))


RULES: dict[str, Rule] = {
    "+": Rule(lambda m, n, a, b: a + b, _each(lambda m, g, y, a, b: g, lambda m, g, y, a, b: g)),
    "-": Rule(lambda m, n, a, b: a - b, _each(lambda m, g, y, a, b: g, lambda m, g, y, a, b: -g)),
    "*": Rule(lambda m, n, a, b: a * b, _each(lambda m, g, y, a, b: g * b, lambda m, g, y, a, b: g * a)),
    "/": Rule(lambda m, n, a, b: a / b, _each(lambda m, g, y, a, b: g / b, lambda m, g, y, a, b: -(g * y) / b)),
    "**": Rule(
        lambda m, n, x, k: m.pow(x, k),
        _each(lambda m, g, y, x, k: g * (k * m.pow(x, k - m.constant(1.0))), lambda m, g, y, x, k: g * (y * m.log(x))),
    ),
    "power": Rule(_power, _power_pull),
    "max": Rule(
        lambda m, n, a, b: m.where("gt", b, a, b, a),
        _each(lambda m, g, y, a, b: _share(m, g, a, b), lambda m, g, y, a, b: _share(m, g, b, a)),
    ),
    "@": Rule(_dot, _dot_pull),
    "neg": _function(lambda m, x: -x, lambda m, g, y, x: -g),
    "abs": _function(
        lambda m, x: m.abs(x),
        lambda m, g, y, x: m.where(
            "gt", x, m.constant(0.0), g, m.where("lt", x, m.constant(0.0), -g, m.constant(0.0) * g)
        ),
    ),
    "exp": _function(lambda m, x: m.exp(x), lambda m, g, y, x: g * y),
    "log": _function(lambda m, x: m.log(x), lambda m, g, y, x: g / x),
    "sin": _function(lambda m, x: m.sin(x), lambda m, g, y, x: g * m.cos(x)),
    "cos": _function(lambda m, x: m.cos(x), lambda m, g, y, x: -(g * m.sin(x))),
    "tanh": _function(lambda m, x: m.tanh(x), lambda m, g, y, x: g * (m.constant(1.0) - y * y)),
    "sigmoid": _function(
        lambda m, x: _sigmoid(m, x, m.constant(0.0), m.constant(1.0)),
        lambda m, g, y, x: g * (y * (m.constant(1.0) - y)),
    ),
    "ReLU": _function(
        lambda m, x: m.where("lt", x, m.constant(0.0), m.constant(0.0), x),
        lambda m, g, y, x: m.where("gt", y, m.constant(0.0), g, m.constant(0.0) * g),
    ),
}
