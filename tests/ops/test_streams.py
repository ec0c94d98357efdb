"""Functions of large arrays that write past the caches do what NumPy does, and leave to it what it warns of."""

from __future__ import annotations

import platform
import warnings
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import functional as F
from glassgrad.ops.kernels import native, products, streams

pytest.importorskip("llvmlite", reason="native code needs llvmlite")
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are those of Intel's kind")

# Less than a vector, whole ones and a rest, several turns; each from the middle of a cache line as well.
SIZES = (1, 15, 16, 67, 1000, 4099)
DTYPES = (np.float32, np.float64)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Write past the caches however small results are, on every processor; count what native code is asked for."""
    asked: dict[str, int] = {}

    def job(name: str, shares: int) -> Any:
        asked[name] = asked.get(name, 0) + 1
        return native.job(name, shares)

    monkeypatch.setattr(streams, "BYTES", 1)
    monkeypatch.setattr(streams, "REORDERED", 1)
    monkeypatch.setattr(streams, "MIRRORED", 1)
    monkeypatch.setattr(streams, "source", lambda past=True: job)
    return asked


def numbers(size: int, dtype: Any, seed: int = 0, offset: int = 3) -> Any:
    """Return numbers whose memory begins in the middle of a cache line, as that of small arrays does."""
    return np.random.default_rng(seed).normal(size=size + offset).astype(dtype)[offset:]


ONE = {"negative": np.negative, "absolute": np.abs}
TWO = {
    "add": (np.add, "add_number", "add_number"),
    "subtract": (np.subtract, "subtract_number", "subtract_from"),
    "multiply": (np.multiply, "multiply_number", "multiply_number"),
    "divide": (np.divide, "divide_number", "divide_into"),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_to_the_bit(size: int, dtype: Any, always: dict[str, int]) -> None:
    a, b = numbers(size, dtype), numbers(size, dtype, 1)
    for name, function in ONE.items():
        np.testing.assert_array_equal(streams.one(name, function)(a), function(a), strict=True)
    np.testing.assert_array_equal(streams.one("sqrt", np.sqrt)(a * a), np.sqrt(a * a), strict=True)
    for name, (function, number, reflected) in TWO.items():
        run = streams.two(name, function, number, reflected)
        for given in ((a, b), (a, 2.5), (1.5, a), (a, 3)):
            np.testing.assert_array_equal(run(*given), function(*given), strict=True)
    for given in (a, np.broadcast_to(a[:1], (size,))):
        found = streams.copied(given)
        np.testing.assert_array_equal(found, given, strict=True)
        assert not np.shares_memory(found, given)
        assert found.flags.writeable
    np.testing.assert_array_equal(streams.reversed_(a), a[::-1], strict=True)
    np.testing.assert_array_equal(streams.joined((a, b, a)), np.concatenate((a, b, a)), strict=True)
    np.testing.assert_array_equal(streams.above(b, a, 0.25), np.where(a <= 0.25, 0, b), strict=True)
    assert {name.rsplit("_", 1)[0] for name in always} >= {f"stream_{name}" for name in (*ONE, *TWO, "sqrt")}
    assert size == 1 or any("fill" in name for name in always)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (7, 40), (40, 7), (33, 33)])
def test_triangles(shape: tuple[int, int], dtype: Any) -> None:
    x = numbers(shape[0] * shape[1], dtype).reshape(shape)
    for diagonal in (-100, -6, -1, 0, 1, 6, 100):
        np.testing.assert_array_equal(streams.triangle(x, diagonal, True), np.tril(x, diagonal), strict=True)
        np.testing.assert_array_equal(streams.triangle(x, diagonal, False), np.triu(x, diagonal), strict=True)


@pytest.mark.parametrize("least", [1, 1 << 60], ids=["past the caches", "in them"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 2, 67), (2, 1000)])
def test_rows_are_mirrored(
    shape: tuple[int, ...], dtype: Any, least: int, always: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BYTES", least)
    x = numbers(int(np.prod(shape)), dtype).reshape(shape)
    np.testing.assert_array_equal(streams.mirrored(x), x[..., ::-1], strict=True)
    np.testing.assert_array_equal(streams.reversed_(x), np.flip(x), strict=True)
    if x.ndim == 2:
        np.testing.assert_array_equal(streams.triangle(x, 1, True), np.tril(x, 1), strict=True)
    assert {name.split("_")[0] for name in always} == {"stream" if least == 1 else "near"}


def test_short_and_few_rows_are_numpys(always: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MIRRORED", 64)
    assert streams.mirrored(numbers(630, np.float32).reshape(10, 63)) is None
    assert streams.mirrored(np.empty((3, 0), np.float32)) is None
    monkeypatch.setattr(streams, "REORDERED", 1 << 20)
    assert streams.mirrored(numbers(640, np.float32).reshape(10, 64)) is None
    assert not always


@pytest.mark.parametrize("shares", [2, 3])
def test_threads_share(shares: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "shares", lambda work: shares)
    a, b = numbers(4099, np.float32), numbers(4099, np.float32, 1)
    np.testing.assert_array_equal(streams.product(a, b), a * b)
    np.testing.assert_array_equal(streams.reversed_(a), a[::-1])
    np.testing.assert_array_equal(streams.triangle(a.reshape(-1, 1), 0, True), np.tril(a.reshape(-1, 1)))
    np.testing.assert_array_equal(streams.mirrored(a.reshape(-1, 1)), a.reshape(-1, 1))
    np.testing.assert_array_equal(streams.mirrored(a[:4096].reshape(-1, 16)), a[:4096].reshape(-1, 16)[:, ::-1])


def test_numpy_warns_as_it_does() -> None:
    """Overflow, division by zero and invalid values are NumPy's to compute, and to tell of."""
    large, zero = np.full(100, 1e30, np.float32), np.zeros(100, np.float32)
    divide = streams.two("divide", np.divide, "divide_number", "divide_into")
    for run, text in (
        (lambda: streams.product(large, large), "overflow"),
        (lambda: divide(large, zero), "divide by zero"),
        (lambda: divide(zero, zero), "invalid"),
        (lambda: streams.one("sqrt", np.sqrt)(-large), "invalid"),
    ):
        with pytest.warns(RuntimeWarning, match=text):
            found = run()
        assert not np.isfinite(found).any()
    with np.errstate(under="raise"), pytest.raises(FloatingPointError):
        streams.product(1 / large, 1 / large)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        streams.product(1 / large, 1 / large)  # underflow is silent by default
        np.testing.assert_array_equal(streams.negative(large * np.float32("nan")), np.full(100, np.nan, np.float32))


