"""Rules about what enters a model, and about small runs that each show one fault beside its healthy form."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.doctor import watch
from glassgrad.nn import functional as F


def titles(seen: Any) -> list[str]:
    return [one.rule for one in seen.findings]


def trained(model: Any, loss_of: Any, steps: int = 40, rate: float = 1e-2) -> Any:
    optimizer = gg.optim.Adam(model.parameters(), lr=rate)
    with watch(model, optimizer, report=False, preset="full") as seen:
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(step).backward()
            optimizer.step()
    return seen


@pytest.fixture(autouse=True)
def _seeded() -> None:
    gg.manual_seed(3)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_model_that_mixes_examples_is_told_from_one_that_does_not(axis: int) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            hidden = self.a(x)
            return self.b(hidden - hidden.mean(axis, keepdim=True))

    model, x, y = Net(), gg.randn(40, 6), gg.randint(0, 3, (40,))
    other = copy.deepcopy(model)
    seen = trained(model, lambda step: F.cross_entropy(model(x), y), steps=6)
    assert ("examples mixed" in titles(seen)) == (axis == 0)
    optimizer = gg.optim.Adam(other.parameters(), lr=1e-2)
    for _ in range(6):
        optimizer.zero_grad()
        F.cross_entropy(other(x), y).backward()
        optimizer.step()
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    assert all(np.array_equal(one.detach().numpy(), two.detach().numpy()) for one, two in pairs)


@pytest.mark.parametrize("faulty", [True, False])
def test_inputs_that_each_epoch_divides_again_are_told(faulty: bool) -> None:
    model, x, y = nn.Linear(6, 3), gg.randn(40, 6) * 100, gg.randint(0, 3, (40,))

    def loss_of(step: int) -> Any:
        nonlocal x
        if faulty and step % 5 == 0:
            x = x / 10
        return F.cross_entropy(model(x / 100), y)

    assert ("inputs change from epoch to epoch" in titles(trained(model, loss_of))) == faulty


@pytest.mark.parametrize("faulty", [True, False])
def test_a_column_that_is_the_target_is_told(faulty: bool) -> None:
    x = gg.randn(300, 5)
    y = x[:, 1:2] * x[:, 2:3]
    table = gg.cat([x, y if faulty else 2 * y], 1)
    model = nn.Linear(6, 1)
    seen = trained(model, lambda step: F.mse_loss(model(table[step % 2 :: 2]), y[step % 2 :: 2]))
    assert ("target among the inputs" in titles(seen)) == faulty


@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_cosines_without_a_temperature_are_told(temperature: float) -> None:
    tower = nn.Linear(8, 6)

    def loss_of(step: int) -> Any:
        x = gg.randn(24, 8)
        one, two = (F.normalize(tower(x + 0.1 * gg.randn(24, 8)), dim=1) for _ in range(2))
        return F.cross_entropy(one @ two.T / temperature, gg.arange(24))

    seen = trained(tower, loss_of, steps=60)
    assert ("outputs bounded before cross entropy" in titles(seen)) == (temperature == 1.0)


@pytest.mark.parametrize("length", [1, 5])
def test_sequences_of_one_step_are_told(length: int) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.out = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 1)

        def forward(self, x: Any) -> Any:
            return self.out(self.rnn(x)[0][:, -1])

    model, x, y = Net(), gg.randn(30, length, 4), gg.randn(30, 1)
    seen = trained(model, lambda step: F.mse_loss(model(x), y), steps=8)
    assert ("sequence of one step" in titles(seen)) == (length == 1)


@pytest.mark.parametrize("factor", [1.0, 1 / 50])
def test_a_mean_divided_by_the_batch_is_told(factor: float) -> None:
    model, x, y = nn.Linear(6, 4), gg.randn(50, 6), gg.randint(0, 4, (50,))
    seen = trained(model, lambda step: factor * F.cross_entropy(model(x), y), steps=8)
    assert ("averaged twice" in titles(seen)) == (factor < 1)


@pytest.mark.parametrize("strength", [1.0, 1e-4])
def test_a_penalty_that_outweighs_the_error_is_told(strength: float) -> None:
    model, x = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)), gg.randn(60, 6)
    y = x[:, :1] * x[:, 1:2]

    def loss_of(step: int) -> Any:
        penalty = sum(one.abs().sum() for one in model.parameters())
        return F.mse_loss(model(x), y) + strength * penalty

    assert ("weights shrink to nothing" in titles(trained(model, loss_of, steps=120))) == (strength == 1.0)


def test_a_loss_of_0_is_told_with_the_op_that_cuts_it_off() -> None:
    model, x = nn.Linear(6, 1), gg.randn(40, 6)
    seen = trained(model, lambda step: F.relu(model(x).abs() - 100).mean(), steps=8)
    assert titles(seen)[0] == "loss is 0"
    assert "relu" in seen.findings[0].what
    assert all(one.because for one in seen.findings[1:] if one.severity != "info")


def test_a_copy_of_a_watched_model_is_not_watched() -> None:
    model, x, y = nn.Linear(6, 3), gg.randn(40, 6), gg.randint(0, 3, (40,))
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer, report=False, preset="full") as seen:
        for _ in range(4):
            other = copy.deepcopy(model)
            other(x)
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert seen.run.calls.sequence == "FBS" * 4
