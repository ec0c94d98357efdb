"""Averages of weights, and gradients of a large batch from small ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F
from glassgrad.optim import swa_utils


def problem(seed: int = 0) -> tuple[Any, Any, Any]:
    """A small classifier in float64 and one batch for it."""
    gg.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    rng = np.random.default_rng(seed)
    return model, gg.tensor(rng.normal(size=(12, 4))), gg.tensor(rng.integers(0, 3, 12))


def weights(model: Any) -> list[Any]:
    return [p.detach().numpy().copy() for p in model.parameters()]


# --- accumulation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [(3, 3, 3, 3), (6, 6), (5, 1, 4, 2)])
@pytest.mark.parametrize("way", ["plain", "context"])
def test_micro_batches_give_the_step_of_the_whole_batch(parts: tuple[int, ...], way: str) -> None:
    model, x, y = problem()
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    F.cross_entropy(model(x), y).backward()
    expected_gradients = [p.grad.numpy().copy() for p in model.parameters()]
    optimizer.step()
    expected = weights(model)

    model, x, y = problem()
    seen: list[list[Any]] = []

    class Watched(optim.Adam):
        def step(self, closure: Any = None) -> Any:
            seen.append([p.grad.numpy().copy() for p in model.parameters()])
            return super().step(closure)

    accumulator = optim.GradientAccumulator(Watched(model.parameters(), lr=0.1), steps=len(parts))
    equal = len(set(parts)) == 1
    start = 0
    for number, size in enumerate(parts):
        rows = slice(start, start + size)
        start += size
        if way == "plain":
            loss = F.cross_entropy(model(x[rows]), y[rows])
            completed = accumulator.backward(loss, None if equal else size)
        else:
            with accumulator(None if equal else size):
                F.cross_entropy(model(x[rows]), y[rows]).backward()
            completed = accumulator.stepped
        assert completed == (number == len(parts) - 1)
    for a, b in zip(seen[0], expected_gradients, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    for a, b in zip(weights(model), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert all(p.grad is None for p in model.parameters())


def test_norms_clipping_and_the_rest_of_an_epoch() -> None:
    model, x, y = problem()
    accumulator = optim.GradientAccumulator(optim.SGD(model.parameters(), lr=0.1), steps=2, max_norm=0.01)
    before = weights(model)
    for row in range(5):
        accumulator.backward(F.cross_entropy(model(x[row : row + 1]), y[row : row + 1]))
    assert accumulator.flush()
    assert not accumulator.flush()
    moved = np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(weights(model), before, strict=True)))
    assert moved <= 3 * 0.1 * 0.01 * (1 + 1e-6)
    found = accumulator.statistics()
    assert found.steps == len(accumulator.norms) == 3
    assert found.smallest <= found.mean <= found.largest
    assert found.largest == max(accumulator.norms)


def test_a_step_that_is_not_finite_is_left_out() -> None:
    model, x, y = problem()
    accumulator = optim.GradientAccumulator(optim.SGD(model.parameters(), lr=0.1), steps=1, skip_nonfinite=True)
    before = weights(model)
    accumulator.backward(F.cross_entropy(model(x), y) * float("nan"))
    assert accumulator.skipped == 1
    for a, b in zip(weights(model), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert accumulator.backward(F.cross_entropy(model(x), y))
    assert accumulator.statistics().steps == 2


def test_a_failed_micro_batch_is_not_counted() -> None:
    model, *_ = problem()
    accumulator = optim.GradientAccumulator(optim.SGD(model.parameters(), lr=0.1), steps=1)
    with pytest.raises(KeyError), accumulator:
        raise KeyError("the user's own")
    assert not accumulator.norms
    with pytest.raises(ValueError, match="steps=0"):
        optim.GradientAccumulator(accumulator.optimizer, 0)


# --- averages ---------------------------------------------------------------------------------------


def test_ema_follows_its_formula_and_swaps() -> None:
    model, x, y = problem()
    ema = optim.EMA(model, decay=0.7)
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    expected = weights(model)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        ema.update()
        expected = [0.7 * mean + 0.3 * now for mean, now in zip(expected, weights(model), strict=True)]
    trained = weights(model)
    with ema.applied():
        for a, b in zip(weights(model), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    for a, b in zip(weights(model), trained, strict=True):
        np.testing.assert_array_equal(a, b)
    other, *_ = problem(1)
    again = optim.EMA(other)
    again.load_state_dict(ema.state_dict())
    again.copy_to(other)
    for a, b in zip(weights(other), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert (again.decay, again.updates) == (0.7, 5)


@pytest.mark.parametrize("kind", ["swa", "ema", "ema_each", "swa_each"])
def test_averaged_model_against_pytorch(kind: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    start = np.random.default_rng(0).normal(size=(4, 3, 2))
    results = []
    for library in (gg, torch):
        tools = swa_utils if library is gg else torch.optim.swa_utils
        options = {
            "swa": {},
            "ema": {"multi_avg_fn": tools.get_ema_multi_avg_fn(0.8)},
            "ema_each": {"avg_fn": tools.get_ema_avg_fn(0.8)},
            "swa_each": {"avg_fn": tools.get_swa_avg_fn()},
        }[kind]
        model = library.nn.Sequential(library.nn.Linear(2, 3, bias=False), library.nn.BatchNorm1d(3))
        averaged = tools.AveragedModel(model, use_buffers=True, **options)
        for array in start:
            with library.no_grad():
                model[0].weight.data.copy_(library.tensor(array.astype(np.float32)))
            model(library.tensor(array.astype(np.float32)))
            averaged.update_parameters(model)
        state = {name: value.numpy() for name, value in averaged.state_dict().items()}
        tools.update_bn([library.tensor(one.astype(np.float32)) for one in start], averaged)
        results.append((state, {name: value.numpy() for name, value in averaged.state_dict().items()}))
    for ours, theirs in zip(*results, strict=True):
        assert list(ours) == list(theirs)
        for name in theirs:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("options", [{}, {"anneal_strategy": "linear", "anneal_epochs": 4}, {"anneal_epochs": 0}])
def test_swalr_against_pytorch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    results = []
    for library in (gg, torch):
        tools = swa_utils if library is gg else torch.optim.swa_utils
        optimizer = library.optim.SGD([library.zeros(1, requires_grad=True)], lr=0.5)
        schedule = tools.SWALR(optimizer, swa_lr=0.05, **options)
        rates = []
        for _ in range(15):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        results.append(rates)
    np.testing.assert_allclose(*results, rtol=1e-9)
