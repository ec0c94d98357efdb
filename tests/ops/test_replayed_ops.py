"""Ops whose NumPy calls native code makes: the same bits as NumPy's, and the right numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import functional as F
from glassgrad.ops import fused
from glassgrad.ops.core import REGISTRY, Elementwise
from glassgrad.ops.kernels import replay
from tests.ops.replays import FUNCTIONS, drawn, expect_same, is_native, labels, recorded

pytest.importorskip("llvmlite", reason="recorded calls are made by native code")
Array = Any
pytestmark = pytest.mark.usefixtures("at_once")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(2, 2), (3, 5), (32, 27), (33, 200), (64, 64), (130, 17)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_are_the_same_to_the_last_bit(name: str, sizes: tuple[int, int], dtype: Any) -> None:
    function, make = FUNCTIONS[name]
    args = tuple([np.asarray(one) for one in make(*sizes, dtype)])
    found = recorded(function, lambda: args)
    assert is_native(found)
    for seed in range(3):  # other numbers than the record was made with
        scale = dtype(1 + seed)
        others = tuple([one * scale if one.dtype == dtype else one[::-1].copy() for one in args])
        expect_same(found.run(*others), function(*others))
    assert found.records == 1


def test_the_true_numbers() -> None:
    """Against the formulas in double precision, not against the function that was recorded."""
    x, w, b = drawn(32, 20), drawn(20, seed=1), drawn(20, seed=2)
    found = recorded(partial(fused._normalised, eps=1e-5), lambda: (x, w, b))
    assert is_native(found)
    y, mean, var, *_ = found.run(x, w, b)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5)
    np.testing.assert_allclose(y, normal * w + b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(mean, wide.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(var, wide.var(0), rtol=1e-5)
    target = labels(32, 20)
    loss, *_ = recorded(partial(fused._losses, reduction="mean"), lambda: (x, target)).run(x, target)
    expected = (np.log(np.exp(wide).sum(1)) - wide[np.arange(32), target]).mean()
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


# --- elementwise ops ----------------------------------------------------------------------------------

SHAPES = ((), (1,), (7,), (4, 1, 5), (300,))
OPS = [prim for prim in REGISTRY.values() if isinstance(prim, Elementwise) and prim.arity == 1 and prim.samples]


def bits_of(result: Any) -> bytes:
    value = np.asarray(result)
    return np.where(np.isnan(value), 1, value).astype(value.dtype).tobytes() if value.dtype.kind in "fc" else b""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("prim", OPS, ids=lambda prim: prim.name)
def test_elementwise_ops_give_the_same_bits(prim: Any, dtype: Any) -> None:
    """Forward and backward; for other numbers than those of the record, before and after it was made."""
    domain, differentiable = prim.samples[0], not prim.samples[0].boolean

    def computed(value: Array, cotangent: Array) -> list[bytes]:
        x = gg.from_numpy(value)
        x.requires_grad = differentiable
        y = prim(x, **prim.sample_params)
        grads = gg.autograd.grad(y, x, gg.from_numpy(cotangent)) if y.requires_grad else ()
        return [bits_of(one.detach().numpy()) for one in (y, *grads)]

    for shape in SHAPES:
        values = [domain.draw(np.random.default_rng(seed), shape, dtype) for seed in range(4)]
        cotangent = drawn(*shape, dtype=dtype, seed=9)
        first = replay.settings.first
        replay.settings.first = 1 << 62  # of strides that come nowhere else: by the functions themselves
        expected = [computed(apart(value), apart(cotangent)) for value in values]
        replay.settings.first = first
        for _ in range(3):
            computed(values[0], cotangent)
        assert [computed(value, cotangent) for value in values] == expected, shape


def apart(array: Array) -> Array:
    """Return an array whose elements lie apart."""
    memory = np.zeros((*array.shape, 11), array.dtype)[..., 5]
    memory[...] = array
    return memory


def test_gelu_finds_its_ends_where_errors_are_ignored() -> None:
    """What makes a NaN on the way is seen by the processor's flags, whatever NumPy is told to do about them."""
    x = gg.tensor([1e30, -1e30, np.inf, -np.inf, 0.0, np.nan, 1.0] * 40)
    plain = gg.tensor([0.5] * 280)
    with np.errstate(all="ignore"):
        for _ in range(4):
            F.gelu(plain)
            found = F.gelu(x).numpy()[:7]
    np.testing.assert_allclose(found, [1e30, 0, np.inf, np.nan, 0, np.nan, 0.8413447], rtol=1e-5)


def test_ops_with_options_have_records_of_their_own() -> None:
    x = gg.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    for alpha in (0.5, 2.0, 0.0, 1):
        for _ in range(5):
            y = F.elu(x, alpha)
            expected = [float(alpha * np.expm1(np.float32(-2.0))), 0.5, 3.0]
            np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-6)
            (g,) = gg.autograd.grad(y.sum(), x)
            np.testing.assert_allclose(g.numpy(), [alpha * np.exp(-2.0), 1.0, 1.0], rtol=1e-6)


def test_higher_derivatives_and_transforms_stay_on_the_tape() -> None:
    x = gg.tensor([0.3, -0.7], requires_grad=True)
    for _ in range(5):
        (g,) = gg.autograd.grad(gg.tanh(x).sum(), x, create_graph=True)
        (h,) = gg.autograd.grad(g.sum(), x)
        t = np.tanh(x.detach().numpy().astype(np.float64))
        np.testing.assert_allclose(h.numpy(), -2 * t * (1 - t * t), rtol=1e-5)
        batch = gg.func.vmap(gg.func.grad(lambda one: gg.tanh(one * one)))(x.detach())
        u = np.tanh((x.detach().numpy().astype(np.float64)) ** 2)
        np.testing.assert_allclose(batch.numpy(), (1 - u * u) * 2 * x.detach().numpy(), rtol=1e-5)


# --- a training ------------------------------------------------------------------------------------


def trained(steps: int) -> list[bytes]:
    gg.manual_seed(3)
    model = gg.nn.Sequential(
        gg.nn.Embedding(27, 10), gg.nn.Flatten(), gg.nn.Linear(30, 20), gg.nn.BatchNorm1d(20), gg.nn.Tanh(),
        gg.nn.Linear(20, 27),
    )  # fmt: skip  # a list of layers
    optimizer = gg.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(steps):
        x, y = gg.tensor(labels(96, 27, step).reshape(32, 3)), gg.tensor(labels(32, 27, step + 100))
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [value.detach().numpy().tobytes() for value in model.state_dict().values()]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_training_ends_with_the_same_bits(threads: str) -> None:
    bits = {}
    for off in (False, True):
        lines = [
            "from glassgrad.ops import fused",
            "from glassgrad.ops.kernels.replay import settings",
            f"settings.first, settings.repeats, settings.off = 0, 4, {off}",
            "from tests.ops.test_replayed_ops import trained",
            "bits = trained(20)",
            "print(fused._PRODUCTS.records, bits)",
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        command = [sys.executable, "-c", "\n".join(lines)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
        records, bits[off] = done.stdout.split(" ", 1)
        assert records == ("0" if off else "2")
    assert bits[True] == bits[False]
    assert len(bits[True]) > 10_000
