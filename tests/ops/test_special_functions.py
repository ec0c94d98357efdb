"""Bessel, Airy and incomplete gamma functions: against their defining integrals, and functions without a derivative."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.special

import glassgrad as gg
from glassgrad import errors
from glassgrad.ops import special
from glassgrad.ops.core import REGISTRY
from tests.ops.against_torch import compare, torch


def bessel(order: int, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """J_n(x) = (1 / pi) * integral of cos(n t - x sin t) from 0 to pi; the trapezoidal rule is exact to rounding."""
    t = np.linspace(0, np.pi, 2001)
    f = np.cos(order * t - x[:, None] * np.sin(t))
    return (f.sum(1) - 0.5 * (f[:, 0] + f[:, -1])) / (len(t) - 1)


@pytest.mark.parametrize(("name", "order"), [("bessel_j0", 0), ("bessel_j1", 1)])
def test_bessel_functions_are_their_integrals(name: str, order: int) -> None:
    x = np.linspace(-60, 60, 301)
    t = gg.tensor(x, requires_grad=True)
    y = getattr(gg.special, name)(t)
    np.testing.assert_allclose(y.detach().numpy(), bessel(order, x), atol=1e-14)
    (slope,) = gg.autograd.grad(y.sum(), t)
    # J_n' = (J_(n-1) - J_(n+1)) / 2
    np.testing.assert_allclose(slope.numpy(), (bessel(order - 1, x) - bessel(order + 1, x)) / 2, atol=1e-13)


def test_spherical_bessel_function_and_its_slope() -> None:
    x = np.array([0.0, 1e-9, 1e-3, 0.5, -2.0, 30.0, 1e6])
    t = gg.tensor(x, requires_grad=True)
    y = gg.special.spherical_bessel_j0(t)
    np.testing.assert_allclose(y.detach().numpy(), scipy.special.spherical_jn(0, x), rtol=1e-9, atol=1e-12)
    (slope,) = gg.autograd.grad(y.sum(), t)
    # Older versions of SciPy know the slope, which is odd, of positive numbers only.
    expected = np.sign(x) * scipy.special.spherical_jn(0, np.abs(x), derivative=True)
    np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-7, atol=1e-12)
    assert gg.special.spherical_bessel_j0(gg.tensor([np.inf, -np.inf])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions(name: str) -> None:
    a, x = np.array([0.5, 1.0, 2.5, 7.0]), np.array([0.2, 1.0, 3.0, 5.0])
    compare(
        lambda t: getattr(gg.special, name)(gg.tensor(a), t),
        lambda t: getattr(torch.special, name)(torch.tensor(a), t),
        x,
    )
    short = {"gammainc": "igamma", "gammaincc": "igammac"}[name]
    first, second = gg.tensor(a), gg.tensor(x)
    assert getattr(first, short)(second).tolist() == getattr(gg, short)(first, second).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: gg.special.gammainc(x, 2.0),
        lambda x: gg.igammac(x, gg.tensor(2.0)),
        lambda x: gg.special.betainc(x, 2.0, 0.5),
        lambda x: gg.special.betainc(2.0, x, 0.5),
    ],
)
@pytest.mark.parametrize(
    "way",
    [
        lambda f, x: gg.func.grad(f)(x),
        lambda f, x: gg.func.jvp(f, (x,), (x,)),
        lambda f, x: gg.func.jacfwd(f)(x),
        lambda f, x: gg.func.hessian(f)(x),
        lambda f, x: f(gg.tensor(1.5, requires_grad=True)),
    ],
)
def test_what_has_no_derivative_is_refused_not_dropped(call: Callable[[Any], Any], way: Callable[..., Any]) -> None:
    with pytest.raises(errors.ArgumentError, match="no derivative"):
        way(call, gg.tensor(1.5))
    assert call(gg.tensor(1.5)).shape == ()


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e"])
def test_scipys_names_of_bessel_functions_have_gradients(name: str) -> None:
    function = getattr(scipy.special, name)
    assert gg.verify.gradcheck(function, (gg.tensor(np.array([0.7, 1.5, 4.0]), requires_grad=True),))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_trigamma_function_of_many_numbers_of_all_kinds(dtype: Any) -> None:
    rare = [0.0, -1.0, -2.5, np.inf, -np.inf, np.nan, 1e-10, 1e30, 1.0, 0.5]
    x = np.concatenate([rare, np.random.default_rng(0).normal(size=400) * 5]).astype(dtype)
    expected = scipy.special.polygamma(1, x.astype(np.float64))
    for found in (gg.special.polygamma(1, gg.tensor(x)), gg.special.polygamma(1, gg.tensor(x[:40]))):
        rtol = 1e-12 if dtype is np.float64 else 2e-6
        np.testing.assert_allclose(found.numpy(), expected[: len(found)], rtol=rtol)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_nothing_times_a_logarithm(name: str) -> None:
    """Where x is 0, so is x log y and its slope by x, for every y but NaN; elsewhere the logarithm itself."""
    log = np.log if name == "xlogy" else np.log1p
    y = np.array([-2.0, -1.0, -0.5, 0.0, 0.3, 0.5, 2.0, np.inf])
    with np.errstate(all="ignore"):
        slopes = log(y)
    x, z = gg.tensor(np.zeros(8), requires_grad=True), gg.tensor(np.ones(8), requires_grad=True)
    function = getattr(gg.special, name)
    assert function(x, gg.tensor(y)).tolist() == [0.0] * 8
    with np.errstate(all="ignore"):
        (by_zero,) = gg.autograd.grad(function(x, gg.tensor(y)).sum(), x)
        (by_one,) = gg.autograd.grad(function(z, gg.tensor(y)).sum(), z)
    edge = 0 if name == "xlogy" else -1
    np.testing.assert_allclose(by_zero.numpy(), np.where(y <= edge, 0.0, slopes), rtol=1e-12)
    np.testing.assert_allclose(by_one.numpy(), slopes, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_error_functions_without_scipy(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(-3, 3, 13).astype(dtype)
    expected = {name: getattr(scipy.special, name)(x) for name in ("erf", "erfc")}
    monkeypatch.setattr(special, "present", lambda package: package != "scipy")
    special._scipy.cache_clear()
    try:
        for name, y in expected.items():
            found = getattr(gg.special, name)(gg.tensor(x)).numpy()
            assert found.dtype == dtype
            np.testing.assert_allclose(found, y, rtol=4 * np.finfo(dtype).eps)
        assert float(gg.special.erf(gg.tensor(dtype(0.5)))) == pytest.approx(math.erf(0.5))
    finally:
        special._scipy.cache_clear()


SCIPYS = ("erf", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "ndtri", "gammaln", "digamma", "entr", "i0e", "i1e")


@pytest.mark.parametrize("name", SCIPYS)
def test_half_precision_is_computed_in_single_and_rounded_once(name: str) -> None:
    x = np.linspace(0.05, 0.95, 19).astype(np.float16)
    found = getattr(gg.special, name)(gg.tensor(x)).numpy()
    exact = getattr(scipy.special, name)(x.astype(np.float64))
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, exact, rtol=6e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_number_beside_an_array_takes_its_dtype(name: str, dtype: Any) -> None:
    x = np.array([0.25, 0.5, 2.0, 7.0], dtype)
    prim, function = REGISTRY[name], getattr(scipy.special, name)
    for number in (2, 0.3, -1.5):
        for found, exact in (
            (prim(number, x), function(dtype(number), x.astype(np.float64))),
            (prim(x, abs(number)), function(x.astype(np.float64), float(dtype(abs(number))))),
        ):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, exact, rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("count", [20, 200])
def test_polygamma_of_every_dtype_and_length(order: int, count: int) -> None:
    whole = np.arange(1, count + 1)
    exact = scipy.special.polygamma(order, whole)
    for dtype in (np.float16, np.float32, np.float64, np.int64):
        found = REGISTRY["polygamma"](whole.astype(dtype), order=order)
        assert found.dtype == (np.float64 if dtype is np.int64 else dtype)
        rtol = {np.float16: 1e-3, np.float32: 1e-6}.get(dtype, 1e-12)
        np.testing.assert_allclose(found, exact, rtol=rtol, atol=6e-8 if dtype is np.float16 else 0)
    x = gg.tensor(whole[:10] / 2, requires_grad=True)
    np.testing.assert_allclose(
        gg.autograd.grad(gg.special.polygamma(0, x).sum(), x)[0].numpy(), scipy.special.polygamma(1, x.detach().numpy())
    )


def test_slopes_of_scaled_and_plain_bessel_functions() -> None:
    """Of order 0 and 1, from the derivatives that SciPy has itself; at 0 too."""
    x = np.array([-30.0, -2.5, -1.0, -1e-3, 0.0, 1e-3, 0.7, 1.0, 4.0, 30.0])
    for order, name in enumerate(("i0", "i1")):
        slope = scipy.special.ivp(order, x)
        plain, scaled = gg.tensor(x, requires_grad=True), gg.tensor(x, requires_grad=True)
        getattr(gg.special, name)(plain).sum().backward()
        np.testing.assert_allclose(plain.grad.numpy(), slope, rtol=1e-9)
        getattr(gg.special, f"{name}e")(scaled).sum().backward()
        expected = np.exp(-np.abs(x)) * slope - np.sign(x) * getattr(scipy.special, f"{name}e")(x)
        np.testing.assert_allclose(scaled.grad.numpy(), expected, rtol=1e-9, atol=1e-9)


def test_an_array_namespace_with_functions_of_its_own_computes_them() -> None:
    own = SimpleNamespace(xlogy=lambda a, b: ("xlogy", a, b), erfcx=lambda x: ("erfcx", x))
    assert REGISTRY["xlogy"].forward(own, 2, 3) == ("xlogy", 2, 3)
    assert REGISTRY["erfcx"].forward(own, 2) == ("erfcx", 2)
    assert REGISTRY["xlog1py"].forward(own, 2.0, np.ones(1)) == pytest.approx(2 * math.log(2))
