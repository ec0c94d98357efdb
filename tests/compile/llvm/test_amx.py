"""Products in AMX tiles: run with emulated instructions, checked as assembly, and chosen only where they are right."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.llvm.module import target
from glassgrad.compile.llvm.module.ir import Module
from glassgrad.compile.llvm.module.target import LoadedCode, host
from glassgrad.compile.llvm.products import amx, amx_check
from glassgrad.compile.llvm.products.amx import TileWriter, tile_gemm, tile_scratch
from glassgrad.compile.llvm.products.amx_check import has_tiles
from glassgrad.compile.llvm.products.gemm import Gemm, TileShape
from glassgrad.compile.llvm.products.pairs import LANES, PairWriter
from glassgrad.compile.native import cache, cache_entry
from tests.compile.llvm.amx_emulator import Emulator

BF16 = np.dtype(ml_dtypes.bfloat16)
needs_pairs = pytest.mark.skipif(
    not host().has_bfloat or host().vector_bytes < 64, reason="this processor has no AVX512-BF16 to compare with"
)


PRODUCT = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 7)


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    found = Emulator()
    monkeypatch.setattr(amx, "operation_body", found.body)
    return found


@pytest.fixture
def with_amx(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """A process that may use AMX, whose instructions are emulated."""
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", "")  # such code is for this process only
    monkeypatch.setattr(host(), "may_use_amx", True)
    has_tiles.cache_clear()
    yield emulator
    has_tiles.cache_clear()


SIZES = (1, 15, 16, 17, 32, 33, 65)
TERMS = (1, 2, 31, 32, 33, 64, 65, 95)
LAYOUTS = tuple(itertools.product((False, True), repeat=2))
FAR = 98  # elements from a row, or a column, to the next one: more than there are


def gemm_of(k: int, turned: tuple[bool, bool], sizes: tuple[int, ...] = SIZES, far: int = FAR) -> Gemm:
    a, b = ((1, far) if turned[0] else (far, 1)), ((1, far) if turned[1] else (far, 1))
    return tile_gemm(Gemm("bf16", k, a, b, far, sizes, sizes, LANES, TileShape(9, 3, k), pack=True))


def matrix(rng: np.random.Generator, rows: int, columns: int, strides: tuple[int, int]) -> tuple[Any, Any]:
    """Return (memory that is NaN elsewhere, the matrix in it)."""
    far, near = max(strides), columns if strides[1] == 1 else rows
    lines = rows if strides[1] == 1 else columns
    memory = np.full((lines - 1) * far + near, np.nan, BF16)
    step = BF16.itemsize
    view = np.lib.stride_tricks.as_strided(memory, (rows, columns), (strides[0] * step, strides[1] * step))
    view[:] = rng.standard_normal((rows, columns)).astype(BF16)
    return memory, view


def loaded(gemms: Iterable[Gemm]) -> LoadedCode:
    """Return the machine code of products, which are called product0, product1, ..."""
    module = Module(host().vector_bytes)
    texts = [TileWriter(module, gemm).definition(f"product{at}") for at, gemm in enumerate(gemms)]
    exported = [text.replace("define internal", "define", 1) for text in texts]
    return LoadedCode(host().compile("\n".join([host().header(), module.text(), *exported, host().attributes()])))


# --- every index, edge and pack ----------------------------------------------------------------------


def test_every_index_edge_and_pack_is_right(emulator: Emulator) -> None:
    """All layouts, against float64, in memory that is NaN wherever nothing may be read, and checked where written."""
    cases = {(k, turned): gemm_of(k, turned) for k in TERMS for turned in LAYOUTS}
    code = loaded(cases.values())
    rng = np.random.default_rng(4)
    for m, n in itertools.product(SIZES, SIZES):
        for number, ((k, _), gemm) in enumerate(cases.items()):
            if (SIZES.index(m) + SIZES.index(n) + number // len(LAYOUTS)) % 4:
                continue  # a quarter of all: each number of terms meets every number of rows and of columns
            check(emulator, code.address(f"product{number}"), gemm, (m, n, k), rng)
    assert emulator.faults == []


def check(emulator: Emulator, address: int, gemm: Gemm, sizes: tuple[int, int, int], rng: np.random.Generator) -> None:
    m, n, k = sizes
    (room_a, a), (room_b, b) = matrix(rng, m, k, gemm.a_strides), matrix(rng, k, n, gemm.b_strides)
    # Infinity in the first of the terms that do not fill a tile: times the zeros behind the last one it would be NaN.
    a[0, (k - 1) // 32 * 32], b[(k - 1) // 32 * 32] = np.inf, 1.0
    c, size = np.full((m, FAR), 7, BF16), tile_scratch(m, gemm)
    scratch = np.full(size + 64, 0xFF, np.uint8)  # NaN, as something may have left it
    arrays = (room_a, room_b, c, scratch)
    emulator.allowed = [(one.ctypes.data, one.ctypes.data + one.nbytes) for one in arrays[:3]]
    emulator.allowed.append((scratch.ctypes.data, scratch.ctypes.data + size))
    PRODUCT(address)(*(one.ctypes.data for one in arrays), m, n, k, k, FAR, FAR, FAR)
    assert (c[0, :n] == np.inf).all(), (sizes, gemm)
    left, right = a[1:].astype(np.float64), b.astype(np.float64)
    exact, scale = left @ right, np.abs(left) @ np.abs(right)
    error = np.abs(c[1:, :n].astype(np.float64) - exact)
    assert (error <= np.abs(exact) * 2.0**-8 + scale * 2.0**-20).all(), (sizes, gemm)
    assert (c[:, n:] == 7).all(), (sizes, gemm)
    assert (scratch[size:] == 0xFF).all(), (sizes, gemm)


@needs_pairs
@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_runs_in_tiles_and_small_products_in_pairs(with_amx: Emulator, threads: int) -> None:
    rng = np.random.default_rng(2)
    x, w, v = (gg.tensor(rng.standard_normal(shape), dtype=BF16) for shape in ((70, 64), (64, 33), (33, 3)))

    def step(x: Any, w: Any, v: Any) -> Any:
        y = x @ w
        return y, x.T @ y, y @ w.T, y @ v

    compiled = gg.compile(step, strict=True, threads=threads)
    found = compiled(x, w, v)
    assert with_amx.faults == []
    assert with_amx.counts["config"] == with_amx.counts["release"] > 0
    assert compiled.llvm.count("@amx_2x2") > 0
    assert "dpbf16ps.512" in compiled.llvm  # 3 columns fill no tile
    wanted = gg.compile(step, strict=True, threads=threads)
    has_tiles.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host(), "may_use_amx", False)
        for one, other in zip(found, wanted(x, w, v), strict=True):
            np.testing.assert_allclose(
                one.numpy().astype(np.float64), other.numpy().astype(np.float64), rtol=2.0**-7, atol=1e-2
            )
    assert "@amx" not in wanted.llvm


# --- as assembly -------------------------------------------------------------------------------------


def assembly(cpu: str, writer: type[PairWriter], gemm: Gemm) -> list[str]:
    """Return the machine code of a product for a processor that need not be the one at hand, line by line."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = Module(64, has_bfloat=True)
    text = writer(module, gemm).definition("product").replace("define internal", "define")
    triple = "x86_64-unknown-linux-gnu"
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
    attributes = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'
    parsed = llvm.parse_assembly(f'target triple = "{triple}"\n{module.text()}\n{text}\n{attributes}')
    parsed.verify()
    other = target.Host()
    other.machine = machine
    other.optimise(parsed)
    return [line.strip() for line in str(machine.emit_assembly(parsed)).splitlines()]


