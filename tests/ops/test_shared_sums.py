"""Large sums and joined arrays run on several cores; the results equal NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.ops.kernels import parallel

ROWS = parallel.LARGE // 64


class Watched(parallel.Shares):
    """Shares for three threads that note the rows of each."""

    def __init__(self):
        blas = parallel.Blas(lambda: 3, lambda _: None)
        super().__init__(lambda: blas)
        self.seen = []

    def run(self, work, count, multiplications):
        def noted(first, last):
            self.seen.append((first, last))
            work(first, last)

        super().run(noted, count, multiplications)


THIRDS = [(0, ROWS // 3), (ROWS // 3, 2 * ROWS // 3), (2 * ROWS // 3, ROWS)]


@pytest.fixture
def three(monkeypatch):
    shares = Watched()
    monkeypatch.setattr(parallel, "shares", shares)
    return shares.seen


def drawn(*shape, dtype=np.float32):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("order", ["rows", "columns last", "every second"])
def test_sums_are_numpys(three, order):
    x, y = drawn(ROWS, 8, 8), drawn(2 * ROWS, 8, 8)
    y = {"rows": y[:ROWS], "columns last": y[:ROWS].transpose(0, 2, 1), "every second": y[::2]}[order]
    expected = x.__add__(y)
    np.testing.assert_array_equal(parallel.add(x, y), expected)
    assert sorted(three) == THIRDS
    parallel.add(x, y, x)
    np.testing.assert_array_equal(x, expected)


def test_what_is_small_or_unlike_is_left_whole(three):
    x, y = drawn(ROWS, 64), drawn(ROWS, 64, dtype=np.float64)
    assert parallel.add(x, y).dtype == np.float64
    assert parallel.add(x[:-1], x[:-1]).shape == (ROWS - 1, 64)
    assert parallel.add(x, x[0]).shape == x.shape
    assert not three


@pytest.mark.parametrize("axis", [1, 2])
def test_joined_arrays_are_numpys(three, axis):
    parts = [drawn(ROWS, 8, 4), drawn(ROWS, 8, 4) + 1, drawn(ROWS, *((3, 4) if axis == 1 else (8, 1)))]
    found = gg.cat([gg.tensor(part) for part in parts], dim=axis)
    assert sorted(three) == THIRDS
    start = 0
    for part in parts:
        stop = start + part.shape[axis]
        np.testing.assert_array_equal(np.take(found.numpy(), range(start, stop), axis), part)
        start = stop


def test_arrays_that_do_not_fit_are_refused(three):
    with pytest.raises(ValueError, match="must match exactly"):
        parallel.joined(np, (drawn(ROWS, 64), drawn(ROWS + 1, 64)), 1)
    assert parallel.joined(np, (drawn(ROWS, 8, 8), drawn(ROWS, 8, 8).transpose(0, 2, 1)), 1).shape == (ROWS, 16, 8)


def test_threads_warn_as_the_caller_does(three):
    x = np.full((ROWS, 64), np.finfo(np.float32).max)
    with np.errstate(over="ignore"):
        assert np.isinf(parallel.add(x, x)).all()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        parallel.add(x, x)


def test_gradients_that_meet_are_added(three):
    x = gg.tensor(drawn(ROWS, 64), requires_grad=True)
    y = x * 1.0
    weights = [drawn(ROWS, 64) + number for number in range(3)]
    sum((y * gg.tensor(weight)).sum() for weight in weights).backward()
    np.testing.assert_allclose(x.grad.numpy(), sum(weights), rtol=1e-6, atol=1e-6)
    assert sorted(three) == sorted([*THIRDS, *THIRDS])  # three terms, two sums
