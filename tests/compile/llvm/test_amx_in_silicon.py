"""Products in AMX tiles on a processor that has them: bit for bit the results of its manual and of the emulator."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.products import amx
from glassgrad.compile.llvm.products.amx import pays, tile_scratch
from glassgrad.compile.llvm.products.amx_check import has_tiles
from tests.compile.llvm.amx_emulator import Emulator, flushed
from tests.compile.llvm.test_amx import BF16, FAR, LAYOUTS, PRODUCT, gemm_of, loaded, matrix

pytestmark = pytest.mark.skipif(not host().may_use_amx, reason="no AMX with bfloat16 here, or not for this process")


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint16)


# --- the instructions --------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e-19], ids=["usual", "tiny"])
def test_the_processor_does_as_the_emulator(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results, and the float32 sums that a product leaves in its scratch memory; tiny ones are around 1e-38."""
    cases = [gemm_of(k, turned) for k in (31, 32, 95) for turned in LAYOUTS]
    real = loaded(cases)
    emulator = Emulator()
    monkeypatch.setattr(amx, "operation_body", emulator.body)
    emulated = loaded(cases)
    rng = np.random.default_rng(5)
    for number, gemm in enumerate(cases):
        for m, n in ((1, 1), (16, 16), (33, 47), (64, 32)):
            (room_a, a), (room_b, _) = matrix(rng, m, gemm.k, gemm.a_strides), matrix(rng, gemm.k, n, gemm.b_strides)
            a[:] = (a.astype(np.float64) * scale).astype(BF16)
            room_b *= BF16.type(scale)
            found = []
            for code in (real, emulated):
                c, scratch = np.zeros((m, FAR), BF16), np.full(tile_scratch(m, gemm), 0xFF, np.uint8)
                arrays = (room_a, room_b, c, scratch)
                address = code.address(f"product{number}")
                PRODUCT(address)(*(one.ctypes.data for one in arrays), m, n, gemm.k, gemm.k, FAR, FAR, FAR)
                found.append((bits(c), scratch))
            assert found[0][0].any() or scale < 1
            for one, other in zip(*found, strict=True):
                np.testing.assert_array_equal(one, other, str((m, n, gemm)))
    assert emulator.counts["multiply"] > 0
    assert emulator.faults == []


# --- whole steps -------------------------------------------------------------------------------------


def by_tiles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a product as `tdpbf16ps` sums it: even and odd terms apart, 32 terms at a time."""
    total = np.zeros((*a.shape[:-1], b.shape[-1]))
    for first in range(0, a.shape[-1], 32):
        apart = [np.zeros_like(total), np.zeros_like(total)]
        for k in range(first, min(first + 32, a.shape[-1])):
            apart[k % 2] = flushed(apart[k % 2] + a[..., :, k, None] * b[..., k, None, :])
        total = flushed(total + flushed(apart[0] + apart[1]))
    return total.astype(np.float32).astype(BF16)


def by_pairs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a product as `vdpbf16ps` sums it: of each pair of terms the odd one first."""
    total = np.zeros((*a.shape[:-1], b.shape[-1]))
    for even in range(0, a.shape[-1], 2):
        for k in (even + 1, even):
            if k < a.shape[-1]:
                total = flushed(total + a[..., :, k, None] * b[..., k, None, :])
    return total.astype(np.float32).astype(BF16)


def check_products(seed: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run products of random sizes, layouts and batches with and without tiles; return how many differ."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    sizes = [tuple(draw.randint(1, 70) for _ in range(3)) for _ in range(20)]
    turned = [(draw.random() < 0.5, draw.random() < 0.5) for _ in sizes]
    batches = [draw.choice([(), (), (2,), (3,), (2, 3)]) for _ in sizes]
    given: list[np.ndarray] = []
    for (m, n, k), (left, right), batch in zip(sizes, turned, batches, strict=True):
        shapes = ((k, m) if left else (m, k), (n, k) if right else (k, n))
        given.extend(rng.standard_normal(batch + shape).astype(BF16) for shape in shapes)

    def step(*xs: Any) -> list[Any]:
        pairs = zip(xs[::2], xs[1::2], turned, strict=True)
        return [(a.mT if left else a) @ (b.mT if right else b) for a, b, (left, right) in pairs]

    found = []
    for may in (True, False):
        monkeypatch.setattr(host(), "may_use_amx", may)
        has_tiles.cache_clear()
        compiled = gg.compile(step, strict=True, threads=threads)
        tensors = [gg.tensor(one) for one in given]
        for _ in range(3):
            results = [one.numpy() for one in compiled(*tensors)]
        assert ("@amx" in compiled.llvm) == may
        found.append(results)
    monkeypatch.undo()
    has_tiles.cache_clear()
    apart = 0
    for at, ((m, n, k), (left, right)) in enumerate(zip(sizes, turned, strict=True)):
        a, b = (one.astype(np.float64) for one in given[2 * at : 2 * at + 2])
        a, b = a.swapaxes(-1, -2) if left else a, b.swapaxes(-1, -2) if right else b
        within, without = by_tiles(a, b), by_pairs(a, b)
        np.testing.assert_array_equal(bits(found[0][at]), bits(within if pays(m, n, k) else without), str((m, n, k)))
        np.testing.assert_array_equal(bits(found[1][at]), bits(without), str((m, n, k)))
        apart += int((bits(within) != bits(without)).any())
    return apart


@pytest.mark.parametrize("threads", [1, 2])
def test_products_of_every_size_and_layout(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_products(threads, threads, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_five_hundred_products(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tiles and without, few numbers differ, by one rounding: only the order of the terms is another."""
    apart = [check_products(10 * threads + seed, threads, monkeypatch) for seed in range(3, 16)]
    assert 0 < sum(apart) < 20 * len(apart) / 2
