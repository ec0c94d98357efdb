"""Code for other processors: shorter vectors, and products by BLAS instead of ours."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys

import numpy as np
import pytest

from glassgrad.compile.llvm.module.blas import blas
from glassgrad.compile.llvm.module.target import host
from tests.compile.graphs import Builder, agree, interpret, lower
from tests.compile.llvm.test_fused_loops import batch_norm, layer_norm, softmax
from tests.compile.llvm.test_windows_native import DEFAULTS
from tests.compile.native.test_native_runtime import fitting, mlp_step
from tools import emulated


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
    assert ("gemm_f32" in step.llvm) is (host().vector_bytes == 16), "small products are BLAS's in narrow vectors alone"
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
        softmax(b, x),
        layer_norm(b, x, gain, gain),
        *batch_norm(b, x, gain, gain),
        x @ x.T,
        x.T @ x,
        x.reshape(19, 37, 1) @ x.reshape(19, 1, 37),
        (x * 3).sin() + x.erf(),
        b("power", x.abs(), 1.7),
        b("conv2d", image, kernel, **DEFAULTS),
        b("max_pool2d", image, kernel=(2, 2), stride=(2, 2), padding=((0, 0), (0, 0)), dilation=(1, 1), ceil=False),
    )
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


@pytest.mark.parametrize("threads", [1, 2])
def test_without_conversions_of_halves(threads, monkeypatch):
    """Halves are computed by the host then: native code would call a function that is not there."""
    monkeypatch.setattr(host(), "has_halves", False)
    b = Builder(np.float16)
    x = b.input(5, 7)
    graph = b.build(softmax(b, x), (x * 2).sin(), x @ x.T, x.T + x.T)
    (array,) = [np.random.default_rng(2).normal(size=x.shape).astype(np.float16)]
    step = lower(graph, threads=threads)
    assert "half" not in step.llvm
    want, _ = interpret(graph, [array])
    for got, expected in zip(step(array), want, strict=True):
        agree(got, expected)


EMULATED = """
import numpy as np
import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F

gg.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
optimizer = optim.AdamW(model.parameters(), lr=0.1)

def step(x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

run = gg.compile(step, backend="llvm", strict=True)
x, y = gg.tensor(np.linspace(-1, 1, 20).reshape(4, 5)), gg.tensor([0, 1, 2, 0])
losses = [run(x.float(), y).item() for _ in range(3)]
assert losses[0] > losses[1] > losses[2] > 0, losses
for dtype in (np.float16, np.float32, np.float64):
    z = gg.tensor(np.linspace(-2, 2, 20).reshape(4, 5).astype(dtype))
    found, wanted = gg.compile(lambda v: F.softmax(v * 2, -1), strict=True)(z), F.softmax(z * 2, -1)
    assert np.allclose(found.numpy(), wanted.numpy(), rtol=0.02), (found, wanted)

# No product of bfloat16 here: that is said once, and everything is float32.
import warnings
a, b = gg.randn(20, 12), gg.randn(12, 7)
exact = a.numpy().astype(np.float64) @ b.numpy().astype(np.float64)
product = gg.compile(lambda a, b: a @ b, strict=True)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(2):
        with gg.autocast("cpu"):
            found = product(a, b), a @ b
assert [one.category for one in said] == [gg.errors.PrecisionWarning], said
assert "everything stays in float32" in str(said[0].message)
for one in found:
    assert one.dtype == np.float32
    assert np.allclose(one.numpy(), exact, atol=1e-5)
narrow = product(a.bfloat16(), b.bfloat16())
assert narrow.dtype == gg.bfloat16
assert np.allclose(narrow.float().numpy(), exact, atol=0.1), narrow
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["Nehalem", "Haswell", "max"])
def test_under_emulation(processor, tmp_path):
    """An emulator hands out memory in places of its own, and knows processors older than any that tests run on."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None or platform.machine() != "x86_64":
        pytest.skip("no qemu-x86_64 (Debian's qemu-user) for this machine")
    core = {"OPENBLAS_CORETYPE": processor}  # on an AMD processor OpenBLAS takes a Nehalem for a Haswell
    done = subprocess.run(
        [emulator, "-cpu", processor, sys.executable, "-c", EMULATED],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GLASSGRAD_CACHE_DIR": str(tmp_path), **({} if processor == "max" else core)},
        timeout=600,
    )
    assert done.stdout.endswith("done\n"), done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("processor", emulated.PROCESSORS)
def test_on_another_architecture(processor, tmp_path):
    if not emulated.is_ready():
        pytest.skip(f"`python tools/emulated.py {processor} -V` sets up a Python for it")
    environment = {**emulated.environment(), "GLASSGRAD_CACHE_DIR": str(tmp_path)}
    program = ["import platform", "from glassgrad.compile.llvm.module.target import host", EMULATED]
    program.append(f"assert (platform.machine(), host().cpu) == ('aarch64', {processor!r}), host().cpu")
    done = subprocess.run(
        [emulated.launcher(processor), "-c", "\n".join(program)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=600,
    )
    assert done.stdout.endswith("done\n"), done.stderr[-2000:]
    assert done.returncode == 0, done.stderr[-2000:]
