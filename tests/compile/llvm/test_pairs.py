"""Products of bfloat16 in native code: instructions, layouts, shares, and processors without such an instruction."""

from __future__ import annotations

import itertools

import llvmlite.binding as llvm
import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.llvm.module.ir import Module
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.products.gemm import Gemm, TileShape
from glassgrad.compile.llvm.products.pairs import LANES, MOST_TERMS, PairWriter, scratch_of

BF16 = gg.bfloat16
needs_pairs = pytest.mark.skipif(not host().has_bfloat, reason="this processor has no AVX512-BF16")


@pytest.fixture
def fresh_host(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", "")  # code of another processor must not be found on the disk
    return monkeypatch


def assembly(cpu: str, gemm: Gemm) -> str:
    """Return the machine code of a product for a processor that need not be the one at hand."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = Module(64, has_bfloat=True)
    text = PairWriter(module, gemm).definition("product").replace("define internal", "define")
    triple = "x86_64-unknown-linux-gnu"
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
    attributes = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'
    parsed = llvm.parse_assembly(f'target triple = "{triple}"\n{module.text()}\n{text}\n{attributes}')
    parsed.verify()
    return str(machine.emit_assembly(parsed))


def gemm_of(m: int, n: int, k: int, *, turned: bool = False, pack_a: bool = False) -> Gemm:
    a, b = ((1, m) if pack_a else (k, 1)), ((1, k) if turned else (n, 1))
    return Gemm("bf16", k, a, b, n, (m,), (n,), LANES, TileShape(9, 3, k), pack=True, pack_a=pack_a)


@pytest.mark.parametrize("cpu", ["cooperlake", "sapphirerapids", "znver4"])
def test_the_instruction_is_emitted_and_sums_stay_in_registers(cpu: str) -> None:
    """In each turn of the innermost loop 27 instructions, each with an element of A spread from memory."""
    lines = [line.strip() for line in assembly(cpu, gemm_of(18, 96, 64)).splitlines()]
    products = [at for at, line in enumerate(lines) if line.startswith("vdpbf16ps")]
    assert len(products) == 27
    loop = lines[products[0] : products[-1] + 1]
    assert not any("rsp" in line for line in loop)  # nothing is spilt
    assert sum(line.startswith("vbroadcastss") for line in loop) >= 7  # two of nine come before the first product
    assert any(line.startswith("vcvtneps2bf16") for line in lines)


SHAPES = [
    (1, 1, 1), (3, 5, 7), (9, 48, 2), (10, 49, 3), (64, 64, 64), (130, 100, 65), (14, 32, 128), (27, 96, 33),
    (100, 7, 513), (31, 47, 15),
]  # fmt: skip  # a table


@needs_pairs
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_of_all_layouts_are_exact_but_for_one_rounding(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(shape)

    def products(*pairs: gg.Tensor) -> list[gg.Tensor]:
        return [
            (a.T if turned_a else a) @ (b.T if turned_b else b)
            for (turned_a, turned_b), a, b in zip(layouts, pairs[::2], pairs[1::2], strict=True)
        ]

    layouts = list(itertools.product((False, True), repeat=2))
    arrays = []
    for turned_a, turned_b in layouts:
        arrays.append(rng.standard_normal((k, m) if turned_a else (m, k)).astype(BF16))
        arrays.append(rng.standard_normal((n, k) if turned_b else (k, n)).astype(BF16))
    step = gg.compile(products, strict=True)
    found = step(*map(gg.tensor, arrays))
    assert "dpbf16ps" in step.llvm
    for (turned_a, turned_b), y, a, b in zip(layouts, found, arrays[::2], arrays[1::2], strict=True):
        left, right = a.astype(np.float64), b.astype(np.float64)
        left, right = left.T if turned_a else left, right.T if turned_b else right
        exact, size = left @ right, np.abs(left) @ np.abs(right)
        assert y.dtype == BF16
        # One rounding to bfloat16, and those of the sums in float32.
        assert (np.abs(y.numpy().astype(np.float64) - exact) <= np.abs(exact) * 2.0**-8 + size * 2.0**-20).all()


@needs_pairs
def test_batches_broadcasts_vectors_and_shares() -> None:
    rng = np.random.default_rng(5)

    def drawn(*shape: int) -> gg.Tensor:
        return gg.tensor(rng.standard_normal(shape), dtype=BF16)

    for a, b in (((3, 4, 6), (3, 6, 5)), ((2, 3, 4, 6), (6, 5)), ((4, 6), (3, 6, 5)), ((6,), (6, 5)), ((4, 6), (6,))):
        x, y = drawn(*a), drawn(*b)
        for threads in (1, 2):
            found = gg.compile(lambda x, y: x @ y, strict=True, threads=threads)(x, y)
            exact = x.numpy().astype(np.float64) @ y.numpy().astype(np.float64)
            np.testing.assert_allclose(found.numpy().astype(np.float64), exact, rtol=2.0**-8, atol=1e-5)


@needs_pairs
def test_nothing_is_read_behind_an_odd_number_of_terms() -> None:
    """NaN next to the operands, times the 0 that is put there, would be NaN."""
    whole_a, whole_b = np.full(3 * 5 + 1, np.nan, BF16), np.full(5 * 4 + 4, np.nan, BF16)
    whole_a[:15], whole_b[:20] = 1.0, 2.0
    a, b = gg.from_numpy(whole_a[:15].reshape(3, 5)), gg.from_numpy(whole_b[:20].reshape(5, 4))
    assert gg.compile(lambda a, b: a @ b, strict=True)(a, b).tolist() == [[10.0] * 4] * 3
    assert (
        gg.compile(lambda a, b: a.T @ b, strict=True)(gg.from_numpy(whole_a[:15].reshape(5, 3)), b).tolist()
        == [[10.0] * 4] * 3
    )


@pytest.mark.parametrize("terms", [40, pytest.param(MOST_TERMS + 2, marks=needs_pairs)])
def test_where_there_is_no_instruction_products_are_float32_and_rounded(
    fresh_host: pytest.MonkeyPatch, terms: int
) -> None:
    if terms == 40:
        fresh_host.setattr(host(), "has_bfloat", False)
    rng = np.random.default_rng(1)
    a, b = (gg.tensor(rng.standard_normal(shape), dtype=BF16) for shape in ((3, terms), (terms, 2)))
    step = gg.compile(lambda a, b: a @ b, strict=True)
    found = step(a, b)
    assert "avx512bf16.dp" not in step.llvm
    exact = a.numpy().astype(np.float64) @ b.numpy().astype(np.float64)
    np.testing.assert_allclose(found.numpy().astype(np.float64), exact, rtol=2.0**-8, atol=1e-3)


def test_scratch_memory_holds_what_is_packed() -> None:
    assert scratch_of(18, 64, 48, pack_a=False) == 4 * (32 + 16) * 48
    assert scratch_of(18, 65, 48, pack_a=True) >= 4 * ((33 + 16) * 48 + 18 * 33)