@pytest.mark.parametrize("turned", LAYOUTS)
def test_four_products_for_four_loads_and_no_tile_is_spilt(turned: tuple[bool, bool]) -> None:
    lines = assembly("sapphirerapids", TileWriter, gemm_of(96, turned, (64,)))
    names = [line.split()[0] for line in lines if line]
    (head,) = [at for at, name in enumerate(names) if name == "tdpbf16ps"][:1]
    start = max(at for at, name in enumerate(names[:head]) if name.startswith(".LBB"))
    stop = next(at for at, name in enumerate(names) if at > head and name.startswith("j"))
    loop = names[start:stop]
    assert loop.count("tdpbf16ps") == loop.count("tileloadd") == 4
    assert len(loop) < 20  # nothing else but addresses and the counter
    whole = [names.count(name) for name in ("tdpbf16ps", "tileloadd", "tilestored", "tilezero")]
    assert whole == [4, 4, 4, 4]  # outside of the loop sums begin at 0, and are stored: there are no spills
    # Once in a product, around everything in it.
    assert names.count("ldtilecfg") == names.count("tilerelease") == 1
    body = names[names.index("product:") :]
    calls = [at for at, name in enumerate(body) if name.startswith("call")]
    assert body.index("ldtilecfg") < calls[0] <= calls[-1] < body.index("tilerelease")


