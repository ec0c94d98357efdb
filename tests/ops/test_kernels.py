"""Kernels on arrays are NumPy's functions: `choose` is `np.where` bit for bit, `positive` the maximum with 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.ops.kernels.choose import choose, max_along, min_along, positive

SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-45])


def sample(dtype: Any, seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).choice(SPECIAL, (50, 60)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("right", ["array", "zero", "minus zero", "half", "nan", "strided", "row", "wide", "integer"])
def test_choose_is_where(dtype: Any, right: str) -> None:
    mask = np.random.default_rng(3).random((50, 60)) < 0.5
    a = sample(dtype, 1)
    b = {
        "array": sample(dtype, 2), "zero": 0, "minus zero": -0.0, "half": 0.5, "nan": float("nan"),
        "strided": np.asfortranarray(sample(dtype, 2))[::-1], "row": sample(dtype, 2)[0],
        "wide": sample(np.float64, 2), "integer": np.arange(3000).reshape(50, 60),
    }[right]  # fmt: skip  # a table
    for first, second in ((a, b), (b, a)):
        found, expected = choose(mask, first, second), np.where(mask, first, second)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_positive_is_the_maximum_with_zero(dtype: Any) -> None:
    drawn = np.random.default_rng(3).standard_normal((4, 40, 31, 8)).astype(dtype)
    drawn[0, :3, 0, 0] = np.nan, np.inf, -np.inf
    for x in (drawn, drawn.transpose(0, 3, 1, 2), drawn[:, ::2], drawn[:1, :1], drawn[..., :0]):
        found = positive(x)
        np.testing.assert_array_equal(found, np.maximum(x, 0))
        assert found.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64])
@pytest.mark.parametrize("keepdims", [True, False])
def test_extremes_along_an_axis_are_reductions(dtype: Any, keepdims: bool) -> None:
    drawn = np.random.default_rng(4).integers(-9, 9, (30, 5, 7)).astype(dtype)
    if dtype != np.int64:
        drawn[0, :3, 0] = np.nan, np.inf, -np.inf
        drawn[1, 0] = np.nan
    for x in (drawn, drawn.reshape(150, 7), drawn.transpose(1, 0, 2), drawn[:, :, ::2], drawn[:2], drawn[:, 0, :1]):
        for axis in (x.ndim - 1, (x.ndim - 1,), x.ndim - 2, 0, tuple(range(x.ndim))):
            for along, reduced in ((max_along, np.maximum), (min_along, np.minimum)):
                found, expected = along(x, axis, keepdims), reduced.reduce(x, axis, keepdims=keepdims)
                assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rows", [64, 65_536, 65_537])
def test_extremes_of_so_many_rows_are_reductions(rows: int) -> None:
    """For more than 65,536 the places of the rows' beginnings are not kept."""
    x = np.random.default_rng(rows).normal(size=(rows, 3))
    np.testing.assert_array_equal(max_along(x, 1), x.max(1, keepdims=True))
    np.testing.assert_array_equal(min_along(x, 1), x.min(1, keepdims=True))


def test_extremes_of_no_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="zero-size array"):
        max_along(np.zeros((100, 0), np.float32), 1)
