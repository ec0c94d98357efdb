"""Code for processors with 32-byte vectors and sixteen registers: tiles without spills, matrices in separate sets."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest

from glassgrad.compile.llvm.convolutions.windows import Shape
from glassgrad.compile.llvm.convolutions.winograd_plan import apart
from glassgrad.compile.llvm.module.ir import Module
from glassgrad.compile.llvm.module.target import host, parsed
from glassgrad.compile.llvm.products.gemm import TileShape, tile_shape
from glassgrad.compile.llvm.products.tiles import Tile, tile_function
from tests.compile.graphs import Builder, lower

LANES = 8
SETS, LINE = 64, 16  # of a first-level cache of 32 KB and eight ways; elements of a line


def code_for_haswell(shape):
    """Return the machine code of a tile for the first processors with AVX2."""
    module = Module(4 * LANES)
    tile_function(module, Tile("f32", shape.rows, shape.vectors, LANES, 64, False, True))
    text = "\n".join([host().header(), *module.declarations.values(), *module.definitions.values()])
    attributes = host().attributes().replace('"prefer-vector-width"="512"', '"prefer-vector-width"="256"')
    module_of = parsed(text.replace("internal ", "") + attributes)  # which has loaded LLVM
    target = llvm.Target.from_triple(host().triple)
    machine = target.create_target_machine(cpu="haswell", features="", opt=2, reloc="pic")
    return machine.emit_assembly(module_of)


def spilled(code):
    """Return the instructions that keep a vector in memory, or fetch it from there."""
    return [line for line in code.splitlines() if "%ymm" in line and "(%rsp)" in line]


@pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="another kind of processor")
def test_sums_of_a_tile_stay_in_registers(monkeypatch):
    monkeypatch.setattr(host(), "registers", 16)
    shape = tile_shape(1024, LANES)
    code = code_for_haswell(shape)
    assert code.count("vfmadd") == shape.rows * shape.vectors
    assert not spilled(code)
    assert spilled(code_for_haswell(TileShape(9, 3, 128)))  # what the test looks for


def test_processors_with_more_registers_keep_their_tiles(monkeypatch):
    monkeypatch.setattr(host(), "registers", 32)
    assert (tile_shape(1024, 16).rows, tile_shape(1024, 16).vectors) == (9, 3)
    assert (tile_shape(32, 16).rows, tile_shape(32, 16).vectors) == (14, 2)


def shape_of(kind, lanes):
    pair = (1, 1)
    return Shape(kind, 2, 4, 4, (8, 8), (3, 3), (8, 8), pair, (pair, pair), pair, 1, lanes)


@pytest.mark.parametrize("elements", [64 * 80, 128 * 128, 16 * 1024, 32 * 64, 12 * 80, 1000, 17])
def test_matrices_that_are_written_together_have_sets_of_their_own(elements):
    distance = apart(shape_of("f32", LANES), elements)
    assert elements <= distance <= elements + 3 * LINE
    assert distance % LINE == 0
    assert len({number * distance // LINE % SETS for number in range(16)}) == 16
    assert apart(shape_of("f32", 16), elements) == elements


@pytest.mark.parametrize("width", [64, 32, 16])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ends_of_rows_are_written_and_nothing_behind_them(width, dtype, monkeypatch):
    monkeypatch.setattr(host(), "vector_bytes", width)
    for columns in range(1, 18):
        b = Builder(dtype)
        x, w = b.input(1, 1, 3, columns), b.input(1, 1, 1, 2)
        params = {"stride": (1, 1), "padding": ((0, 0), (0, 1)), "dilation": (1, 1), "groups": 1}
        step = lower(b.build(b("conv2d", x, w, **params)), threads=1)
        image, kernel = np.random.default_rng(columns).normal(size=(3, columns)).astype(dtype), np.array([2, 1], dtype)
        (got,) = step(image.reshape(1, 1, 3, columns), kernel.reshape(1, 1, 1, 2))
        want = 2 * image + np.pad(image, ((0, 0), (0, 1)))[:, 1:]
        np.testing.assert_allclose(got[0, 0], want, rtol=1e-6, atol=1e-6)
