"""Batch norm and the gradients of relu and hardtanh in native code of every size agree with NumPy's in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import functional as F
from glassgrad.ops.fused import batch_norm_p
from glassgrad.ops.kernels import channels, native, parallel, products

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

# Whole vectors, several and one; rows with a rest; rows shorter than a vector; one channel; one sample; no rows at all.
SHAPES = [(2, 3, 16, 16), (3, 5, 7, 11), (4, 2, 3), (2, 1, 67), (1, 4, 130), (0, 3, 4, 4)]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> native.Kernels:
    """Native code however little there is to do."""
    kernels = native.Kernels()
    monkeypatch.setattr(native, "kernels", kernels)
    monkeypatch.setattr(channels, "NORM_FROM", 0)
    return kernels


def truth(x: Any, w: Any, b: Any, g: Any, eps: float) -> list[Any]:
    """What batch norm and its gradient are, in float64 and by their definition."""
    x, w, b, g = (part.astype(np.float64) for part in (x, w, b, g))
    axes, beside = (0, *range(2, x.ndim)), (1, -1, *(1,) * (x.ndim - 2))
    mean, var = x.mean(axes), x.var(axes)
    normal = (x - mean.reshape(beside)) / np.sqrt(var + eps).reshape(beside)
    h = g * w.reshape(beside)
    inner = h - h.mean(axes, keepdims=True) - normal * (h * normal).mean(axes, keepdims=True)
    dx = inner / np.sqrt(var + eps).reshape(beside)
    return [normal * w.reshape(beside) + b.reshape(beside), mean, var, dx, (g * normal).sum(axes), g.sum(axes)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES[:-1], ids=str)
def test_batch_norm_and_its_gradient(shape: tuple[int, ...], dtype: Any, always: native.Kernels) -> None:
    rng = np.random.default_rng(1)
    x, g = rng.normal(3, 2, shape).astype(dtype), rng.normal(size=shape).astype(dtype)
    w, b = rng.normal(size=(2, shape[1])).astype(dtype)
    found = channels.batch_norm(x, w, b, 1e-3)
    assert found is not None
    made, kept = found
    for mine, expected in zip((*made, *channels.batch_norm_vjp(g, x, kept)), truth(x, w, b, g, 1e-3), strict=True):
        assert mine.dtype == dtype
        size = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(mine, expected, rtol=0, atol=20 * np.finfo(dtype).eps * size)


def test_through_the_tape(always: native.Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    """The primitive asks for it, any cotangent does, and the update of running statistics sees the same numbers."""
    rng = np.random.default_rng(2)
    x, g = rng.normal(size=(4, 3, 5, 6)), rng.normal(size=(4, 5, 6, 3)).transpose(0, 3, 1, 2)
    results = []
    for least in (0, 1 << 62):
        monkeypatch.setattr(channels, "NORM_FROM", least)
        leaves = [gg.tensor(part, requires_grad=True) for part in (x, rng.normal(size=3) * 0 + 2, np.ones(3))]
        y, mean, var = batch_norm_p(*leaves, eps=1e-5)
        assert isinstance(y.node.saved[0], channels.Statistics) == (least == 0)
        y.backward(gg.tensor(g))
        results.append([y, mean, var, *(leaf.grad for leaf in leaves)])
    for mine, expected in zip(*results, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), expected.detach().numpy(), rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(channels, "NORM_FROM", 0)
    gg.verify.gradgradcheck(
        lambda x: (F.batch_norm(x, training=True) ** 3).sum(), (gg.tensor(x[:2, :2, :2, :2].copy()),)
    )


def test_channels_are_shared_among_threads(always: native.Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).normal(size=(2, 7, 5))
    alone = channels.batch_norm(x, np.ones(7), np.zeros(7), 1e-5)
    two = parallel.Blas(lambda: 2, lambda count: None)
    monkeypatch.setattr(parallel, "shares", parallel.Shares(lambda: two, least=1))
    shared = channels.batch_norm(x, np.ones(7), np.zeros(7), 1e-5)
    assert alone is not None
    assert shared is not None
    np.testing.assert_array_equal(shared[0][0], alone[0][0])
    np.testing.assert_array_equal(channels.inside(x, x, 0.0, math.nan), np.where(x > 0, x, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_of_kinks(shape: tuple[int, ...], dtype: Any, always: native.Kernels) -> None:
    rng = np.random.default_rng(4)
    v, g = np.round(rng.normal(scale=3, size=shape), 1).astype(dtype), rng.normal(size=shape).astype(dtype)
    specials = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
    v.reshape(-1)[: len(specials)] = specials[: v.size]
    for low, high in ((0.0, math.nan), (-1.0, 1.0)):
        expected = np.where((v <= low) | (v >= high), 0, g)
        np.testing.assert_array_equal(channels.inside(g, v, low, high), expected)
        turned = channels.inside(np.moveaxis(g, 1, -1), np.moveaxis(v, 1, -1), low, high)
        np.testing.assert_array_equal(np.moveaxis(turned, -1, 1), expected)
        np.testing.assert_array_equal(channels.inside(np.asfortranarray(g), v, low, high), expected)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shares_of_a_kink_are_the_whole(
    count: int, dtype: Any, always: native.Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    monkeypatch.setattr(products, "shares", lambda work: count)
    for size in (1, 2, 1000, 12_347):
        g, v = rng.normal(size=(2, size)).astype(dtype)
        np.testing.assert_array_equal(channels.inside(g, v, -0.5, 0.25), np.where((v > -0.5) & (v < 0.25), g, 0))


def test_rules_of_relu_and_hardtanh_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(channels, "inside", lambda g, v, *_: asked.append(v.size))
    for size, often in ((249_999, 0), (250_000, 3)):
        x = gg.tensor(np.linspace(-9, 9, size), requires_grad=True)
        (F.relu(x) + F.relu6(x)).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), (x.detach().numpy() > 0) * (1.0 + (x.detach().numpy() < 6)))
        assert asked == [size] * often  # relu in both directions, relu6 for its gradient


@pytest.mark.parametrize("what", ["flat", "half", "channels last", "dtypes", "turned off"])
def test_numpy_computes_what_is_not_for_native_code(what: str, always: native.Kernels) -> None:
    x, w, b = np.ones((4, 3, 2, 2), np.float32), np.ones(3, np.float32), np.ones(3, np.float32)
    match what:
        case "flat":
            x = x[:, :, 0, 0]
        case "half":
            x = x.astype(np.float16)
        case "channels last":
            x = np.moveaxis(np.ones((4, 2, 2, 3), np.float32), -1, 1)
        case "dtypes":
            w = w.astype(np.float64)
        case "turned off":
            always.off = True
    assert channels.batch_norm(x, w, b, 1e-5) is None
