"""Fused layers, losses and activations on small arrays: the right numbers, also at the ends of their ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad.nn import functional as F
from glassgrad.ops import fused

Array = Any


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_batch_norm_and_cross_entropy_against_formulas_in_double_precision() -> None:
    x, w, b = drawn(32, 20), drawn(20, seed=1), drawn(20, seed=2)
    y, mean, var, *_ = fused._normalised(x, w, b, 1e-5)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5)
    np.testing.assert_allclose(y, normal * w + b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(mean, wide.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(var, wide.var(0), rtol=1e-5)
    target = np.random.default_rng(0).integers(0, 20, 32)
    loss = F.cross_entropy(gg.from_numpy(x), gg.from_numpy(target))
    expected = (np.log(np.exp(wide).sum(1)) - wide[np.arange(32), target]).mean()
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-6)


def test_gelu_finds_its_ends_where_errors_are_ignored() -> None:
    x = gg.tensor([1e30, -1e30, np.inf, -np.inf, 0.0, np.nan, 1.0] * 40)
    with np.errstate(all="ignore"):
        found = F.gelu(x).numpy()[:7]
    np.testing.assert_allclose(found, [1e30, 0, np.inf, np.nan, 0, np.nan, 0.8413447], rtol=1e-5)


def test_each_choice_of_options_is_computed_with_its_own() -> None:
    x = gg.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    for alpha in (0.5, 2.0, 0.0, 1):
        y = F.elu(x, alpha)
        expected = [float(alpha * np.expm1(np.float32(-2.0))), 0.5, 3.0]
        np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-6)
        (g,) = gg.autograd.grad(y.sum(), x)
        np.testing.assert_allclose(g.numpy(), [alpha * np.exp(-2.0), 1.0, 1.0], rtol=1e-6)


def test_higher_derivatives_and_transforms_of_the_same_rule() -> None:
    x = gg.tensor([0.3, -0.7], requires_grad=True)
    (g,) = gg.autograd.grad(gg.tanh(x).sum(), x, create_graph=True)
    (h,) = gg.autograd.grad(g.sum(), x)
    t = np.tanh(x.detach().numpy().astype(np.float64))
    np.testing.assert_allclose(h.numpy(), -2 * t * (1 - t * t), rtol=1e-5)
    batch = gg.func.vmap(gg.func.grad(lambda one: gg.tanh(one * one)))(x.detach())
    u = np.tanh((x.detach().numpy().astype(np.float64)) ** 2)
    np.testing.assert_allclose(batch.numpy(), (1 - u * u) * 2 * x.detach().numpy(), rtol=1e-5)


def test_powers_by_integers_and_by_floats() -> None:
    x = gg.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    for exponent in (2, 3, 2.0, 3.0):
        (g,) = gg.autograd.grad((x**exponent).sum(), x)
        np.testing.assert_allclose(g.numpy(), exponent * np.array([-2.0, 0.5, 3.0]) ** (exponent - 1), rtol=1e-6)
