"""The code paths of kernels for large arrays: their choice, and the same numbers as the plain path."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.ops.kernels import blocks, choose, logarithms, native, parts, products, ways, windows
from tests.ops.against_torch import real


class Calls:
    """A function that counts its calls."""

    def __init__(self, function: Any) -> None:
        self.function, self.count = function, 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.count += 1
        return self.function(*args, **options)


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Calls:
    calls = Calls(getattr(owner, name))
    monkeypatch.setattr(owner, name, calls)
    return calls


# --- the table ------------------------------------------------------------------------------------


def test_each_row_of_the_table_is_read_and_none_is_missing() -> None:
    source = Path(gg.__file__).parent
    texts = [file.read_text(encoding="utf-8") for file in (source / "ops").rglob("*.py")]
    texts.append((source / "optim" / "native_update.py").read_text(encoding="utf-8"))
    read = {name for text in texts for name in re.findall(r'\bleast\("([^"]+)"\)', text)}
    assert read == set(ways.TABLE)


def test_rows_state_a_way_and_what_is_counted() -> None:
    assert {row.how for row in ways.TABLE.values()} == {ways.NUMPY, ways.KERNEL, ways.FUNCTION}
    assert {row.unit for row in ways.TABLE.values()} == {"elements", "multiplications", "ns"}
    assert all(row.least > 0 for row in ways.TABLE.values())


# --- choices --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1023, 1024, 3000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_choice_in_bits_is_that_of_where(size: int, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    where = counted(monkeypatch, np, "where")
    a, b = real(size).astype(dtype), real(size, seed=1).astype(dtype)
    a[:4] = [np.nan, np.inf, -0.0, 0.0]
    mask = real(size, seed=2) > 0
    others = (b, 0.0, -0.0, 2.5, np.zeros((), dtype))
    for left, right in [*((a, other) for other in others), *((other, a) for other in others)]:
        where.count = 0
        found = choose.choose(mask, left, right)
        assert where.count == (size < 1024 or dtype is np.float16)
        expected = where.function(mask, left, right)
        assert found.tobytes() == expected.tobytes()
        assert found.dtype == expected.dtype
    where.count = 0
    plain = (
        (mask.astype(np.int64), a, b), (mask, a, b.astype(np.float64 if dtype != np.float64 else np.float32)),
        (mask, a[:1], b), (mask, 1.5, 2.5), (mask, a.reshape(1, -1), b), (mask[:1], a, b), (True, a, b),
    )  # fmt: skip  # a table
    for number, args in enumerate(plain, 1):
        found = choose.choose(*args)
        assert where.count == number
        np.testing.assert_array_equal(found, where.function(*args), strict=True)


def test_the_gradient_of_a_step_is_made_without_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    where = counted(monkeypatch, np, "where")
    a = real(3)
    assert choose.choose(False, a, 0).tolist() == [0.0] * 3
    assert where.count == 0
    for mask, left, right in ((False, a, 1), (True, a, 0), (False, a, 0.0), (False, 2.0, 0), (False, a, a)):
        found = choose.choose(mask, left, right)
        np.testing.assert_array_equal(found, where.function(mask, left, right), strict=True)
    assert where.count == 5


def test_the_least_of_few_integers_is_searched_and_of_many_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, function, exact in (("min_over", choose.least, np.min), ("max_over", choose.largest, np.max)):
        reduced = counted(monkeypatch, choose, name)
        for size, often in ((1, 0), (4096, 0), (4097, 1)):
            x = np.random.default_rng(size).integers(-9, 9, size)
            reduced.count = 0
            assert function(x) == exact(x)
            assert reduced.count == often


def test_the_positive_part_by_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = counted(monkeypatch, choose, "_zeros")
    x = real(70_000)
    cases = [(x[:n], n >= 8192) for n in (8191, 8192, 8193, 32_768, 40_000, 70_000)]
    cases += [(x.astype(np.float32), True), (x.astype(np.float16), False), ((9 * x).astype(np.int64), False)]
    cases += [(x.reshape(7, -1).T, True), (x[::2], False), (np.broadcast_to(x[:100], (100, 100)), False)]
    for given, in_parts in cases:
        zeros.count = 0
        found = choose.positive(given)
        np.testing.assert_array_equal(found, np.maximum(given, 0), strict=True)
        assert (zeros.count == 1) is in_parts
    found = choose.positive(gg.tensor(x))
    assert zeros.count == 0
    np.testing.assert_array_equal(np.asarray(found), np.maximum(x, 0))


def test_logarithms_of_two_in_passes_and_of_complex_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = counted(monkeypatch, np, "logaddexp")
    a, b = real(300), real(300, seed=1)
    for x, y, often in (
        (a, b, 0), (a[:256], b[:256], 0), (a[:255], b[:255], 1), (a, b[:1], 1), (a, 0.5, 1), (0.5, a, 1),
        (np.arange(300), np.arange(300)[::-1], 1), (a.reshape(300, 1), b, 1),
    ):  # fmt: skip  # a table
        plain.count = 0
        np.testing.assert_allclose(logarithms.log_of_two(x, y), plain.function(x, y), rtol=1e-12)
        assert plain.count == often
    for x, y in ((a + 0.3j, b), (a, b + 0.3j), (a + 0.1j, b + 0.3j), (a + 0.1j, 0.5), (0.5, a + 0.1j)):
        np.testing.assert_allclose(logarithms.log_of_two(x, y), np.log(np.exp(x) + np.exp(y)), rtol=1e-12)


# --- blocks ---------------------------------------------------------------------------------------


def line(head: Any, x: Any, *rest: Any) -> Any:
    return 2 * x + sum(rest) + (head if isinstance(head, np.ndarray) else 0)


LARGE = blocks._FROM


@pytest.mark.parametrize(("size", "whole"), [(LARGE - 1, True), (LARGE, False), (LARGE + 7, False)])
def test_from_which_size_on_a_formula_runs_in_blocks(size: int, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = counted(monkeypatch, blocks, "_run")
    formula = blocks.in_blocks(line)
    x, y, c = (real(size, seed=seed) for seed in range(3))
    np.testing.assert_array_equal(formula(np, x), 2 * x)
    one, several = (blocks.product_in_blocks(formula, arity) for arity in (1, 2))
    assert one is not None
    assert several is not None
    np.testing.assert_array_equal(one(c, y, x), c * (2 * x + y))
    np.testing.assert_array_equal(several(c, y, x, x), c * (2 * x + x + y))
    assert run.count == (0 if whole else 3)
    assert blocks.product_in_blocks(line, 1) is None


def test_arguments_that_cannot_be_cut_are_computed_whole() -> None:
    formula = blocks.in_blocks(line)
    x, y, c = (real(2 * LARGE, seed=seed) for seed in range(3))
    rule = blocks.product_in_blocks(formula, 1)
    assert rule is not None
    for first, second, third in itertools.product((x[::2], x[:LARGE]), (y[::2], y[:LARGE]), (c[::2], c[:LARGE])):
        np.testing.assert_array_equal(rule(third, second, first), third * (2 * first + second))
    x = x[:LARGE]
    for beside in (2.5, np.float64(2.5), np.full((), 2.5), np.full((1,), 2.5), np.broadcast_to(2.5, x.shape)):
        np.testing.assert_array_equal(formula(np, x, beside), 2 * x + 2.5)
    found = formula(np, x, gg.tensor(y[:LARGE]))
    np.testing.assert_array_equal(np.asarray(found), 2 * x + y[:LARGE])
    zeros = np.broadcast_to(np.float64(3), x.shape)
    np.testing.assert_array_equal(formula(np, zeros), np.full(x.shape, 6.0))


# --- native code, played by Python ----------------------------------------------------------------


class Played:
    """A kernel of so many operands that doubles the first one, and adds up its rows; `good` says whether it can."""

    def __init__(self, operands: int = 1, good: bool = True) -> None:
        self.operands, self.good = operands, good
        self.sizes: list[int] = []
        self.shares: list[int] = []

    def along(self, arrays: Sequence[Any], steps: Sequence[int], count: int, shares: int) -> None:
        self.shares.append(shares)
        assert all(one.flags.c_contiguous for one in arrays)
        for chunk in range(count):
            parts = []
            for one, step in zip(arrays, steps, strict=True):
                size, rest = divmod(step, one.itemsize)
                assert not rest
                start = min(chunk * size, one.size - size)  # the last chunk may share elements with the one before
                parts.append(one.reshape(-1)[start : start + size] if step else one.reshape(-1))
            self.compute(parts)

    def into(self, given: Sequence[Any], taken: Sequence[Any]) -> bool:
        assert len(given) == self.operands
        if self.good:
            self.compute([one.reshape(-1) for one in (*given, *taken)])
        return self.good

    def compute(self, parts: Sequence[Any]) -> None:
        x, result, *sums = (parts[0], *parts[self.operands :])
        self.sizes.append(x.size)
        result[...] = 2 * x
        for one in sums:
            one[...] = x.reshape(-1, one.size).sum(0)


class Kernels(native.Kernels):
    """Kernels of which there is one, or none."""

    def __init__(self, kernel: Any) -> None:
        super().__init__(least_work=1)
        self.kernel = kernel
        self.asked: list[Any] = []

    def find(self, *request: Any) -> Any:
        self.asked.append(request)
        return self.kernel


def in_blocks(x: Any, out: Any, kernel: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(native, "kernels", Kernels(kernel))
    return blocks.compute_natively(line, {}, [x], out, False)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_native_formula_fills_its_result_block_by_block(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "shares", lambda work: threads if work else 0)
    size = blocks.NATIVE_BLOCK
    for length, count in ((size, 1), (size + 1, 2), (2 * size, 2), (2 * size + 5, 3)):
        x, kernel = real(length), Played()
        out = np.full_like(x, np.nan)
        assert in_blocks(x, out, kernel, monkeypatch) is True
        assert kernel.sizes == [size] * count
        assert kernel.shares == [threads]
        np.testing.assert_array_equal(out, 2 * x)
    x = real(size + 1)
    assert in_blocks(x, np.empty_like(x), None, monkeypatch) is False
    assert in_blocks(x[: size - 1], np.empty(size - 1), Played(), monkeypatch) is False
    assert in_blocks(x, np.empty(x.shape, np.float16), Played(), monkeypatch) is False
    crooked = np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view(np.float64)
    assert in_blocks(crooked, np.empty_like(x), Played(), monkeypatch) is False
    out = np.full_like(x, np.nan)
    assert in_blocks(2.5, out, Played(), monkeypatch) is True
    np.testing.assert_array_equal(out, np.full(x.shape, 5.0))


@pytest.mark.parametrize(
    ("length", "width", "rows"), [(23, 5, 4), (24, 5, 4), (3, 5, 4), (40, 24, 1), (7, 100, 1), (9, 12, 2)]
)
def test_rows_are_computed_some_at_a_time(length: int, width: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Played(operands=2)
    kernels = Kernels(kernel)
    monkeypatch.setattr(products, "source", lambda: None)
    monkeypatch.setattr(parts, "source", lambda: kernels)
    monkeypatch.setattr(parts, "ELEMENTS", 24)
    for x in (real(length, width), real(width, length).T):
        kernel.sizes.clear()
        result, total = np.full((length, width), np.nan), np.full(width, np.nan)
        assert parts.in_parts(line, (x,), (real(width, width).T,), (result,), (total,), eps=1) is True
        assert kernel.sizes == [rows * width] * -(-length // rows)
        np.testing.assert_array_equal(result, 2 * x)
        np.testing.assert_allclose(total, x.sum(0), rtol=1e-10, atol=1e-12)
    x, whole = real(rows + 1, width), (real(width),)
    kernel.good = False
    assert parts.in_parts(line, (x,), whole, (np.empty_like(x),)) is (rows == 1)
    kernels.kernel = None
    assert parts.in_parts(line, (x,), whole, (np.empty_like(x),)) is False


def test_what_native_code_of_rows_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = Kernels(Played(operands=3))
    monkeypatch.setattr(products, "source", lambda: None)
    monkeypatch.setattr(parts, "source", lambda: kernels)
    monkeypatch.setattr(parts, "ELEMENTS", 24)
    x, mask, weight = real(8, 2, 3), real(8, 2, 3) > 0, real(2, 3)
    assert parts.in_parts(line, (x, mask), (weight,), (np.empty_like(x),), eps=2) is True
    kind = np.dtype(np.float64)
    types = (((4, 2, 3), kind), ((4, 2, 3), mask.dtype), ((2, 3), kind))
    assert kernels.asked == [(line, types, (), {"eps": 2}, 1)]
    for other in (weight.astype(np.float32), gg.tensor(weight), weight.astype(np.int64)):
        assert parts.in_parts(line, (x, mask), (other,), (np.empty_like(x),)) is False
    assert len(kernels.asked) == 1


def test_what_native_code_of_blocks_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = Kernels(Played(operands=2))
    monkeypatch.setattr(native, "kernels", kernels)
    size = blocks.NATIVE_BLOCK
    x, out, block = (
        real(size),
        np.empty(size),
        ((size,), np.dtype(np.float64)),
    )
    formula = Calls(line)
    monkeypatch.setitem(blocks.OPS, formula, "sine")  # as `entitle` notes it
    placeholder = object()  # the node of what the formula does not read: no kernel is for it alone
    assert blocks.compute_natively(formula, {"a": 1}, [np, x, 2, placeholder], out, False) is True
    assert blocks.compute_natively(line, {}, [x, x], out, False) is True
    assert blocks.compute_natively(line, {}, [x, x], out, True) is True
    assert kernels.asked[:2] == [
        ("sine", (block, ((size,), np.dtype(np.float64)), None), (size,), {"a": 1}, 1),
        (line, (block, block), (size,), {}, 1),
    ]
    product = kernels.asked[2][0]
    np.testing.assert_array_equal(product(x, x, x), x * line(x, x))
    assert blocks.compute_natively(line, {}, [x, x.astype(np.float32)], out, False) is False
    kernels.least_work = 10**12
    assert blocks.compute_natively(line, {}, [x, x], out, False) is False
    assert len(kernels.asked) == 3


def test_rows_along_the_last_axis_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = Kernels(Played())
    monkeypatch.setattr(products, "source", lambda: None)
    monkeypatch.setattr(parts, "source", lambda: kernels)
    x = real(2, 3, 4)
    np.testing.assert_array_equal(parts.along_last(line, 2, x), 2 * x)
    for axis, arrays in ((1, (x,)), (2, (x, x[0])), (2, (x, gg.tensor(x)))):
        assert parts.along_last(line, axis, *arrays) is None
    kernels.kernel = None
    assert parts.along_last(line, 2, x) is None


def test_from_which_size_on_rows_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "source", lambda: "anything")
    assert parts.pays(real(parts.FROM)) is True
    assert parts.pays(real(parts.FROM - 1)) is False
    assert parts.pays(real(2), parts.FROM) is True
    assert parts.pays(real(parts.FROM), parts.FROM - 1) is False
    assert parts.pays(gg.tensor(real(parts.FROM))) is False
    assert parts.pays(real(parts.FROM).astype(np.float16)) is False
    monkeypatch.setattr(parts, "source", lambda: None)
    assert parts.pays(real(parts.FROM)) is False


# --- windows --------------------------------------------------------------------------------------


def test_a_kernel_that_does_not_fit_is_described() -> None:
    def plan(size: tuple[int, int], kernel: tuple[int, int]) -> windows.Plan:
        return windows.plan_of(size, kernel, (1, 1), ((0, 0), (1, 0)), (2, 1), 1)

    assert plan((7, 4), (4, 5)).out == (1, 1)
    assert plan((0, 4), (1, 5)).out == (0, 1)  # an image of nothing
    assert plan((1, 4), (1, 5)).out == (1, 1)
    for size, kernel in (((6, 4), (4, 5)), ((7, 3), (4, 5)), ((1, 1), (1, 3)), ((0, 4), (2, 5)), ((2, 4), (2, 2))):
        text = (
            f"the kernel {kernel[0]}x{kernel[1]} (dilation (2, 1)) is larger than the input "
            f"{size[0]}x{size[1]} with its padding ((0, 0), (1, 0))"
        )
        with pytest.raises(ValueError, match=re.escape(text) + "$"):
            plan(size, kernel)


def test_blocks_of_samples() -> None:
    assert windows.blocks(0, 3, 2 * windows.BLOCK) == [(0, 1), (1, 2), (2, 3)]
    assert windows.blocks(1, 6, windows.BLOCK // 2) == [(1, 3), (3, 5), (5, 6)]
    assert windows.blocks(0, windows.BLOCK + 1, 0) == [(0, windows.BLOCK), (windows.BLOCK, windows.BLOCK + 1)]
    assert windows.blocks(0, windows.BLOCK + 1, 1) == windows.blocks(0, windows.BLOCK + 1, 0)
    assert windows.blocks(2, 2, 1) == []