@pytest.mark.parametrize("cpu", ["cooperlake", "znver4"])
def test_processors_without_amx_have_none_of_it(cpu: str) -> None:
    gemm = Gemm("bf16", 96, (FAR, 1), (FAR, 1), FAR, (64,), (64,), LANES, TileShape(9, 3, 96), pack=True)
    text = "\n".join(assembly(cpu, PairWriter, gemm))
    assert "vdpbf16ps" in text
    assert not re.search(r"tile|tdp|tmm", text)


# --- where it is chosen ------------------------------------------------------------------------------


@needs_pairs
def test_a_processor_whose_products_are_wrong_goes_without_and_says_so_once(with_amx: Emulator) -> None:
    with_amx.sign = -1
    with pytest.warns(gg.errors.PrecisionWarning, match="AMX on this processor .* multiplies with AVX512-BF16"):
        assert not has_tiles()
    a = gg.ones(32, 32, dtype=BF16)
    f = gg.compile(lambda a: a @ a, strict=True)
    assert f(a).tolist() == [[32.0] * 32] * 32  # and nothing more is said
    assert "@amx" not in f.llvm
    with_amx.sign = 1
    has_tiles.cache_clear()
    assert has_tiles()


@needs_pairs
def test_the_first_product_covers_blocks_edges_and_both_layouts(with_amx: Emulator) -> None:
    without, within = amx_check.sample_products()
    assert with_amx.faults == []
    m, n, k = amx_check._SIZE
    numbers = np.arange(m * k + k * n) * 37 % 255 - 127
    a, b = numbers[: m * k], numbers[m * k :]
    exact = [a.reshape(m, k) @ b.reshape(k, n), a.reshape(k, m).T @ b.reshape(n, k).T]
    assert (within == np.stack(exact).astype(BF16).astype(np.float32)).all()
    assert (without == within).all()


def test_the_system_is_asked_for_the_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []
    answers = iter([0, -1])

    def syscall(*given: Any) -> int:
        asked.append(tuple(one.value for one in given))
        return next(answers)

    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace(syscall=syscall))
    monkeypatch.setattr(target.sys, "platform", "linux")
    assert target.amx_permitted()
    assert not target.amx_permitted()
    assert asked == [(158, 0x1023, 18)] * 2  # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
    monkeypatch.setattr(target.sys, "platform", "darwin")
    assert not target.amx_permitted()
    assert len(asked) == 2


def test_features_and_permission_both_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(target, "amx_permitted", lambda: not asked.append(1))
    machine = target.Host()
    machine.has_amx = False
    assert not machine.may_use_amx
    assert asked == []
    machine = target.Host()
    machine.has_amx = True
    assert machine.may_use_amx
    assert machine.may_use_amx
    assert asked == [1]


@needs_pairs
def test_code_with_tiles_is_found_only_where_they_may_be_used(
    with_amx: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = gg.ones(32, 32, dtype=BF16)
    f = gg.compile(lambda a: a @ a, strict=True)
    f(a)
    graph = f.graph
    keys = {cache_entry.key_of(graph, 1, as_it_is=False)}
    has_tiles.cache_clear()
    monkeypatch.setattr(host(), "may_use_amx", False)
    keys.add(cache_entry.key_of(graph, 1, as_it_is=False))
    assert len(keys) == 2
    here, features = cache.key_of("step"), host().features
    signs = str.maketrans("+-", "-+")
    other = re.sub(r"[+-](?=amx-bf16)", lambda sign: sign[0].translate(signs), features)
    monkeypatch.setattr(host(), "features", other)
    assert other != features, "the features say whether there is AMX, here or not"
    assert cache.key_of("step") != here
