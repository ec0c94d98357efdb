"""What keeps compiling quick, by counting: the same code is emitted once, however many places use it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from glassgrad.compile.emit.llvm.blas import Blas
from glassgrad.compile.graph import Graph, GraphBuilder
from glassgrad.compile.lower import lower


@pytest.fixture
def own_products(monkeypatch):
    """Matrix products by our own code, whatever this machine would choose."""
    monkeypatch.setattr("glassgrad.compile.emit.llvm.solid.blas", lambda: Blas("own", {}))
    monkeypatch.setattr("glassgrad.compile.lower.blas", lambda: Blas("own", {}))


def products(*sizes: tuple[int, int, int], transposed: bool = False) -> Graph:
    """One product (m, k) @ (k, n) for each of the sizes (m, k, n)."""
    builder = GraphBuilder()
    found = []
    for m, k, n in sizes:
        left, right = builder.input((m, k)), builder.input((n, k) if transposed else (k, n))
        if transposed:
            right = builder.apply("permute_dims", [right], (k, n), np.float32, {"axes": (1, 0)})
        found.append(builder.apply("matmul", [left, right], (m, n), np.float32))
    return builder.build(found)


def functions(text: str, stem: str) -> list[str]:
    return re.findall(rf"^define internal void @({stem}\w*)\(", text, re.MULTILINE)


@pytest.mark.usefixtures("own_products")
def test_products_share_the_functions_of_their_tiles():
    # Rows of A lie 64 apart in all of them; how wide B and C are does not matter.
    one = lower(products((96, 64, 96)), threads=1)
    four = lower(products((96, 64, 96), (96, 64, 192), (96, 64, 480), (96, 64, 960)), threads=1)
    assert functions(four.llvm, "tile_") == functions(one.llvm, "tile_") != []
    assert functions(four.llvm, "pack_") == functions(one.llvm, "pack_")


@pytest.mark.usefixtures("own_products")
def test_one_function_packs_columns_for_all_products():
    text = lower(products((96, 64, 96), (96, 128, 100), (96, 32, 17), transposed=True), threads=1).llvm
    assert len(functions(text, "pack_columns_")) == 1
