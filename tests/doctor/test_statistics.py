"""Statistics and bins of single arrays against NumPy by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from glassgrad.doctor import BIN_EDGES, magnitudes, summarise
from glassgrad.doctor.quantities import statistics

RNG = np.random.default_rng(3)
CASES = {
    "normal": RNG.normal(size=(7, 5)),
    "float32": RNG.normal(size=(40,)).astype(np.float32),
    "transposed": RNG.normal(size=(4, 6)).T,
    "scalar": np.array(-2.5),
    "tiny": RNG.normal(size=30) * 1e-30,
    "huge": RNG.normal(size=30) * 1e30,
    "zeros": np.zeros(9),
    "integers": np.arange(-4, 5),
    "half": RNG.normal(size=20).astype(np.float16),
    "large": np.where(RNG.random(70_003) < 0.2, 0, RNG.normal(3, 1, 70_003)).astype(np.float32),
    "large doubles": RNG.normal(size=(263, 257)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_summary_is_what_numpy_says(name: str) -> None:
    array = CASES[name]
    found, exact = summarise(array), array.astype(np.float64).ravel()
    expected = {
        "count": array.size, "mean": exact.mean(), "std": exact.std(), "abs_mean": np.abs(exact).mean(),
        "abs_max": np.abs(exact).max(), "minimum": exact.min(), "maximum": exact.max(),
        "norm": np.linalg.norm(exact), "zeros": (exact == 0).mean(), "nonfinite": 0,
    }  # fmt: skip  # a table
    for key, value in expected.items():
        assert getattr(found, key) == pytest.approx(value, rel=1e-12, abs=1e-300), key


def test_large_arrays_are_read_by_native_code() -> None:
    pytest.importorskip("llvmlite", reason="NumPy reads them without llvmlite")
    array = np.ones(70_003, np.float32)
    sums = statistics._Sums()
    assert sums.add_natively(array) > 70_003 - 16
    assert sums.nonzero == sums.sum == sums.count
    array[5] = np.nan  # for NumPy, which counts these
    assert statistics._Sums().add_natively(array) == 0
    assert (summarise(array).nonfinite, summarise(array).mean) == (1, 1.0)


def test_what_is_not_finite_is_counted_and_left_out_of_all_but_the_norm() -> None:
    found = summarise(np.array([1.0, np.nan, -3.0, np.inf]))
    assert (found.mean, found.std, found.abs_max, found.minimum, found.nonfinite) == (-1.0, 2.0, 3.0, -3.0, 2)
    assert math.isnan(found.norm)
    assert summarise(np.array([1.0, -np.inf])).norm == math.inf


@pytest.mark.parametrize("array", [np.zeros((0, 3)), np.full(4, np.nan)], ids=["empty", "all-nan"])
def test_statistics_of_nothing_are_nan(array: np.ndarray) -> None:
    found = summarise(array)
    assert all(math.isnan(value) for value in (found.mean, found.std, found.abs_mean, found.abs_max, found.norm))
    assert found.nonfinite == array.size


def test_a_norm_whose_square_overflows_is_still_known() -> None:
    assert summarise(np.array([3e200, 4e200])).norm == pytest.approx(5e200, rel=1e-12)


def test_complex_numbers_count_as_their_parts() -> None:
    assert summarise(np.array([3 + 4j])).norm == 5


@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_a_histogram_with_the_same_edges(name: str) -> None:
    array = CASES[name]
    edges = np.concatenate([[-1.0], BIN_EDGES, [np.inf]])
    expected, _ = np.histogram(np.abs(array.astype(np.float64)), edges)
    np.testing.assert_array_equal(magnitudes(array), expected)


def test_edges_zeros_infinities_and_nan_go_where_the_description_says() -> None:
    counts = magnitudes(np.array([0.0, BIN_EDGES[0], -BIN_EDGES[5], BIN_EDGES[-1], np.inf, -np.inf, np.nan]))
    expected = np.zeros(len(BIN_EDGES) + 1, int)
    expected[[0, 1, 6]] = 1
    expected[-1] = 3
    np.testing.assert_array_equal(counts, expected)
    assert counts.sum() == 6


def test_every_bin_is_twice_as_wide_as_the_one_before() -> None:
    np.testing.assert_array_equal(BIN_EDGES[1:], 2 * BIN_EDGES[:-1])
    assert (BIN_EDGES[0], BIN_EDGES[-1]) == (2.0**-40, 2.0**15)
