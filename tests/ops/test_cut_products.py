"""Products and sums of rows that the threads of the pool compute together, against NumPy in float64."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.ops.kernels import native, parallel, products, sums

pytest.importorskip("llvmlite", reason="the code that cuts products is made by LLVM")


@pytest.fixture(autouse=True)
def two_threads(blas_threads: Callable[[int], None]) -> None:
    """BLAS with two threads and a pool of two."""
    blas_threads(2)


def drawn(*shape: int, dtype: str = "f") -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def error(found: Any, wanted: Any) -> float:
    assert found is not None
    assert found.shape == wanted.shape
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("sizes", [(256, 128, 97), (65, 300, 128), (2, 1500, 800), (1601, 1500, 2), (33, 1500, 41)])
def test_products_in_every_order_of_memory_are_those_of_numpy(sizes: tuple[int, int, int], dtype: str) -> None:
    m, k, n = sizes
    bound = 1e-5 if dtype == "f" else 1e-13
    for turned_a, turned_b in itertools.product((False, True), repeat=2):
        a = drawn(k, m, dtype=dtype).T if turned_a else drawn(m, k, dtype=dtype)
        b = drawn(n, k, dtype=dtype).T if turned_b else drawn(k, n, dtype=dtype)
        bias = drawn(n, dtype=dtype)
        wanted = a.astype("d") @ b.astype("d")
        assert error(products.product(a, b), wanted) < bound
        assert error(products.product(a, b, bias), wanted + bias) < bound


@pytest.fixture
def packs(two_threads: None) -> Any:
    """What multiplies, where it has code of its own."""
    threads = products._threads_of_native_code()
    if threads is None or not threads.packs:
        pytest.skip("the vectors of this processor have less than 64 bytes")
    return threads


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "sizes",
    [
        (72, 1257, 96),
        (85, 600, 640),
        (99, 800, 127),
        (784, 70, 160),
        (1201, 513, 128),
        (300, 1025, 187),
        (75, 3841, 127),
    ],
)
def test_packed_products_are_those_of_float64(
    packs: Any, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int, int], count: int
) -> None:
    asked: list[tuple[str, int]] = []
    noting = packs._replace(job=lambda name, shares: asked.append((name, shares)) or packs.job(name, shares))
    monkeypatch.setattr(products, "source", lambda _packs=False: noting)
    packs.blas.set(count)
    m, k, n = sizes
    for turned_a, turned_b in itertools.product((False, True), repeat=2):
        a = drawn(k, m + 3).T[3:] if turned_a else drawn(m, k + 3)[:, 3:]
        b = drawn(n, k + 5).T[5:] if turned_b else drawn(k, n + 5)[:, 5:]
        bias, wanted = drawn(n), a.astype("d") @ b.astype("d")
        assert error(products.product(a, b), wanted) < 2e-6
        assert error(products.product(a, b, bias), wanted + bias) < 2e-6
    assert asked == [("packed", asked[0][1])] * 8
    assert asked[0][1] <= count


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("sizes", [(64, 32, 64), (130, 90, 127), (61, 70, 61), (200, 17, 127)])
def test_packed_batches_are_those_of_float64(packs: Any, sizes: tuple[int, int, int], count: int) -> None:
    m, k, n = sizes
    packs.blas.set(count)
    a, b = drawn(14, 3, m, k), drawn(14, n, 3 * k).reshape(14, n, 3, k).transpose(0, 2, 3, 1)  # columns of b in order
    for left, right in ((a, b), (a[:, 1], b[:, 1]), (drawn(14, 3, k, m).swapaxes(2, 3), b)):
        wanted = left.astype("d") @ right.astype("d")
        assert error(products.batch(left, right), wanted) < 2e-6
    big = drawn(2, 128, 100)
    assert error(products.batch(big, drawn(2, 100, 128)), big.astype("d") @ drawn(2, 100, 128).astype("d")) < 2e-6


@pytest.mark.parametrize("sizes", [(300, 700, 640), (777, 513, 96)])
def test_a_packed_product_has_the_same_bits_however_it_is_cut(packs: Any, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    bias = drawn(n)
    for turned_a, turned_b in itertools.product((False, True), repeat=2):
        a = drawn(k, m).T if turned_a else drawn(m, k)
        b = drawn(n, k).T if turned_b else drawn(k, n)
        orders = (turned_a, m if turned_a else k), (turned_b, k if turned_b else n)
        shares = [products._packed_shares((m, n, k), *orders, count) for count in (1, 2, 3)]
        assert [len(one) for one in shares] == [1, 2, 3]
        whole, *parts = (products._packed(packs, a, b, bias, one) for one in shares)
        assert error(whole, a.astype("d") @ b.astype("d") + bias) < 2e-6
        for part in parts:
            np.testing.assert_array_equal(part, whole)


def test_rows_a_multiple_of_a_page_apart_are_multiplied(packs: Any) -> None:
    a, b = drawn(90, 1024), drawn(1024, 1024)
    for right in (b, b.T):
        assert error(products.product(a, right), a.astype("d") @ right.astype("d")) < 2e-6


def test_a_packed_product_passes_on_what_is_not_finite_and_writes_nothing_else(packs: Any) -> None:
    a, b = drawn(130, 300), drawn(300, 110)
    a[7, 5], b[9, 3], a[8, 2] = np.nan, np.inf, 0.0
    with np.errstate(invalid="ignore"):
        wanted = a.astype("d") @ b.astype("d")
    shares = products._packed_shares((130, 110, 300), (False, 300), (False, 110), 1)
    found = products._packed(packs, a, b, None, shares)
    assert found is not None
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isposinf(found), np.isposinf(wanted))
    finite = np.isfinite(wanted)
    assert error(found[finite], wanted[finite]) < 2e-6


@pytest.mark.parametrize("shape", [(64, 128, 96), (1000, 48, 33), (2, 4, 64, 64, 32)])
@pytest.mark.parametrize("narrow", [True, False])
def test_products_of_middle_size_are_packed_where_the_vectors_of_blas_are_narrow(
    packs: Any, narrow: bool, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    run = products.run_by_ourselves

    def noted(threads: Any, function: str, *given: Any) -> bool:
        asked.append(function)
        return run(threads, function, *given)

    monkeypatch.setattr(products, "run_by_ourselves", noted)
    monkeypatch.setattr(products, "narrow", lambda: narrow)
    *batch, m, k, n = shape
    for turned_a, turned_b in itertools.product((False, True), repeat=2):
        a = drawn(*batch, k, m).swapaxes(-1, -2) if turned_a else drawn(*batch, m, k)
        b = drawn(*batch, n, k).swapaxes(-1, -2) if turned_b else drawn(*batch, k, n)
        assert error(products.matmul(a, b), a.astype("d") @ b.astype("d")) < 1e-5
    fills_tiles = n != 33  # more than a quarter of the second tile would be empty
    assert asked.count("packed") == (4 if narrow and fills_tiles else 0)


@pytest.mark.parametrize(("core", "whole", "narrow"), [
    ("Haswell", True, True), ("Zen", True, True),
    ("Haswell", False, False), ("SkylakeX", True, False), ("", True, False),
])  # fmt: skip  # a table
def test_blas_is_narrow_where_it_knows_less_than_the_processor(
    packs: Any, core: str, whole: bool, narrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    blas = parallel.numpys_blas()
    assert blas is not None
    monkeypatch.setattr(parallel, "numpys_blas", lambda: blas._replace(core=core))
    monkeypatch.setattr("glassgrad.compile.native.products.multiplies_whole_lines", lambda: whole)
    products.narrow.cache_clear()
    assert products.narrow() is narrow
    products.narrow.cache_clear()


def test_rows_that_are_packed_divide_into_tiles(packs: Any) -> None:
    from glassgrad.compile.llvm.products import packed

    assert all(map(packed.divides, range(products._LEAST_ROWS, 3000)))
    assert not packed.divides(products._LEAST_ROWS - 1)
    assert min(products._LEAST[2], products._LEAST_OF_BATCH[2]) >= packed._LEAST_BURST  # terms for one round at least
    assert (*packed.HEIGHTS[::2], packed.WIDTH) == (
        products._TILE_ROWS,
        products._THIN_TILE_ROWS,
        products._TILE_COLUMNS,
    )


def test_parts_of_larger_arrays_are_multiplied_where_they_lie() -> None:
    whole = drawn(300, 700)
    a, b = whole[:200, 3:203], whole[100:, 250:650]
    assert error(products.product(a, b), a.astype("d") @ b.astype("d")) < 1e-5


def test_heads_of_one_projection_are_multiplied_as_a_batch() -> None:
    both = drawn(6, 64, 256)
    q, k = (part.reshape(6, 64, 4, 32).transpose(0, 2, 1, 3) for part in np.split(both, 2, axis=2))
    wanted = q.astype("d") @ k.astype("d").swapaxes(-1, -2)
    scores = products.batch(q, k.swapaxes(-1, -2))
    assert error(scores, wanted) < 1e-5
    assert error(products.batch(scores, k), wanted @ k.astype("d")) < 1e-5
    three = drawn(5, 64, 96)
    wanted = three.astype("d") @ three.astype("d").swapaxes(1, 2)
    assert error(products.batch(three, three.swapaxes(1, 2)), wanted) < 1e-5


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("columns", [160, 389])
def test_rows_are_summed(columns: int, dtype: str) -> None:
    x = drawn(700, columns, dtype=dtype)
    assert error(sums.sum_rows(x), x.astype("d").sum(axis=0)) < (1e-5 if dtype == "f" else 1e-13)
    part = x[::2, 7:]
    assert error(sums.sum_rows(part), part.astype("d").sum(axis=0)) < (1e-5 if dtype == "f" else 1e-13)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_large_sums_are_rows_times_ones(dtype: str, count: int) -> None:
    blas = parallel.numpys_blas()
    assert blas is not None
    blas.set(count)
    bound = 2e-7 if dtype == "f" else 1e-15
    x = np.abs(drawn(91, 1101, dtype=dtype))
    wide = x.astype("d")
    assert sums.over(x, (0, 1)) == pytest.approx(wide.sum(), rel=bound)
    assert error(sums.over(x, (1,)), wide.sum(axis=1)) < bound
    found = gg.tensor(x).sum(1, keepdim=True)
    assert found.shape == (91, 1)
    assert error(found.numpy(), wide.sum(axis=1, keepdims=True)) < bound
    assert gg.tensor(x).sum().dtype == x.dtype


def test_what_no_thread_can_take_stays_with_numpy() -> None:
    a = drawn(256, 256)
    assert products.product(a[:, ::2], a[::2]) is None  # rows that are not contiguous
    assert products.product(a, a.astype("d")) is None
    assert products.product(a[:16, :16], a[:16, :16]) is None  # small
    assert products.batch(drawn(4, 64, 64), drawn(1, 64, 64)) is None
    assert error(products.matmul(a[:, ::2], a[::2]), a[:, ::2].astype("d") @ a[::2]) < 1e-5


def test_blas_has_its_threads_again_afterwards_and_a_busy_one_is_left_alone() -> None:
    blas = parallel.numpys_blas()
    assert blas is not None
    a = drawn(256, 256)
    assert products.product(a, a) is not None
    assert blas.get() == 2
    with parallel.shares.busy:
        assert products.product(a, a) is None
        assert sums.native_rows(a) is None


def test_threads_of_python_that_multiply_at_once_get_their_own_results() -> None:
    found: dict[int, float] = {}

    def work(number: int) -> None:
        a = drawn(200 + number, 200)
        wanted = a.astype("d") @ a.T.astype("d")
        found[number] = max(error(products.matmul(a, a.T), wanted) for _ in range(20))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert max(found.values()) < 1e-5


def test_a_layer_and_its_gradients_are_those_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def results() -> list[Any]:
        x = gg.tensor(drawn(2, 150, 96), requires_grad=True)
        weight, bias = (gg.tensor(one, requires_grad=True) for one in (drawn(128, 96), drawn(128)))
        y = gg.nn.functional.linear(x, weight, bias)
        (y * y).sum().backward()
        return [one.numpy() for one in (y.detach(), x.grad, weight.grad, bias.grad)]

    cut = results()
    monkeypatch.setattr(native.kernels, "off", True)
    for ours, numpys in zip(cut, results(), strict=True):
        assert error(ours, numpys) < 1e-5


PROGRAM = """
import os
import numpy as np
import glassgrad as gg
from glassgrad.compile.native import runtime
from glassgrad.ops.kernels import parallel, products
gg.tensor(1.0)
runtime.available_cores = lambda: 2
parallel.numpys_blas().set(2)
a = np.random.default_rng(0).standard_normal((300, 300)).astype("f")
wanted = a.astype("d") @ a
def right():
    found = products.product(a, a)
    return found is not None and np.abs(found - wanted).max() < 1e-3
assert right()
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
    assert right()
else:
    os._exit(0 if right() else 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system starts processes anew")
def test_a_forked_child_has_threads_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


_WITHOUT_POOL = """
import gc, weakref
from glassgrad.compile.native import runtime
runtime.pool().ensure(1)
code = weakref.ref(runtime.support_code())
runtime.support_code.cache_clear()
runtime._pool = None
gc.collect()
print(code() is not None)
"""


def test_the_code_of_waiting_threads_outlives_their_pool() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _WITHOUT_POOL]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
