"""Activation functions with their options, against PyTorch: values and derivatives of two orders, also at kinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
import glassgrad.nn.functional as F
from glassgrad import errors
from glassgrad.ops import activation
from tests.ops.against_torch import agree_in_two_orders, compare, real, torch

POINTS = np.array([-30.0, -4.0, -3.0, -1.0, -0.5, -0.2, 0.0, 0.3, 0.5, 1.0, 2.0, 3.0, 3.7, 6.0, 30.0])
INSIDE = np.array([0.0, 0.05, 0.3, 0.5, 0.95])

# Of (functional, x).
CALLS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    **{
        name: (lambda f, x, name=name: getattr(f, name)(x), POINTS)
        for name in (
            "relu", "leaky_relu", "elu", "celu", "selu", "gelu", "silu", "mish", "softplus", "logsigmoid", "sigmoid",
            "tanh", "hardtanh", "relu6", "hardsigmoid", "hardswish", "softsign", "tanhshrink", "softshrink",
            "hardshrink",
        )
    },
    "gelu tanh": (lambda f, x: f.gelu(x, approximate="tanh"), POINTS),
    "leaky_relu of 0": (lambda f, x: f.leaky_relu(x, 0.0), POINTS),
    "leaky_relu of 1": (lambda f, x: f.leaky_relu(x, 1.0), POINTS),
    "leaky_relu of 1.5": (lambda f, x: f.leaky_relu(x, 1.5), POINTS),
    "leaky_relu of 2.5": (lambda f, x: f.leaky_relu(x, 2.5), POINTS),
    "leaky_relu of -0.5": (lambda f, x: f.leaky_relu(x, -0.5), POINTS),
    "elu of 0.5": (lambda f, x: f.elu(x, 0.5), POINTS),
    "celu of 0.5": (lambda f, x: f.celu(x, 0.5), POINTS),
    "softplus of 2": (lambda f, x: f.softplus(x, 2.0), POINTS),
    "softplus from 1": (lambda f, x: f.softplus(x, 1.5, 1.0), POINTS),
    "hardtanh of two": (lambda f, x: f.hardtanh(x, -0.2, 3.0), POINTS),
    "softshrink of 1": (lambda f, x: f.softshrink(x, 1.0), POINTS),
    "hardshrink of 1": (lambda f, x: f.hardshrink(x, 1.0), POINTS),
    "threshold": (lambda f, x: f.threshold(x, 0.3, -7.0), POINTS),
    "glu": (lambda f, x: f.glu(x), real(3, 4)),
    "glu of rows": (lambda f, x: f.glu(x, 0), real(4, 3)),
}  # fmt: skip  # a table


@pytest.mark.parametrize("name", CALLS)
def test_two_orders(name: str) -> None:
    function, x = CALLS[name]
    if name == "softplus":  # PyTorch's is x itself from 20 on
        x = x[:-1]
    if name.partition(" ")[0] in {"elu", "celu", "selu"}:  # the second derivative jumps at 0
        x = x[x != 0]
    if name in {"hardsigmoid", "softsign"}:  # PyTorch has no second one, and 1/6 of float32; it takes a second to begin
        return compare(lambda x: function(F, x), lambda x: function(torch.nn.functional, x), x, rtol=1e-7)
    return agree_in_two_orders(lambda lib, x: function(lib.nn.functional, x), x, rtol=1e-9)


@pytest.mark.parametrize("eps", [None, 0.1])
def test_logit(eps: float | None) -> None:
    agree_in_two_orders(lambda lib, x: lib.logit(x, eps), INSIDE[1:])
    x = np.array([-0.5, 0.0, 1.0, 1.5])
    with np.errstate(all="ignore"):
        found = gg.logit(gg.tensor(x), eps).numpy()
    np.testing.assert_array_equal(found, torch.logit(torch.tensor(x), eps).numpy())
    slopes = []
    for lib in (gg, torch):
        given = lib.tensor(x[::3], requires_grad=True)
        with np.errstate(all="ignore"):
            lib.logit(given, eps).sum().backward()
        slopes.append(given.grad.numpy())
    np.testing.assert_array_equal(*slopes)
    whole = gg.logit(gg.tensor([0, 1]), 0.25)
    np.testing.assert_allclose(whole.numpy(), torch.logit(torch.tensor([0.0, 1.0]), 0.25).numpy(), rtol=1e-6)


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4), ()])
def test_learned_slopes(shape: tuple[int, ...]) -> None:
    for count in {1, shape[1] if len(shape) > 1 else 1}:
        agree_in_two_orders(lambda lib, x, w: lib.nn.functional.prelu(x, w), np.asarray(real(*shape)), real(count))
    compare(F.prelu, torch.nn.functional.prelu, np.zeros(2), real(1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_of_each_precision(dtype: str) -> None:
    """Far numbers overflow in no formula, in whatever precision it is computed."""
    x = np.array([-300.0, -20.0, -12.0, 12.0, 20.0, 300.0, 0.1], dtype)
    for name in ("sigmoid", "silu", "mish", "softplus", "gelu", "elu", "logsigmoid", "selu", "hardswish"):
        given, other = gg.tensor(x, requires_grad=True), torch.tensor(x.astype(np.float64), requires_grad=True)
        getattr(F, name)(given).sum().backward()
        getattr(torch.nn.functional, name)(other).sum().backward()
        assert given.grad.dtype == dtype
        rtol = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-8}[dtype]
        atol = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-8}[dtype]
        found = getattr(F, name)(gg.tensor(x)).numpy()
        assert found.dtype == dtype
        expected = getattr(torch.nn.functional, name)(torch.tensor(x.astype(np.float64))).numpy()
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
        np.testing.assert_allclose(given.grad.numpy(), other.grad.numpy(), rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_limits_of_whole_numbers(dtype: str) -> None:
    x = np.array([0, 1, 3, 7, 100], dtype)
    for call in (lambda f, x: f.hardtanh(x, 1, 6), lambda f, x: f.relu6(x), lambda f, x: f.relu(x)):
        found, expected = call(F, gg.tensor(x)), call(torch.nn.functional, torch.tensor(x))
        np.testing.assert_array_equal(found.numpy(), expected.numpy(), strict=True)


def test_far_and_complex_numbers() -> None:
    x = np.array([np.inf, 2.0])
    with np.errstate(invalid="ignore"):
        assert F.leaky_relu(gg.tensor(x), 0.0).tolist() == [np.inf, 2.0]
    assert F.softplus(gg.tensor(0.5), 2.0, 1.0).item() == pytest.approx(np.logaddexp(1, 0) / 2), "from beyond 1 on"
    z = np.array([1 + 2j, -0.5j])
    for name in ("sigmoid", "silu"):
        found, expected = getattr(F, name)(gg.tensor(z)), getattr(torch.nn.functional, name)(torch.tensor(z))
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def test_refusals() -> None:
    with pytest.raises(errors.GlassgradError, match=r"(?s)gelu: approximate='erf'.*'none' or 'tanh'"):
        F.gelu(gg.ones(2), approximate="erf")
    with pytest.raises(errors.GlassgradError, match=r"(?s)glu: size of dim 1=3.*an even size"):
        F.glu(gg.ones(2, 3), 1)
    with pytest.raises(errors.GlassgradError, match=r"(?s)glu: size of dim 0=1.*an even size"):
        F.glu(gg.tensor(1.0), 0)


def test_defaults_of_the_ops() -> None:
    for name in (
        "leaky_relu", "elu", "celu", "gelu", "hardtanh", "softshrink", "hardshrink", "softsign", "tanhshrink", "glu",
    ):  # fmt: skip  # a table
        x = np.stack([POINTS, POINTS[::-1]], 1).reshape(3, 5, 2)
        found, expected = getattr(activation, name)(gg.tensor(x)), getattr(torch.nn.functional, name)(torch.tensor(x))
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["elu", "celu", "selu"])
def test_the_slope_at_zero(name: str) -> None:
    compare(getattr(F, name), getattr(torch.nn.functional, name), np.zeros(2))


@pytest.mark.parametrize("dtype", ["uint8", "bool"])
def test_logit_of_whole_numbers_is_real(dtype: str) -> None:
    with np.errstate(divide="ignore"):
        y = gg.logit(gg.from_numpy(np.array([0, 1]).astype(dtype)))
    assert y.dtype == gg.float32
    assert y.tolist() == [-np.inf, np.inf]
