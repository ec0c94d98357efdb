"""Products of few rows that read a weight along its rows, and state of which a step changes only a few places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.llvm.module.target import host


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "columns", "terms"), [(1, 65, 33), (2, 8, 16), (3, 7, 129), (5, 1, 64), (8, 30, 20)])
def test_products_of_few_rows_are_right_in_every_corner(dtype: Any, rows: int, columns: int, terms: int) -> None:
    generator = np.random.default_rng(rows)
    a, w = generator.standard_normal((rows, terms)).astype(dtype), generator.standard_normal((columns, terms))
    w = w.astype(dtype)
    exact = a.astype(np.longdouble) @ w.T.astype(np.longdouble)
    for threads in (1, 2):
        product = gg.compile(lambda a, w: a @ w.T, threads=threads, strict=True)
        found = product(gg.tensor(a), gg.tensor(w)).numpy()
        assert np.abs(found - exact).max() < 4 * terms * np.finfo(dtype).eps
        if columns > 1 and terms >= host().vector_bytes // np.dtype(dtype).itemsize:
            assert "row_product_" in product.llvm


def test_each_of_a_batch_meets_its_own_matrix() -> None:
    generator = np.random.default_rng(1)
    queries, keys = generator.standard_normal((2, 4, 1, 32)), generator.standard_normal((2, 4, 19, 32))
    product = gg.compile(lambda q, k: q @ k.mT, strict=True)
    found = product(gg.tensor(queries), gg.tensor(keys)).numpy()
    np.testing.assert_allclose(found, np.einsum("bhqd,bhkd->bhqk", queries, keys), atol=1e-12)
    assert "row_product_" in product.llvm


def test_a_place_of_state_is_written_where_it_lies() -> None:
    state, at = gg.zeros(50, 40), gg.tensor([3])
    expected = np.zeros((50, 40), np.float32)

    @gg.compile(strict=True)
    def step(value: Any) -> Any:
        state.index_copy_(0, at, value)
        at.add_(2)
        return state.sum()

    for number in range(1, 5):
        total = step(gg.full((1, 40), float(number)))
        expected[2 * number + 1] = number
        np.testing.assert_array_equal(state.numpy(), expected)
        assert float(total) == expected.sum()
    assert not [row for row in step.program.explain() if row.ops == ("copy",) and row.bytes > 1000]


def test_a_state_whose_old_value_is_read_later_is_copied() -> None:
    state, at = gg.zeros(6, 3), gg.tensor([1])

    @gg.compile(strict=True)
    def step(value: Any) -> Any:
        old = state + 0.0
        state.index_copy_(0, at, value)
        return (old * state).sum() + (old.sum(0) * value).sum()

    before = np.zeros((6, 3), np.float32)
    for number in (2.0, 3.0):
        found = float(step(gg.full((1, 3), number)))
        after = before.copy()
        after[1] = number
        assert found == (before * after).sum() + (before.sum(0) * number).sum()
        np.testing.assert_array_equal(state.numpy(), after)
        before = after


def test_a_step_repeats_itself_in_native_code() -> None:
    total, count = gg.zeros(3), gg.zeros(1)
    weight = gg.tensor([1.0, 2.0, 3.0])

    @gg.compile(strict=True)
    def step() -> None:
        count.add_(1)
        total.add_(weight * count)

    step()
    native = step.repeatable()
    assert native is not None
    with native.lock:
        native.again(9)
    assert total.tolist() == [55.0, 110.0, 165.0]
    assert gg.compile(lambda: total * 2).repeatable() is None