@pytest.mark.parametrize("number", [10**400, 1e39, float("inf"), True])
def test_numbers_that_are_numpys(number: Any, always: dict[str, int]) -> None:
    a = numbers(100, np.float32)
    with np.errstate(all="ignore"):
        try:
            expected = np.multiply(a, number)
        except OverflowError:
            with pytest.raises(OverflowError):
                streams.product(a, number)
        else:
            np.testing.assert_array_equal(streams.product(a, number), expected, strict=True)
    assert not always


def test_what_does_not_fit_is_numpys(always: dict[str, int]) -> None:
    x = numbers(120, np.float32).reshape(10, 12)
    for a, b in ((x, x[0]), (x.T, x.T), (x, x.astype(np.float64)), (x.astype(int), x.astype(int))):
        np.testing.assert_array_equal(streams.product(a, b), a * b, strict=True)
    assert streams.copied(x.T).strides == x.T.copy(order="K").strides
    assert streams.copied(x.T, "C").flags.c_contiguous
    assert streams.joined((x, x[:, 1:])) is None
    assert not always


@pytest.mark.parametrize("dtype", DTYPES)
def test_through_the_tape(dtype: Any, always: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ops and rules ask for it, and every number is the same."""

    def f(a: Any, b: Any) -> Any:
        c = gg.cat([a * b - a / 3, -gg.relu(a) + abs(b)])
        return (
            gg.roll(gg.flip(gg.flip(gg.tril(c), (0, 1)), 1), 3, 0) + gg.stack([a, b]).reshape(c.shape) + F.relu(c).sum()
        )

    found = []
    for least in (1, 1 << 60):
        monkeypatch.setattr(streams, "BYTES", least)
        monkeypatch.setattr(streams, "REORDERED", least)
        leaves = [gg.tensor(numbers(120_000, dtype, seed).reshape(300, 400), requires_grad=True) for seed in (0, 1)]
        y = f(*leaves)
        y.backward(gg.tensor(numbers(240_000, dtype, 2).reshape(600, 400)))
        found.append([y.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)])
    for mine, expected in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, expected, strict=True)
    names = (
        "copy",
        "negative",
        "absolute",
        "multiply",
        "subtract",
        "divide_number",
        "above",
        "reversed",
        "mirrored",
        "triangle",
    )
    assert {name.rsplit("_", 1)[0] for name in always} >= {f"stream_{name}" for name in names}
