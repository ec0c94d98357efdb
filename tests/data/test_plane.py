"""Points in the plane: their positions without noise, their spread with it, and that no line separates them."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad.data.plane import SHAPES, moons, plane_data, xor


def test_moons_are_two_half_circles() -> None:
    points, labels = moons(201, 0.0, np.random.default_rng(0))
    upper, lower = points[labels == 0], points[labels == 1]
    np.testing.assert_allclose((upper**2).sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(((lower - [1, 0.5]) ** 2).sum(axis=1), 1, atol=1e-6)
    assert upper[:, 1].min() >= -1e-6
    assert lower[:, 1].max() <= 0.5 + 1e-6


def test_xor_tells_whether_the_signs_differ() -> None:
    points, labels = xor(400, 0.1, np.random.default_rng(0))
    np.testing.assert_array_equal(labels, (points[:, 0] * points[:, 1] < 0).astype(int))
    assert np.bincount(labels).tolist() == [200, 200]


@pytest.mark.parametrize("shape", SHAPES)
def test_noise_has_the_deviation_asked_for(shape: str) -> None:
    without, _ = SHAPES[shape](4_000, 0.0, np.random.default_rng(0))
    noisy, _ = SHAPES[shape](4_000, 0.25, np.random.default_rng(0))
    assert (noisy - without).std() == pytest.approx(0.25, rel=0.03)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_straight_line_does_not_divide_the_classes(shape: str) -> None:
    data = plane_data(shape, 400, 0.1, seed=1)
    table = np.column_stack([data.train_points, np.ones(400)]).astype(np.float64)
    weights, *_ = np.linalg.lstsq(table, 2.0 * data.train_labels - 1, rcond=None)
    assert ((table @ weights > 0) == data.train_labels).mean() < 0.95


@pytest.mark.parametrize("shape", SHAPES)
def test_points_depend_on_the_seed_alone_and_tests_are_others(shape: str) -> None:
    first, again, other = (plane_data(shape, 100, 0.2, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.train_points, again.train_points)
    assert (first.train_points != other.train_points).any()
    assert first.test_points.shape == (25, 2)
    assert (first.train_points[:25] != first.test_points).any()
    assert (first.train_points.dtype, first.train_labels.dtype) == (np.float32, np.int64)
