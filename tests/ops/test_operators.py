"""Python's operators on every class that represents an array: all of them come from one table."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad.ops import operators
from glassgrad.ops.vmap.batched import Batched, Level

X, Y = np.array([[7, 2], [5, 9]]), np.array([[2, 1], [3, 2]])


def python(name: str) -> Any:
    return getattr(operator, f"{name}_" if name in {"and", "or"} else name)


def everything(x: Any, y: Any) -> list[Any]:
    """Each operator, with a number in front and an array behind where it takes them."""
    found = [python(name)(x, y) for name in operators.BINARY]
    found += [python(name)(x, Y) for name in operators.BINARY]
    found += [python(name)(3, y) for name in operators.BINARY if name != "matmul"]
    found += [python(name)(x, y) for name in operators.COMPARISONS]
    return found + [python(name)(x) for name in operators.UNARY]


def test_operators_mean_the_same_in_every_class() -> None:
    expected = everything(X, Y)
    eager = everything(gg.tensor(X), gg.tensor(Y))
    compiled = gg.compile(everything)(gg.tensor(X), gg.tensor(Y))
    level = Level(1)
    batched = everything(Batched(X[None], level), Batched(Y[None], level))
    for wanted, *found in zip(expected, eager, compiled, (one.value[0] for one in batched), strict=True):
        for one in found:
            np.testing.assert_allclose(np.asarray(one), wanted, rtol=1e-6)


def test_operators_in_place() -> None:
    for name in operators.BINARY.keys() - {"truediv"}:  # a quotient does not fit into integers
        x, wanted = gg.tensor(X), X.copy()
        memory = x.array
        assert python(f"i{name}")(x, gg.tensor(Y)) is x
        assert x.array is memory
        np.testing.assert_array_equal(x.numpy(), python(name)(wanted, Y), err_msg=name)
