"""Functions of eager kernels are translated once each, and a kernel does not depend on earlier translations."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad.compile import backends
from glassgrad.compile.ir.graph import Graph
from glassgrad.compile.llvm.module import step, target, units
from glassgrad.compile.llvm.module.blas import blas
from glassgrad.compile.llvm.module.ir import Module
from glassgrad.compile.llvm.module.target import LoadedCode, host
from glassgrad.compile.llvm.objects import linking, separate
from glassgrad.compile.llvm.objects.linking import UnsuitableError
from glassgrad.compile.llvm.objects.symbols import offered_symbols
from glassgrad.compile.llvm.products import tiles
from tests.compile.graphs import Builder, agree, interpret, lower
from tests.compile.llvm.test_windows_native import DEFAULTS
from tests.thinning import covering

pytestmark = pytest.mark.skipif(not host().divides, reason="elsewhere every kernel is a module of its own")


@pytest.fixture(autouse=True)
def translated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many functions each kernel needed that were not there."""
    units.TRANSLATED.clear()
    counts: list[int] = []
    translate = target.Host.object_codes

    def counted(self: Any, texts: Any, **given: Any) -> list[bytes]:
        if not given:
            counts.append(len(texts))
        return translate(self, texts, **given)

    monkeypatch.setattr(target.Host, "object_codes", counted)
    return counts


