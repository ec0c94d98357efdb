"""Large arrays use code paths that small ones do not: blocks, and float32 forms of special functions. Both agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import glassgrad as gg
from glassgrad.ops import names  # noqa: F401 - `names` fills the registry
from glassgrad.ops.core import REGISTRY, Elementwise
from glassgrad.ops.kernels.blocks import BLOCK, FORMULAS, in_blocks

LARGE = 2 * BLOCK + 123  # two whole blocks and a rest
BLOCKED = sorted(
    name
    for name, prim in REGISTRY.items()
    if isinstance(prim, Elementwise)
    and any(form in FORMULAS for form in (prim.forward, *prim.partials) if callable(form))
)


def test_the_expected_ops_run_in_blocks() -> None:
    assert {"silu", "gelu", "sigmoid", "softplus", "leaky_relu", "elu", "maximum", "logaddexp", "erfc"} <= set(BLOCKED)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", BLOCKED)
def test_large_and_small_agree(name: str, dtype: Any) -> None:
    prim = REGISTRY[name]
    rng = np.random.default_rng(4)
    x = [domain.draw(rng, (LARGE,), dtype) for domain in prim.samples]
    c = rng.uniform(0.5, 2, LARGE).astype(dtype)
    params = prim.sample_params
    y = prim(*x, **params)
    # At 100 elements everything is computed in one piece, by SciPy where SciPy has the function.
    pieces = [slice(0, 100), slice(BLOCK - 50, BLOCK + 50), slice(LARGE - 100, LARGE)]
    tolerance = 4e-6 if dtype == np.float32 else 1e-13
    for piece in pieces:
        parts = [each[piece] for each in x]
        expected = prim(*parts, **params)
        assert y.dtype == expected.dtype
        np.testing.assert_allclose(y[piece], expected, rtol=tolerance, atol=tolerance / 50)
        for rule in filter(None, prim.vjps or ()):
            found = rule(c, y, *x, **params)
            assert found.dtype == dtype
            assert found.shape == c.shape
            small = rule(c[piece], expected, *parts, **params)
            np.testing.assert_allclose(found[piece], small, rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("make", "blocks"),
    [
        (lambda x: x, True),
        (lambda x: x.T, True),
        (lambda x: x.reshape(4, 250, 300).transpose(2, 0, 1), True),
        (lambda x: x[::-1], False),
        (lambda x: x[:, ::2], False),
        (lambda x: np.broadcast_to(x[0], x.shape), False),
    ],
    ids=["plain", "transposed", "channels last", "reversed", "strided", "broadcast"],
)
def test_every_layout_gives_the_same(make: Callable[[Any], Any], blocks: bool) -> None:
    x = make(np.random.default_rng(1).standard_normal((1000, 300)))
    sizes = []

    def doubled(_head: Any, a: Any, b: Any) -> Any:
        sizes.append(a.size)
        return 2 * a * b

    y = in_blocks(doubled)(np, x, x)
    np.testing.assert_array_equal(y, 2 * x * x)
    assert (max(sizes) == BLOCK) is blocks
    assert y.strides == (2 * x * x).strides


def test_a_cotangent_below_a_sum_repeats_one_element() -> None:
    values = np.linspace(-4, 4, 200_000)
    x = gg.tensor(values, requires_grad=True)
    gg.silu(x).sum().backward()
    s = scipy.special.expit(values)
    np.testing.assert_allclose(x.grad.numpy(), s * (1 + values * (1 - s)), rtol=1e-12, atol=1e-14)


def test_the_cotangent_may_be_wider() -> None:
    x = gg.tensor(np.linspace(-4, 4, 200_000), dtype=gg.float32, requires_grad=True)
    (gg.silu(x) * np.full(200_000, 2.0)).sum().backward()
    s = scipy.special.expit(np.linspace(-4, 4, 200_000))
    assert x.grad.dtype == np.float32
    np.testing.assert_allclose(x.grad.numpy(), 2 * s * (1 + np.linspace(-4, 4, 200_000) * (1 - s)), atol=1e-6)


# --- float32 forms against SciPy in float64 -------------------------------------------------------


def worst(found: Any, expected: Any) -> float:
    expected = np.asarray(expected, np.float64)
    keep = np.abs(expected) > 1e-30
    return float(np.max(np.abs(found[keep] / expected[keep] - 1)))


LINE = np.linspace(-14, 14, 200_001).astype(np.float32)
WIDE = LINE.astype(np.float64)


def test_error_of_gelu_and_erfc() -> None:
    found, exact = REGISTRY["gelu"](LINE), WIDE * scipy.special.ndtr(WIDE)
    assert worst(found[LINE > -4], exact[LINE > -4]) < 2e-6
    assert worst(found[LINE > -10], exact[LINE > -10]) < 6e-6
    assert worst(REGISTRY["erfc"](LINE / 2), scipy.special.erfc(WIDE / 2)) < 2e-6


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_error_of_gelu_slope(dtype: Any, error: float) -> None:
    x = np.linspace(-6, 6, 20_001).astype(dtype)
    x[10_000] = 0
    wide = x.astype(np.float64)
    exact = scipy.special.ndtr(wide) + wide * np.exp(-(wide**2) / 2) / np.sqrt(2 * np.pi)
    (rule,) = REGISTRY["gelu"].vjps
    slope = rule(np.ones_like(x), None, x)
    assert np.abs(slope - exact).max() < error
    assert slope[10_000] == 0.5


@pytest.mark.parametrize(
    "name", ["gelu", "erfc", "erfinv", "digamma", "i0", "i1", "atan2", "sigmoid", "logaddexp", "leaky_relu"]
)
def test_edges_of_large_arrays_are_those_of_small_ones(name: str) -> None:
    prim = REGISTRY[name]
    edges = np.array([0.0, -0.0, 1.0, -1.0, 1e3, -1e3, 1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan, -2.0], np.float32)
    few = [edges.copy() for _ in prim.samples]
    many = [np.resize(edges, 200_000) for _ in prim.samples]
    params = prim.sample_params
    with np.errstate(all="ignore"):
        small, large = prim(*few, **params), prim(*many, **params)
        found = prim.vjps[0](np.ones(200_000, np.float32), large, *many, **params)
        expected = prim.vjps[0](np.ones(13, np.float32), small, *few, **params)
    np.testing.assert_allclose(large, np.resize(small, 200_000), rtol=1e-6)
    np.testing.assert_allclose(found, np.resize(expected, 200_000), rtol=1e-6)
