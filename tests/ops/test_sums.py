"""Sums over axes as products with ones, against sums in float64 and NumPy's sums."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import glassgrad as gg
from glassgrad.ops.kernels import sums

CASES = (((500, 4), (0,)), ((500, 4), (1,)), ((30, 20, 3), (1,)), ((8, 5, 7, 9), (0, 2)))
BOUND = {"f": 4e-6, "d": 8e-15}


@st.composite
def arrays(draw: st.DrawFn) -> tuple[Any, tuple[int, ...]]:
    """An array from a few elements to some thousand times `sums.FROM`, and axes of it."""
    ndim = draw(st.integers(1, 4))
    shape = [draw(st.sampled_from((1, 2, 3, 7, 20, 64))) for _ in range(ndim)]
    shape[draw(st.integers(0, ndim - 1))] *= draw(st.sampled_from((1, 1, 13, 400)))
    while np.prod(shape) > 1 << 19:
        shape[int(np.argmax(shape))] //= 2
    axes = tuple(sorted(draw(st.sets(st.integers(0, ndim - 1), min_size=1))))
    x = np.random.default_rng(draw(st.integers(0, 99))).random(shape) + 0.5
    return x.astype(draw(st.sampled_from("fd"))), axes


@given(arrays(), st.booleans())
def test_sums_are_those_in_double_precision(drawn: tuple[Any, tuple[int, ...]], keepdims: bool) -> None:
    x, axes = drawn
    found, expected = sums.over(x, axes, keepdims), np.add.reduce(x, axes, np.longdouble, keepdims=keepdims)
    assert found.dtype == x.dtype
    assert np.shape(found) == expected.shape
    np.testing.assert_allclose(found, expected.astype("d"), rtol=BOUND[x.dtype.char])


def test_what_is_too_long_for_one_product_is_summed_in_parts() -> None:
    for shape, axes in (((3, 20_000), (1,)), ((20_000, 3), (0,)), ((2, 20_000, 2), (1,)), ((100_003,), (0,))):
        x = np.random.default_rng(1).random(shape, np.float32)
        np.testing.assert_allclose(sums.over(x, axes), x.astype("d").sum(axes), rtol=2e-5)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("shape", "axes"), [((500, 4), (0,)), ((500, 4), (1,)), ((30, 20, 3), (1,)), ((8, 5, 7, 9), (0, 2))]
)
def test_a_number_that_is_not_finite_stays_in_its_own_sum(
    shape: tuple[int, ...], axes: tuple[int, ...], odd: float
) -> None:
    x = np.ones(shape, np.float32)
    x[(1,) * len(shape)] = odd
    assert x.size >= sums.FROM
    np.testing.assert_array_equal(sums.over(x, axes), np.add.reduce(x, axes))


def test_other_layouts_and_dtypes_are_numpys() -> None:
    x = np.random.default_rng(2).random((60, 50, 4))
    kinds = [
        x.transpose(1, 0, 2),
        x[::2],
        x[:, ::-1],
        np.asfortranarray(x),
        x.astype("i4"),
        x.astype("e"),
        x.astype("D"),
    ]
    for kind, axes in itertools.product(kinds, [(0,), (1,), (2,), (0, 2), (0, 1, 2), 1, None, ()]):
        found, expected = sums.over(kind, axes), np.add.reduce(kind, axes)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_sum_may_be_written_to() -> None:
    x = gg.tensor(np.ones((700, 3)), requires_grad=True)
    y = x.sum(0)
    with gg.no_grad():
        y += 1
    assert (sums.ones(700, np.dtype("d")) == 1).all()
    assert y.tolist() == [701.0] * 3


def test_empty_sums_are_zero() -> None:
    for shape, axes in (((0, 4), (0,)), ((2, 0, 4), (1,)), ((4, 0), (1,))):
        assert (sums.over(np.ones(shape, np.float32), axes) == 0).all()
