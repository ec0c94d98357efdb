"""What other processors get: shorter vectors, and products by BLAS instead of our own."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad.compile.emit.llvm.blas import blas
from glassgrad.compile.emit.llvm.target import host
from glassgrad.compile.lower import lower
from tests.compile.backend.graphs import Builder, agree, interpret
from tests.compile.backend.test_fused_loops import batch_norm, layer_norm, softmax
from tests.compile.backend.test_native_runtime import fitting, mlp_step
from tests.compile.backend.test_windows_native import DEFAULTS


@pytest.fixture(params=[32, 16], ids=["32 bytes", "16 bytes"])
def narrow(request, monkeypatch):
    monkeypatch.setattr(host(), "vector_bytes", request.param)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_training_step(threads):
    assert blas().pointers
    graph = mlp_step()
    arrays = fitting(graph)
    (want,), updated = interpret(graph, arrays)
    step = lower(graph, threads=threads)
    assert "gemm_f32" in step.llvm
    mine = [array.copy() for array in arrays]
    agree(step(*mine)[0], want)
    for (target, _), expected in zip(graph.updates, updated, strict=True):
        agree(mine[graph.inputs.index(target)], expected)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nests_products_and_windows(dtype):
    b = Builder(dtype)
    x, gain, image, kernel = b.input(19, 37), b.input(37), b.input(2, 3, 9, 11), b.input(5, 3, 3, 3)
    graph = b.build(
        softmax(b, x), layer_norm(b, x, gain, gain), *batch_norm(b, x, gain, gain), x @ x.T, x.T @ x,
        x.reshape(19, 37, 1) @ x.reshape(19, 1, 37), (x * 3).sin() + x.erf(), b("power", x.abs(), 1.7),
        b("conv2d", image, kernel, **DEFAULTS),
        b("max_pool2d", image, kernel=(2, 2), stride=(2, 2), padding=((0, 0), (0, 0)), dilation=(1, 1), ceil=False),
    )  # fmt: skip
    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=var.shape).astype(dtype) for var in graph.inputs]
    want, _ = interpret(graph, arrays)
    for threads in (1, 2):
        for got, expected in zip(lower(graph, threads=threads)(*arrays), want, strict=True):
            agree(got, expected)


@pytest.mark.usefixtures("narrow")
def test_without_any_blas():
    graph = mlp_step(rows=9, width=21, classes=27)
    arrays = fitting(graph)
    (want,), _ = interpret(graph, arrays)
    saved = dict(blas().pointers)
    blas().pointers.clear()
    try:
        step = lower(graph, threads=1)
        assert "gemm_f32" not in step.llvm
        agree(step(*[array.copy() for array in arrays])[0], want)
    finally:
        blas().pointers.update(saved)
