"""`choose` is `np.where`, bit for bit, whatever it is given, and `positive` the maximum with 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.ops.kernels.choose import choose, positive

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
