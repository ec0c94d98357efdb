"""Operators with operands other than tensors: NumPy's array-likes are accepted, the rest is left to the other class."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors

ARITHMETIC = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "matmul": operator.matmul,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "lshift": operator.lshift,
    "rshift": operator.rshift,
}  # fmt: skip  # a table
COMPARISONS = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {name: getattr(operator, f"i{name}") for name in ARITHMETIC}


class Plain:
    """A user's class that knows what to do with tensors."""


class Quantity(Plain):
    """As pint's: an array-like with arithmetic of its own."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise AssertionError("the unit would be lost")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return ("ufunc", ufunc.__name__)


class Unwilling(Plain):
    """A class that wants no ufuncs."""

    __array_ufunc__ = None


class Labelled(Plain):
    """As xarray's of old: an array-like with a priority above ours."""

    __array_priority__ = 2000

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise AssertionError("the labels would be lost")


def _answer(name: str, side: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: (side, name, type(other).__name__)


for _name in ARITHMETIC:
    setattr(Plain, f"__{_name}__", _answer(_name, "left"))
    setattr(Plain, f"__r{_name}__", _answer(_name, "right"))
for _name in COMPARISONS:
    setattr(Plain, f"__{_name}__", _answer(_name, "compared"))

FOREIGN = [Plain, Quantity, Unwilling, Labelled]
TENSORS = {
    "integers": lambda: gg.tensor([[1, 2], [3, 4]]),
    "tracked": lambda: gg.ones(2, 2, requires_grad=True) * 2,
    "parameter": lambda: gg.nn.Parameter(gg.ones(2, 2)),
}


@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_left_to_a_class_of_its_own(name: str, kind: type, tensor: str) -> None:
    x, other = TENSORS[tensor](), kind()
    said = type(x).__name__
    assert ARITHMETIC[name](x, other) == ("right", name, said)
    assert ARITHMETIC[name](other, x) == ("left", name, said)
    assert IN_PLACE[name](x, other) == ("right", name, said)
    assert getattr(x, f"__{name}__")(other) is NotImplemented
    assert getattr(x, f"__r{name}__")(other) is NotImplemented


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_are_left_to_a_class_of_its_own(name: str, kind: type) -> None:
    assert getattr(operator, name)(gg.ones(2), kind()) == ("compared", COMPARISONS[name], "Tensor")


def test_numpys_functions_ask_the_other_class() -> None:
    assert np.add(gg.ones(2), Quantity()) == ("ufunc", "add")
    assert np.multiply(Quantity(), gg.ones(2)) == ("ufunc", "multiply")
    with pytest.raises(TypeError):
        np.add(gg.ones(2), Unwilling())


@pytest.mark.parametrize("other", [None, "a", b"a", {}, {1}, object(), Fraction(1, 2), Decimal(1), np.str_("a"), len])
def test_what_is_no_number_is_unequal(other: Any) -> None:
    for x in (gg.ones(2), gg.tensor(1.0), gg.tensor([True]), gg.nn.Parameter(gg.ones(2))):
        assert (x == other) is False
        assert (other == x) is False
        assert (x != other) is True
        assert (other != x) is True
        for name in ("lt", "add", "mul", "matmul", *(() if x.requires_grad else ("iadd",))):
            if name == "mul" and isinstance(other, str | bytes) and x.dtype.kind == "b":
                continue  # one truth is a count to Python: "a" * True
            with pytest.raises(TypeError):
                getattr(operator, name)(x, other)
        with pytest.raises(TypeError):
            other + x
    assert gg.tensor(1.0) not in [None, "a"]


def test_the_rest_of_the_standard_library() -> None:
    x = gg.tensor([1.0, 2.0])
    for number in (Fraction(1, 2), Decimal("0.5")):
        for name, compute in ARITHMETIC.items():
            if (type(number), name) == (Fraction, "pow"):  # which makes a float of itself
                continue
            with pytest.raises(TypeError):
                compute(x, number)
            with pytest.raises(TypeError):
                compute(number, x)
        with pytest.raises(errors.KindError, match="numbers"):
            gg.add(x, number)
    with pytest.raises(errors.KindError, match="add at"):
        x + None  # the message names op and line, which Python's would not


class ArrayLike:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.array, dtype)


@pytest.mark.parametrize(
    "other",
    [
        2,
        2.0,
        True,
        np.float32(2),
        np.int64(2),
        np.float64(2),
        [3.0, 4.0],
        (3.0, 4.0),
        np.array([3.0, 4.0]),
        np.array([3.0, 4.0]).view(np.recarray),
        ArrayLike([3.0, 4.0]),
        memoryview(np.array([3.0, 4.0])),
    ],
    ids=lambda other: type(other).__name__,
)
def test_array_likes_are_taken(other: Any) -> None:
    plain = np.asarray(other)
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    for name in ("add", "sub", "mul", "truediv", "pow", "lt", "eq", "ne"):
        expected = getattr(operator, name)(np.array([1.0, 2.0]), plain)
        np.testing.assert_allclose(getattr(operator, name)(x, other).detach().numpy(), expected, rtol=1e-6)
    (x * other).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.broadcast_to(plain, 2))
    y = gg.tensor([1.0, 2.0], dtype=gg.float64)
    y += other
    np.testing.assert_allclose(y.numpy(), np.array([1.0, 2.0]) + plain)


def test_pytorchs_tensors_are_taken() -> None:
    torch = pytest.importorskip("torch", reason="its tensors are the operands")
    assert (gg.ones(2) + torch.tensor([1.0, 2.0])).tolist() == [2.0, 3.0]
