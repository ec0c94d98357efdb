"""Ops whose NumPy calls native code makes: the same bits as NumPy's, and the right numbers."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
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
OPS = [prim for prim in REGISTRY.values() if isinstance(prim, Elementwise) and prim.samples]
UNUSUAL = (np.nan, np.inf, -np.inf, -0.0, 0.0)


def bits_of(result: Any) -> bytes:
    value = np.asarray(result)
    return np.where(np.isnan(value), 1, value).astype(value.dtype).tobytes() if value.dtype.kind in "fc" else b""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("prim", OPS, ids=lambda prim: prim.name)
def test_elementwise_ops_give_the_same_bits(prim: Any, dtype: Any) -> None:
    """Forward and backward; for other numbers than those of the record, before and after it was made."""

    def drawn_for(seed: int, shape: tuple[int, ...]) -> list[Array]:
        return [one.draw(np.random.default_rng((seed, at)), shape, dtype) for at, one in enumerate(prim.samples)]

    given = [[drawn_for(seed, shape) for seed in range(4)] for shape in SHAPES]
    cotangents = [drawn(*shape, dtype=dtype, seed=9) for shape in SHAPES]
    with by_the_functions_themselves():
        expected = [[computed(prim, one, g) for one in some] for some, g in zip(given, cotangents, strict=True)]
    for some, cotangent, wanted in zip(given, cotangents, expected, strict=True):
        for _ in range(3):
            computed(prim, some[0], cotangent)
        assert [computed(prim, one, cotangent) for one in some] == wanted, cotangent.shape


@pytest.mark.parametrize("prim", [prim for prim in OPS if len(prim.samples) > 1], ids=lambda prim: prim.name)
def test_elementwise_ops_of_several_numbers_give_the_same_bits_where_these_are_unusual(prim: Any) -> None:
    usual = [one.draw(np.random.default_rng(at), (5, 4), np.float32) for at, one in enumerate(prim.samples)]
    pairs = [np.array(one, np.float32)[:, 1:] for one in np.meshgrid(UNUSUAL, UNUSUAL)]
    cotangents = [
        np.ones((5, 4), np.float32),
        np.broadcast_to(np.float32(2), (5, 4)),
        np.resize(np.float32(UNUSUAL), (5, 4)),
    ]

    def case(values: list[Array]) -> list[Array]:
        filled = [*values, values[0]] if len(usual) > 2 else values
        return [one > 0 if domain.boolean else one for one, domain in zip(filled, prim.samples, strict=True)]

    lying = [case(pairs), case([np.ascontiguousarray(one) for one in pairs])]
    with np.errstate(all="ignore"):
        with by_the_functions_themselves():
            expected = [[computed(prim, one, g) for g in cotangents] for one in lying]
        for given, wanted in zip(lying, expected, strict=True):
            for cotangent, bits in zip(cotangents, wanted, strict=True):
                for _ in range(3):
                    computed(prim, [like(one, x) for one, x in zip(usual, given, strict=True)], cotangent)
                assert computed(prim, given, cotangent) == bits


def like(value: Array, x: Array) -> Array:
    """Return some numbers in an array that lies as another one does."""
    copied = np.lib.stride_tricks.as_strided(np.zeros(64, x.dtype), x.shape, x.strides)
    copied[...] = value
    return copied


@contextlib.contextmanager
def by_the_functions_themselves() -> Iterator[None]:
    """Make no use of records."""
    all_of_them = [(one, one.run) for one in gc.get_objects() if type(one) is replay.Replay]
    first, replay.settings.first = replay.settings.first, 1 << 62
    for one, _ in all_of_them:
        one.run = one._function
    try:
        yield
    finally:
        replay.settings.first = first
        for one, run in all_of_them:
            one.run = run


def computed(prim: Any, values: list[Array], cotangent: Array) -> list[bytes]:
    """Return the bits of an op's result and gradients."""
    inputs = [gg.from_numpy(np.asarray(value)) for value in values]
    for x, domain in zip(inputs, prim.samples, strict=True):
        x.requires_grad = not domain.boolean
    y = prim(*inputs, **prim.sample_params)
    wanted = [x for x in inputs if x.requires_grad]
    grads = gg.autograd.grad(y, wanted, gg.from_numpy(cotangent), allow_unused=True) if y.requires_grad else ()
    return [bits_of(one.detach().numpy()) for one in (y, *grads) if one is not None]


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


def test_an_integer_is_left_to_the_function_and_a_float_has_records() -> None:
    x = gg.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    for exponent in (2, 3, 2.0, 3.0):
        for _ in range(5):
            (g,) = gg.autograd.grad((x**exponent).sum(), x)
            np.testing.assert_allclose(g.numpy(), exponent * np.array([-2.0, 0.5, 3.0]) ** (exponent - 1), rtol=1e-6)
