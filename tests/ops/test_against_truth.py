"""The comparison of float32 results with the truth: it accepts a single rounding and rejects a larger error."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.against_torch import EPS, conditions, near_truth


def test_one_rounding_is_near_and_a_wrong_number_is_not() -> None:
    truth = np.random.default_rng(0).normal(size=50)
    near_truth(truth.astype(np.float32), truth, multiple=0.5)
    off = truth.astype(np.float32)
    off[7] += np.float32(40 * EPS * np.abs(truth).max())
    with pytest.raises(AssertionError, match="here"):
        near_truth(off, truth, what="here")
    near_truth(off, truth, condition=5.0)
    with pytest.raises(AssertionError):
        near_truth(np.zeros(3, np.float32), np.zeros(2))


def test_conditions_are_those_of_the_function() -> None:
    x = [np.linspace(1, 2, 20)]
    power, cancelling = conditions(lambda xs: [xs[0] ** 30, (xs[0] - 1) * 1.0], x)
    assert 15 < power < 31
    assert 1 <= cancelling < 3
    (lost,) = conditions(lambda xs: [(xs[0] + 1e4) - 1e4 - xs[0] + xs[0].sum() - 30 + 1e-3], x)
    assert lost > 1000
