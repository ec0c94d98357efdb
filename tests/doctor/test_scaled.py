"""Losses and gradients that a gradient scaler multiplies are recorded as they are without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.doctor import watch

torch = pytest.importorskip("torch", reason="PyTorch's loops are watched as well")

LIBRARIES = pytest.mark.parametrize("lib", [gg, torch], ids=["ours", "torch"])
RNG = np.random.default_rng(4)
X = RNG.normal(size=(64, 6)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0)


def scaler_of(lib: Any, **options: Any) -> Any:
    """Return a scaler for the processor."""
    return lib.amp.GradScaler("cpu", init_scale=2.0**14, **options)


def recorded(lib: Any, scaler: Any, unscale: bool, steps: int = 40, **options: Any) -> Any:
    """Return what a watch has seen of a training with a scaler."""
    lib.manual_seed(1)
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.Tanh(), lib.nn.Linear(16, 3))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = lib.tensor(X), lib.tensor(Y)
    with watch(model, optimizer, report=False, **options) as seen:
        for _ in range(steps):
            optimizer.zero_grad()
            scaler.scale(lib.nn.functional.cross_entropy(model(x), y)).backward()
            if unscale:
                scaler.unscale_(optimizer)
                lib.nn.utils.clip_grad_norm_(model.parameters(), 100.0)
            scaler.step(optimizer)
            scaler.update()
    return seen


@LIBRARIES
@pytest.mark.parametrize("preset", ["economy", "full"])
@pytest.mark.parametrize("unscale", [False, True])
def test_numbers_are_those_without_a_scaler(lib: Any, preset: str, unscale: bool) -> None:
    scaled = recorded(lib, scaler_of(lib), unscale, preset=preset, every=2)
    plain = recorded(lib, scaler_of(lib, enabled=False), unscale, preset=preset, every=2)
    assert [one.rule for one in scaled.findings if one.severity != "info"] == []
    np.testing.assert_allclose(scaled.run.losses, plain.run.losses, rtol=1e-4)
    assert len(plain.run.losses) == 40
    for name in ("total_norm", "total_norm_clipped", "gradient_norm"):
        before, after = (getattr(one.data, name) for one in (plain, scaled))
        assert np.isfinite(before).all()
        np.testing.assert_allclose(after, before, rtol=1e-3)


@LIBRARIES
def test_gradients_that_explode_are_still_seen(lib: Any) -> None:
    lib.manual_seed(0)
    layers = [lib.nn.Linear(24, 24) for _ in range(12)]
    with lib.no_grad():
        for layer in layers:
            layer.weight.mul_(4.0)
    model = lib.nn.Sequential(lib.nn.Linear(6, 24), *layers, lib.nn.Linear(24, 1))
    optimizer, scaler = lib.optim.SGD(model.parameters(), lr=1e-12), scaler_of(lib)
    with watch(model, optimizer, report=False) as seen:
        for _ in range(12):
            optimizer.zero_grad()
            scaler.scale((model(lib.tensor(X)) ** 2).mean()).backward()
            scaler.step(optimizer)
            scaler.update()
    assert "exploding gradient" in {one.rule for one in seen.findings}


def test_each_optimizer_is_unscaled_once() -> None:
    first, second = (gg.tensor([3.0], requires_grad=True) for _ in range(2))
    optimizers = [gg.optim.SGD([one], lr=0.5) for one in (first, second)]
    scaler = gg.amp.GradScaler(init_scale=1024.0)
    scaler.scale((first**2).sum() + (second**2).sum()).backward()
    scaler.unscale_(optimizers[0])
    for one in optimizers:
        scaler.step(one)
    scaler.update()
    assert first.item() == second.item() == 0.0


@pytest.mark.filterwarnings("ignore:overflow encountered")  # the gradient overflows on purpose
def test_one_overflow_skips_its_optimizer_only_and_lowers_the_scale() -> None:
    good, bad = (gg.tensor([3.0], requires_grad=True) for _ in range(2))
    optimizers = [gg.optim.SGD([one], lr=0.5) for one in (good, bad)]
    scaler = gg.amp.GradScaler(init_scale=1024.0)
    scaler.scale((good**2).sum() + (bad * 1e36).sum()).backward()
    for one in optimizers:
        scaler.step(one)
    scaler.update()
    assert (good.item(), bad.item()) == (0.0, 3.0)
    assert scaler.get_scale() == 512.0
