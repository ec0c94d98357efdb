"""Forwards on arrays that are not NumPy's: they call only the functions of the arrays' own namespace.

The printers of compiled programs and of native code are such namespaces. The one here hides NumPy's arrays, so that
NumPy's own functions cannot accept them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from glassgrad.ops.core import REGISTRY, Primitive
from tests.ops.cases import Case, cases
from tests.versions import OLD_NUMPY


class Hidden:
    """An array that NumPy cannot read."""

    __array_ufunc__ = None

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape, self.dtype, self.ndim, self.size = array.shape, array.dtype, array.ndim, array.size

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("NumPy was given an array of another namespace")

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return SPACE

    def __getitem__(self, index: Any) -> Any:
        return hidden(self.array[plain(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[plain(index)] = plain(value)

    def __getattr__(self, name: str) -> Any:
        if name not in {"real", "imag", "T", "mT"}:
            raise AttributeError(name)  # methods are NumPy's alone
        return hidden(getattr(self.array, name))


def hidden(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(hidden(one) for one in value)
    return Hidden(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(plain(one) for one in value)
    return value.array if isinstance(value, Hidden) else value


def _operator(name: str) -> Callable[..., Any]:
    return lambda *args: hidden(getattr(operator, name)(*plain(args)))


for _name in (
    "neg", "pos", "abs", "invert", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or",
    "xor", "lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge",
):  # fmt: skip  # a table
    setattr(Hidden, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Hidden, f"__r{_name}__", lambda y, x, name=_name: _operator(f"__{name}__")(x, y))


class Space:
    """NumPy's functions under another name, on hidden arrays."""

    def __init__(self, module: Any = np) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.module, name)
        if isinstance(found, ModuleType):
            return Space(found)
        if not callable(found) or isinstance(found, type):
            return found
        return lambda *args, **options: hidden(
            found(*plain(args), **{key: plain(value) for key, value in options.items()})
        )


SPACE = Space()
# Forwards that the printed NumPy programs and native code share with eager mode. Others are NumPy's and SciPy's alone.
SHARED = {
    "abs", "acos", "acosh", "add", "alias", "asin", "asinh", "astype", "atan", "atan2", "atanh", "broadcast_to", "ceil",
    "clip", "concat", "copy", "copysign", "cos", "cosh", "cumprod", "cumsum", "det", "divide", "elu", "exp", "exp2",
    "expm1", "flip", "floor", "floor_divide", "fmax", "fmin", "fmod", "gelu_tanh", "getitem", "hardswish", "hardtanh",
    "heaviside", "hypot", "i0", "inv", "leaky_relu", "lerp", "log", "log10", "log1p", "log2", "log_sigmoid",
    "log_softmax", "logaddexp", "logaddexp2", "logsumexp", "matmul", "max", "maximum", "min", "minimum", "mish",
    "multiply", "nan_to_num", "negative", "nextafter", "pad", "permute_dims", "power", "reciprocal", "relu",
    "remainder", "reshape", "roll", "root", "round", "rsqrt", "sigmoid", "sign", "silu", "sin", "sinc", "sinh",
    "softmax", "softplus", "solve", "solve_triangular", "sqrt", "square", "subtract", "sum", "tan", "tanh", "tril",
    "triu", "trunc", "where",
}  # fmt: skip  # a table
_INF = np.inf
# Calls that no sample makes: a primitive, an array, and parameters.
MORE: list[tuple[str, Any, dict[str, Any]]] = [
    *(("logsumexp", x, {"axis": (1,), "keepdims": keep}) for keep in (True, False) for x in (
        np.zeros((2, 0)), np.array([[700.0, 710.0], [-_INF, -_INF], [_INF, 1.0], [-_INF, -3.0]]),
    )),
    ("softmax", np.zeros((2, 0)), {"axis": 1}),
    ("log_softmax", np.zeros((2, 0)), {"axis": 1}),
    ("softmax", np.array([[710.0, 700.0]]), {"axis": 1}),
    ("log_softmax", np.array([[710.0, 700.0]]), {"axis": 1}),
    ("roll", np.arange(6.0).reshape(2, 3), {"shift": (1, 2), "axis": (0, 1)}),
    ("astype", np.array([1 + 2j, 3j]), {"dtype": np.dtype(np.float32)}),
    ("astype", np.array([1 + 2j, 3j]), {"dtype": np.dtype(np.complex64)}),
    ("all", np.array([[0.0, 1.0], [2.0, 3.0]]), {"axis": (1,), "keepdims": False}),
    ("any", np.array([[0.0, 1.0], [0.0, 0.0]]), {"axis": (1,), "keepdims": True}),
    ("argmax", np.array([[0.0, 1.0], [2.0, 0.0]]), {"axis": 1, "keepdims": False}),
    ("argmin", np.array([[0.0, 1.0], [2.0, 0.0]]), {"axis": 1, "keepdims": True}),
]  # fmt: skip  # a table


def check(prim: Primitive, args: list[Any], params: dict[str, Any]) -> None:
    with np.errstate(all="ignore"):
        found = prim.compute(tuple(hidden(arg) for arg in args), params)
        expected = prim.compute(tuple(args), params)
    assert type(found) is Hidden
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.array, expected, rtol=1e-12, atol=1e-14, strict=True)


@pytest.mark.parametrize(
    "case", [one for one in cases(differentiable=False) if one.prim.name in SHARED], ids=lambda case: case.id
)
def test_samples_in_another_namespace(case: Case) -> None:
    if case.prim.name in {"cumsum", "cumprod"} and OLD_NUMPY:
        pytest.skip("NumPy has the names of the array API for these since 2.1")
    args, params = case.draw()
    check(case.prim, args, params)


@pytest.mark.parametrize("case", MORE, ids=lambda case: case[0])
def test_calls_in_another_namespace(case: tuple[str, Any, dict[str, Any]]) -> None:
    name, x, params = case
    check(REGISTRY[name], [x], params)


def test_a_copy_is_a_copy_in_another_namespace() -> None:
    x = np.arange(3.0)
    y = REGISTRY["copy"].compute((hidden(x),), {})
    assert not np.shares_memory(x, y.array)


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("name", ["solve_triangular"])  # by its name the op's mutants find their tests
def test_triangular_systems_in_another_namespace(name: str, upper: bool, unit: bool) -> None:
    rng = np.random.default_rng(2)
    check(
        REGISTRY[name],
        [rng.normal(size=(2, 4, 3, 3)) + 3 * np.eye(3), rng.normal(size=(2, 4, 3, 1))],
        {"upper": upper, "unit": unit},
    )