def conv(op: str, images: int, channels: int, filters: int, size: int, dtype: Any = np.float32, tap: int = 3) -> Graph:
    """Return the graph of a convolution, or of one of its gradients."""
    b = Builder(dtype)
    x, w = b.input(images, channels, size, size), b.input(filters, channels, tap, tap)
    params = {**DEFAULTS, "padding": ((tap // 2, tap // 2), (tap // 2, tap // 2))}
    y = b.input(images, filters, size, size)
    match op:
        case "conv2d":
            return b.build(b(op, x, w, **params))
        case "conv2d_input":
            return b.build(b(op, y, w, **params, size=(size, size)))
    return b.build(b(op, x, y, **params, kernel=(tap, tap)))


def product(rows: int, terms: int, columns: int, dtype: Any = np.float32) -> Graph:
    b = Builder(dtype)
    return b.build(b.input(rows, terms) @ b.input(terms, columns))


def made(graph: Graph, threads: int = 1) -> Any:
    return backends.build(graph, "llvm", threads, apart=True)


def code_of(graph: Graph, threads: int = 1) -> bytes:
    """Return the object code of a kernel."""
    step = made(graph, threads)
    return units.object_code(step.emitted.module.module, host())


def arrays_for(graph: Graph) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal(var.shape).astype(var.dtype) for var in graph.inputs]


OPS = ("conv2d", "conv2d_input", "conv2d_weight")
SHAPES = [(2, 3, 5, 7), (3, 20, 12, 9), (4, 37, 33, 8), (8, 64, 64, 4), (1, 1, 1, 1)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_compute_what_numpy_does(
    shape: tuple[int, int, int, int], op: str, threads: int, dtype: Any, translated: list[int]
) -> None:
    for tap in (3, 1):
        graph = conv(op, *shape, dtype=dtype, tap=tap)
        arrays = arrays_for(graph)
        truth, _ = interpret(
            conv(op, *shape, dtype=np.float64, tap=tap), [array.astype(np.float64) for array in arrays]
        )
        (found,) = made(graph, threads)(*arrays)
        scale = np.abs(truth[0]).max()
        assert np.abs(found - truth[0]).max() <= (2e-5 if dtype is np.float32 else 1e-12) * scale
    assert len(translated) == 2


@pytest.mark.parametrize(("rows", "sizes"), covering(range(1, 30), [(16, 7), (40, 33), (96, 1), (95, 130)]))
def test_products_have_tiles_for_rows_at_any_distance(rows: int, sizes: tuple[int, int]) -> None:
    """Distances are arguments, and those of every third row: all heights of tiles, and all widths of vectors."""
    columns, terms = sizes
    graph = product(rows, terms, columns)
    step, arrays = made(graph), arrays_for(graph)
    (want,), _ = interpret(graph, [array.astype(np.float64) for array in arrays])
    np.testing.assert_allclose(step(*arrays)[0], want, rtol=0, atol=1e-6 * terms)


def test_another_convolution_finds_most_of_its_functions(translated: list[int]) -> None:
    made(conv("conv2d", 8, 40, 64, 16))
    made(conv("conv2d", 8, 44, 64, 16))
    assert translated[0] > 3
    assert translated[1] == 0  # but for the loop around them, which has the sizes


def test_a_kernel_is_the_same_whatever_came_before() -> None:
    graphs = [conv(op, 8, channels, 12, 16) for op in OPS for channels in (40, 44)]
    forth = [code_of(graph) for graph in graphs]
    units.TRANSLATED.clear()
    back = [code_of(graph) for graph in reversed(graphs)]
    assert forth == back[::-1]
    assert len(set(forth)) == len(graphs)


def test_kernels_share_functions_in_memory_and_give_them_back() -> None:
    before = {id(one) for one in linking._known.values()}
    first, second = LoadedCode(code_of(product(9, 20, 48))), LoadedCode(code_of(product(9, 24, 48)))
    used = [{id(one) for one in code._linked.uses} for code in (first, second) if code._linked is not None]
    assert used[0] & used[1]
    # What they call is called in turn by what they share.
    held = {digest: one for digest, one in linking._known.items() if id(one) not in before}
    assert len(held) >= 3
    digests = list(held)
    del held, first, second
    gc.collect()
    assert not [digest for digest in digests if digest in linking._known]


def test_llvms_loader_takes_such_files(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = conv("conv2d_weight", 4, 37, 33, 8)
    arrays = arrays_for(graph)
    (want,) = made(graph)(*arrays)

    def refuse(*_: Any) -> Any:
        raise UnsuitableError("another form")

    monkeypatch.setattr(target, "linked_apart", refuse)
    step = made(graph)
    assert step.step._code._linked is None
    np.testing.assert_array_equal(step(*arrays)[0], want)


def test_from_the_disk_come_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, translated: list[int]
) -> None:
    base = tmp_path / "cache"
    base.mkdir(mode=0o700)
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", str(base))
    graph = conv("conv2d", 4, 37, 33, 8)
    arrays = arrays_for(graph)
    first = made(graph)
    assert len(list((base / "native").iterdir())) <= 2  # the kernel, and the machine where it was not known
    again = made(graph)
    assert (first.stats.cached, again.stats.cached, len(translated)) == (False, True, 1)
    np.testing.assert_array_equal(again(*arrays)[0], first(*arrays)[0])


def test_files_say_how_they_are_to_be_loaded() -> None:
    code = code_of(product(9, 20, 48))
    assert separate.are_apart(code)
    assert not separate.are_apart(separate.joined(separate.separate(code)))
    assert separate.joined(separate.separate(code), apart=True) == code


def test_small_functions_and_constants_come_with_their_callers() -> None:
    module = Module(host().vector_bytes)
    module.definitions = {
        "two": "@two = internal constant i64 2\n",
        "small": "define internal i64 @small(i64 %x) alwaysinline #0 {\n  %c = load i64, ptr @two\n"
        "  %y = mul i64 %x, %c\n  ret i64 %y\n}\n",
        "inner": "define internal i64 @inner(i64 %x) noinline #0 {\n  %y = call i64 @small(i64 %x)\n  ret i64 %y\n}\n",
        "outer": "define i64 @outer(i64 %x) #0 {\n  %y = call i64 @inner(i64 %x)\n  %z = call i64 @small(i64 %y)\n"
        "  ret i64 %z\n}\n",
    }
    code = units.object_code(module, host())
    assert len(separate.separate(code)) == 2
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    loaded = LoadedCode(code)
    assert function(loaded.address("outer"))(5) == 20


def test_loops_around_others_are_told_from_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host(), "vector_bytes", 64)  # with narrower ones the product is left to BLAS
    module = made(conv("conv2d", 8, 40, 64, 16)).emitted.module.module
    found = units.Units(module, host().header(), host().attributes())
    found.rest()
    assert len(found.outer) == 1
    (outer,) = found.outer
    assert outer == list(found.texts)[-1]  # it calls the others, and only the phase calls it
    assert found.texts[outer].count("call void") > 2
    assert "load" not in found.texts[outer]
    assert "x float>" not in found.texts[outer]
    found = units.Units(made(product(9, 20, 48)).emitted.module.module, host().header(), host().attributes())
    found.rest()
    assert len(found.texts) > 1  # loops around tiles, whose calls are short
    assert not found.outer


def test_compiled_steps_stay_whole(translated: list[int]) -> None:
    graph = product(9, 20, 48)
    agree(lower(graph, threads=1)(*arrays_for(graph))[0], interpret(graph, arrays_for(graph))[0][0])
    assert not translated


@pytest.fixture
def own_products(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tiles of our own for all products, also on processors where they are BLAS's."""
    monkeypatch.setenv("GLASSGRAD_BLAS", "own")
    blas.cache_clear()
    yield
    monkeypatch.undo()
    blas.cache_clear()


@pytest.mark.usefixtures("own_products")
@pytest.mark.parametrize(("many", "shared"), [(1, True), (2, False)])
def test_steps_of_many_products_share_tiles(many: int, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "MANY_PRODUCTS", many)
    graph = product(29, 130, 95)
    made, arrays = lower(graph, threads=1), arrays_for(graph)
    assert ("_any" in made.llvm) is shared
    (want,), _ = interpret(graph, [array.astype(np.float64) for array in arrays])
    np.testing.assert_allclose(made(*arrays)[0], want, rtol=0, atol=1e-4)


def test_a_tile_is_written_once_for_each_kind_of_machine() -> None:
    tiles.WRITTEN.clear()
    tile = tiles.Tile("f32", 4, 2, 16, None, cut=True, packed=False)
    first, second, narrow = Module(64), Module(64), Module(32)
    names = [tiles.tile_function(module, tile) for module in (first, second, narrow)]
    assert len(set(names)) == 1
    assert first.definitions[names[0]] is second.definitions[names[0]]
    assert first.declarations == second.declarations != {}
    assert len(tiles.WRITTEN) == 2


FUNCTION = "define i64 @f{at}(i64 %x) #0 {{\n  %y = add i64 %x, {at}\n  ret i64 %y\n}}"


def test_files_come_in_the_order_of_their_modules() -> None:
    texts = [
        "\n".join(
            [host().header(), *[FUNCTION.format(at=at + 10 * more) for more in range(1 + at % 3)], host().attributes()]
        )
        for at in range(7)
    ]
    for at, code in enumerate(host().object_codes(texts)):
        assert offered_symbols(code) == [f"f{at + 10 * more}" for more in range(1 + at % 3)]
    assert host().object_codes([]) == []


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_a_module_that_is_refused_is_an_error(wrong: int) -> None:
    texts = ["\n".join([host().header(), FUNCTION.format(at=at), host().attributes()]) for at in range(3)]
    texts[wrong] = "define nothing"
    with pytest.raises(RuntimeError, match="expected"):
        host().object_codes(texts)
