"""Means in norms and variances: constants give exactly 0, and large offsets the true value."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import functional as F

WAYS = ("eager", "numpy", "llvm")
SIZES = (3, 7, 100, 784, 1000, 20000)
NORMS = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "group_norm": lambda x: F.group_norm(x, 2),
    "instance_norm": F.instance_norm,
    "batch_norm": lambda x: F.batch_norm(x, training=True),
    "batch_norm of vectors": lambda x: F.batch_norm(x.mT.reshape(-1, 4), training=True),
    "by hand": lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + 1e-5).sqrt(),
}
SPREADS = {
    "var": lambda x: x.var(-1),
    "var of all": lambda x: x.var(),
    "var of rows": lambda x: x.var(0, correction=0),
    "std": lambda x: x.std(-1, keepdim=True),
}


def made(function, way):
    return function if way == "eager" else gg.compile(function, backend=way, strict=True)


def constant(value, size, dtype):
    return np.full((2, 4, size), value, dtype)


def sizes(name, way):
    """NumPy adds rows up one after the other, which limits the sums of columns that are long."""
    return SIZES[:-1] if name == "batch_norm of vectors" and way != "llvm" else SIZES


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*NORMS, *SPREADS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_a_constant_nothing_is_left(name, way, dtype):
    if (name, way) == ("by hand", "eager"):
        pytest.skip("op by op, the mean is what it is")
    function = made((NORMS | SPREADS)[name], way)
    for value in (0.1, 1e4 + 0.1, 3.3e-5, -7.7):
        ulp = np.finfo(dtype).eps * abs(value)
        limit = {"std": ulp / 4}.get(name, ulp**2 / 16) if name in SPREADS else 0
        for size in sizes(name, way):
            found = np.abs(function(gg.tensor(constant(value, size, dtype))).numpy()).max()
            assert found <= limit, (value, size)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NORMS)
def test_gradients_at_a_constant_are_those_of_the_formula(name, way):
    """With n = 0 the gradient is (g - mean(g)) / sqrt(eps), for g of powers of 2 whose sums are exact."""
    size = 784
    g = np.where(np.arange(size) % 2, 1.0, -1.0).astype(np.float32) * np.ones((2, 4, 1), np.float32)
    if name == "batch_norm of vectors":
        g = g.swapaxes(1, 2).reshape(-1, 4)

    def step(x):
        return (NORMS[name](x) * gg.tensor(g)).sum()

    gradient = made(gg.func.grad(step), way)(gg.tensor(constant(0.1, size, np.float32))).numpy()
    expected = g if g.ndim == 3 else g.reshape(2, size, 4).swapaxes(1, 2)
    np.testing.assert_allclose(gradient, expected / np.sqrt(1e-5), rtol=1e-5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*NORMS, *SPREADS])
@pytest.mark.parametrize("offset", [1.0, 100.0])
def test_an_offset_does_not_grow_into_the_result(name, way, offset):
    """A rounding of the mean by half a digit shifts the result by that many deviations, and by no more."""
    if (name, way) == ("by hand", "eager"):
        pytest.skip("op by op, the mean is what it is")
    rng = np.random.default_rng(0)
    function = (NORMS | SPREADS)[name]
    for size in sizes(name, way)[2:]:
        x = (offset + rng.normal(size=(2, 4, size))).astype(np.float32)
        truth = function(gg.tensor(x.astype(np.float64))).numpy()
        found = made(function, way)(gg.tensor(x)).numpy()
        np.testing.assert_allclose(found, truth, rtol=2e-6, atol=offset * 6e-8 + 2e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore:overflow|invalid:RuntimeWarning")
def test_numbers_out_of_range_stay_what_they_were(way):
    x = np.ones((3, 64), np.float32)
    x[:, 3] = 1e30, np.inf, np.nan
    var = made(SPREADS["var"], way)(gg.tensor(x)).numpy()
    assert var[0] == np.inf
    assert np.isnan(var[1:]).all()
    assert not made(NORMS["layer_norm"], way)(gg.tensor(x[:1])).numpy().any()


def test_large_batches_in_eager_mode():
    """The native code of batch norm, and sums of many rows."""
    x = gg.tensor(np.full((64, 8, 56, 56), 1e4 + 0.1, np.float32))
    assert not F.batch_norm(x, training=True).numpy().any()
    rows = (100 + np.random.default_rng(0).normal(size=(40_000, 3))).astype(np.float32)
    wide = F.batch_norm(gg.tensor(rows.astype(np.float64)), training=True).numpy()
    np.testing.assert_allclose(F.batch_norm(gg.tensor(rows), training=True).numpy(), wide, atol=5e-5)  # it was 2e-4
