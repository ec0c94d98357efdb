"""Every pair of operators, nested both ways: the NumPy program agrees with eager mode."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip  # a table
FORMS: dict[str, Callable[[Any, Any, Any, Any, Any], Any]] = {
    "(a f b) g c": lambda f, g, a, b, c: g(f(a, b), c),
    "a f (b g c)": lambda f, g, a, b, c: f(a, g(b, c)),
    "-(a f b) g c": lambda f, g, a, b, c: g(-f(a, b), c),
    "a f (-(b g c))": lambda f, g, a, b, c: f(a, -g(b, c)),
    "~(a f b) g c": lambda f, g, a, b, c: g(~f(a, b), c),
    "abs(a f b) g c": lambda f, g, a, b, c: g(abs(f(a, b)), c),
    "(a f b).T g c": lambda f, g, a, b, c: g(f(a, b).T, c),
    "a f (b g c).sum(0)": lambda f, g, a, b, c: f(a, g(b, c).sum(0)),
}
VALUES = {
    "i8": [[[5, 6], [7, 3]], [[2, 3], [1, 2]], [[1, 2], [2, 3]]],
    "?": [[[1, 0], [1, 0]], [[1, 1], [0, 0]], [[0, 1], [1, 0]]],
}


def working(dtype: str, first: str) -> list[Callable[[Any, Any, Any], Any]]:
    """Return the expressions that begin with an operator and that eager mode computes for a dtype."""
    a, b, c = (gg.tensor(np.array(value, dtype)) for value in VALUES[dtype])
    found = []
    for second in OPERATORS.values():
        for form in FORMS.values() if dtype == "?" else list(FORMS.values())[:2]:
            expression = lambda a, b, c, form=form, second=second: form(OPERATORS[first], second, a, b, c)
            try:
                expression(a, b, c)
            except (TypeError, ValueError, RuntimeError):
                continue
            found.append(expression)
    return found


def check(expressions: list[Callable[[Any, Any, Any], Any]], values: Any, dtype: str) -> None:
    """Compare a program of several expressions with eager mode.

    Each expression has inputs of its own, so that none of its parts becomes a line by itself.
    """
    inputs = [gg.tensor(np.array(value, dtype)) for _ in expressions for value in values]

    def all_of_them(*xs: Any) -> tuple[Any, ...]:
        return tuple(expression(*xs[3 * at : 3 * at + 3]) for at, expression in enumerate(expressions))

    step = gg.compile(all_of_them, backend="numpy")
    for at, (expression, y) in enumerate(zip(expressions, step(*inputs), strict=True)):
        expected = expression(*inputs[:3])
        assert y.dtype == expected.dtype, step.source
        np.testing.assert_allclose(y.numpy(), expected.numpy(), err_msg=f"output {at} of\n{step.source}")


@pytest.mark.parametrize(
    ("first", "dtype"), [*((first, "i8") for first in OPERATORS), *((first, "?") for first in "&|^<*")]
)
def test_brackets_are_where_they_must_be(first: str, dtype: str) -> None:
    with np.errstate(all="ignore"):
        expressions = working(dtype, first)
        for start in range(0, len(expressions), 25):
            check(expressions[start : start + 25], VALUES[dtype], dtype)
