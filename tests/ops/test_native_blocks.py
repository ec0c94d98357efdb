"""Large activations of eager mode run as native code, block by block: they agree with NumPy's in float64."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.ops import names  # noqa: F401 - `names` fills the registry
from glassgrad.ops.core import REGISTRY, Elementwise
from glassgrad.ops.kernels import native
from glassgrad.ops.kernels.blocks import FORMULAS, NATIVE
from glassgrad.ops.kernels.blocks import NATIVE_BLOCK as BLOCK

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

LARGE = 2 * BLOCK + 123  # two whole blocks and a rest


def marked(form: Any) -> bool:
    return form in FORMULAS and FORMULAS[form] in NATIVE


OPS = sorted(
    name
    for name, prim in REGISTRY.items()
    if isinstance(prim, Elementwise)
    and (marked(prim.forward) or marked(getattr(inspect.unwrap(prim.evaluate), "func", None)))
)


class Noted(native.Kernels):
    """Kernels for however little there is to do, and what was asked for."""

    def __init__(self) -> None:
        super().__init__(least_work=1)
        self.found: list[Any] = []

    def find(self, *request: Any) -> Any:
        kernel = super().find(*request)
        self.found.append(kernel)
        return kernel


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Noted:
    noted = Noted()
    monkeypatch.setattr(native, "kernels", noted)
    return noted


def test_the_expected_ops_are_native() -> None:
    assert {"erf", "erfc", "gelu", "gelu_tanh", "silu", "sigmoid", "softplus", "mish", "elu"} <= set(OPS)
    assert {"remainder", "hypot", "logaddexp2", "copysign", "lerp", "leaky_relu", "xlogy"} <= set(OPS)


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", OPS)
def test_values_and_slopes_are_those_of_numpy(name: str, dtype: Any, kernels: Noted) -> None:
    prim = REGISTRY[name]
    rng = np.random.default_rng(4)
    x = [domain.draw(rng, (LARGE,), dtype) for domain in prim.samples]
    c = rng.uniform(0.5, 2, LARGE).astype(dtype)
    y = prim(*x, **prim.sample_params)
    slopes = [rule(c, y, *x, **prim.sample_params) for rule in prim.vjps if rule]
    assert kernels.found
    assert None not in kernels.found
    kernels.off = True
    wide = [one.astype(np.float64) for one in x]
    exact = prim(*wide, **prim.sample_params)
    tolerance = 2e-6 if dtype == np.float32 else 1e-13
    assert y.dtype == dtype
    np.testing.assert_allclose(y, exact, rtol=tolerance, atol=tolerance)
    rules = [rule for rule in prim.vjps if rule]
    for rule, slope in zip(rules, slopes, strict=True):
        assert slope.dtype == dtype
        expected = rule(c.astype(np.float64), exact, *wide, **prim.sample_params)
        np.testing.assert_allclose(slope, expected, rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("name", ["gelu", "sigmoid", "elu", "softplus", "sign", "leaky_relu"])
def test_the_ends_of_the_line_are_those_of_numpy(name: str, kernels: Noted) -> None:
    prim, x = REGISTRY[name], np.zeros(LARGE, np.float32)
    x[:8] = [np.nan, np.inf, -np.inf, 1e30, -1e30, -0.0, 88.9, -103.0]
    x[-1] = np.nan
    found = prim(x, **prim.sample_params)
    kernels.off = True
    with np.errstate(invalid="ignore"):  # NumPy warns of 0 * inf
        np.testing.assert_allclose(found, prim(x, **prim.sample_params), rtol=1e-6, atol=1e-30)


def test_axes_in_any_order_and_a_repeated_cotangent(kernels: Noted) -> None:
    values = np.random.default_rng(1).standard_normal((40, 60, 50)).astype(np.float32)
    x = gg.tensor(values, requires_grad=True)
    gg.silu(x.permute(2, 0, 1)).sum().backward()
    assert len(kernels.found) == 2
    assert None not in kernels.found
    wide = values.astype(np.float64)
    s = 1 / (1 + np.exp(-wide))
    np.testing.assert_allclose(x.grad.numpy(), s * (1 + wide * (1 - s)), rtol=1e-5, atol=1e-6)


def test_arrays_of_every_size_share_one_kernel(kernels: Noted) -> None:
    for size in (LARGE, LARGE + 1, 3 * BLOCK):
        gg.sigmoid(gg.zeros(size))
    assert len({id(one) for one in kernels.found}) == 1


def test_a_number_needs_no_kernel_of_its_own(kernels: Noted) -> None:
    x = np.random.default_rng(0).uniform(-3, 3, LARGE).astype(np.float32)
    for number in (0.7, 2, np.float32(1.5)):
        found = gg.remainder(gg.tensor(x), number).numpy()
        np.testing.assert_array_equal(found, np.remainder(x, np.float32(number)))
    assert len(kernels._known) == 1


def test_what_is_no_float_of_one_kind_stays_with_numpy(kernels: Noted) -> None:
    mixed = REGISTRY["sigmoid"].vjps[0](np.ones(LARGE), np.full(LARGE, 0.5, np.float32), np.zeros(LARGE, np.float32))
    assert mixed.dtype == np.float64
    gg.sigmoid(gg.zeros(LARGE, dtype=gg.float16))
    gg.sigmoid(gg.zeros(LARGE, dtype=gg.complex64))
    assert not kernels.found
