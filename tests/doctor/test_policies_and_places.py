"""Rules about log-probabilities and their weights, places in a batch, and the inputs of validations."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.doctor import source_lines, watch
from glassgrad.nn import functional as F


@pytest.fixture(autouse=True)
def _seeded() -> None:
    gg.manual_seed(5)


def titles(model: Any, loss_of: Any, steps: int = 8, after: Any = None) -> list[str]:
    """Return what is found in a training; `after` runs after each step."""
    optimizer = gg.optim.Adam(model.parameters(), lr=1e-2)
    with watch(model, optimizer, report=False, preset="full") as seen:
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
            if after is not None:
                after()
    return [one.rule for one in seen.findings]


class Agent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = nn.Linear(4, 3), nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        return F.log_softmax(self.actor(x), 1), self.critic(x).squeeze(1)


@pytest.mark.parametrize("fault", ["", "all actions", "gradients"])
def test_an_advantage_belongs_to_one_action_and_has_no_gradient(fault: str) -> None:
    agent, states = Agent(), gg.randn(40, 4)

    def loss_of() -> Any:
        logarithms, value = agent(states)
        action = gg.randint(0, 3, (40, 1))
        advantage = (action[:, 0] == 1) * 2.0 - 1 - value
        known = advantage if fault == "gradients" else advantage.detach()
        one = logarithms.gather(1, action).squeeze(1) * known
        weighted = logarithms * known.unsqueeze(1) if fault == "all actions" else one
        return -weighted.mean() + advantage.pow(2).mean()

    found = titles(agent, loss_of)
    assert ("advantage of all actions" in found) == (fault == "all actions")
    assert ("advantage with gradients" in found) == (fault == "gradients")


def test_the_factor_of_a_focal_loss_is_no_advantage() -> None:
    model, x, y = nn.Linear(6, 3), gg.randn(40, 6), gg.randint(0, 3, (40, 1))

    def loss_of() -> Any:
        logarithm = F.log_softmax(model(x), 1).gather(1, y).squeeze(1)
        return -((1 - logarithm.exp()) * logarithm).mean()

    assert "advantage with gradients" not in titles(model, loss_of)


class Placed(nn.Module):
    """Adds positions to sequences, along the axis of the batch or of the sequence."""

    def __init__(self, axis: int, noise: bool = False) -> None:
        super().__init__()
        self.lift, self.out = nn.Linear(3, 8), nn.Linear(8, 2)
        self.table, self.axis, self.noise = gg.randn(64, 8), axis, noise

    def forward(self, x: Any) -> Any:
        hidden = self.lift(x)
        hidden = hidden + self.table[: x.shape[self.axis]].unsqueeze(1 - self.axis)
        return self.out(hidden.mean(1)) + (0.1 * gg.randn(len(x), 2) if self.noise else 0.0)


@pytest.mark.parametrize(("axis", "noise"), [(0, False), (1, False), (1, True)])
def test_positions_along_the_batch_are_told_and_noise_is_not(axis: int, noise: bool) -> None:
    model, x, y = Placed(axis, noise), gg.randn(24, 7, 3), gg.randint(0, 2, (24,))
    assert ("examples mixed" in titles(model, lambda: F.cross_entropy(model(x), y))) == (axis == 0)


@pytest.mark.parametrize("faulty", [True, False])
def test_rows_of_all_places_in_the_order_of_time_are_told(faulty: bool) -> None:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.rnn, self.out = nn.Embedding(9, 8), nn.GRU(8, 8), nn.Linear(8, 4)

        def forward(self, ids: Any) -> Any:
            hidden, _ = self.rnn(self.embed(ids).transpose(0, 1))
            return self.out((hidden if faulty else hidden.transpose(0, 1)).reshape(-1, 8))

    model, ids = Tagger(), gg.randint(0, 9, (20, 6))
    found = titles(model, lambda: F.cross_entropy(model(ids), (ids % 4).reshape(-1)))
    assert ("examples mixed" in found) == faulty


@pytest.mark.parametrize("faulty", [True, False])
def test_outputs_time_by_time_as_for_ctc_are_compared_along_their_second_axis(faulty: bool) -> None:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.out = nn.Conv1d(2, 8, 3, stride=2), nn.Linear(8, 4)
            self.rnn = nn.GRU(8, 8, batch_first=faulty)

        def forward(self, x: Any) -> Any:
            hidden, _ = self.rnn(self.conv(x).permute(2, 0, 1))
            return self.out(hidden)

    model, x = Reader(), gg.randn(20, 2, 13)
    y = gg.randint(0, 4, (20, 6))
    found = titles(model, lambda: F.cross_entropy(model(x).reshape(-1, 4), y.t().reshape(-1)))
    assert ("examples mixed" in found) == faulty


def test_a_state_that_goes_on_is_no_mixture() -> None:
    class Going(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out, self.held = nn.Linear(4, 2), [gg.zeros(20, 2)]

        def forward(self, x: Any) -> Any:
            self.held[0] = (0.5 * self.held[0] + self.out(x)).detach()
            return self.out(x) + self.held[0]

    model, x, y = Going(), gg.randn(20, 4), gg.randint(0, 2, (20,))
    assert "examples mixed" not in titles(model, lambda: F.cross_entropy(model(x), y))


@pytest.mark.parametrize("faulty", [True, False])
def test_validation_inputs_that_nobody_normalised_are_told(faulty: bool) -> None:
    raw = 50 + 20 * gg.randn(200, 5)
    x, y, held = (raw[:160] - 50) / 20, gg.randint(0, 2, (160,)), raw[160:]
    model = nn.Linear(5, 2)

    def validate() -> None:
        with gg.no_grad():
            model(held if faulty else (held - 50) / 20)

    found = titles(model, lambda: F.cross_entropy(model(x), y), after=validate)
    assert ("held-out inputs of another scale" in found) == faulty


@pytest.mark.parametrize("faulty", [True, False])
def test_a_copy_whose_statistics_stay_behind_is_told(faulty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)), 3 + gg.randn(60, 5)
    mean_teacher, y = copy.deepcopy(model), gg.randint(0, 2, (60,))
    monkeypatch.setitem(globals(), "mean_teacher", mean_teacher)  # the watch looks at the user's variables

    def follow() -> None:
        pairs = [*zip(mean_teacher.parameters(), model.parameters(), strict=True)]
        pairs += [] if faulty else [*zip(mean_teacher.buffers(), model.buffers(), strict=True)]
        for theirs, mine in pairs:
            np.copyto(theirs.data, mine.detach().numpy())

    found = titles(model, lambda: F.cross_entropy(model(x), y), steps=45, after=follow)
    assert ("running statistics do not arrive" in found) == faulty


@pytest.mark.parametrize("again", [1, 32])
def test_a_mean_of_errors_divided_by_the_batch_is_told(again: int) -> None:
    model, x, y = nn.Linear(6, 2), gg.randn(32, 6), gg.randn(32, 2)
    found = titles(model, lambda: (model(x) - y).pow(2).sum(1).mean() / again)
    assert ("averaged twice" in found) == (again == 32)


def test_a_loss_with_terms_or_weights_is_no_sign_of_large_outputs() -> None:
    model, x, y = nn.Linear(6, 4), gg.randn(64, 6), gg.randint(0, 4, (64,))
    assert "first loss far off" not in titles(model, lambda: 3 * F.cross_entropy(model(x), y))
    big = nn.Sequential(nn.Linear(6, 4))
    big[0].weight.data *= 30
    assert "first loss far off" in titles(big, lambda: F.cross_entropy(big(x), y))


def test_a_closure_that_is_called_several_times_uses_its_gradients() -> None:
    model, x = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)), gg.linspace(-2, 2, 50).unsqueeze(1)
    optimizer = gg.optim.LBFGS(model.parameters(), lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x.sin())
        loss.backward()
        return loss

    with watch(model, optimizer, report=False, preset="full") as seen:
        for _ in range(15):
            optimizer.step(closure)
    assert "gradients never used" not in [one.rule for one in seen.findings]


@pytest.mark.parametrize("again", [True, False])
def test_targets_two_places_ahead_are_told(again: bool) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.out = nn.Embedding(30, 8), nn.Linear(8, 30)

        def forward(self, ids: Any) -> Any:
            return self.out(self.embed(ids))

    model, book = Model(), gg.randint(0, 30, (20, 12))

    def loss_of() -> Any:
        ids, labels = (book[:, :-1], book[:, 1:]) if again else (book, book)
        return F.cross_entropy(model(ids)[:, :-1].reshape(-1, 30), labels[:, 1:].reshape(-1))

    assert ("targets shifted twice" in titles(model, loss_of)) == again


@pytest.mark.parametrize("faulty", [True, False])
def test_a_column_of_losses_under_a_row_of_masks_is_told(faulty: bool) -> None:
    model, x, mask = nn.Linear(6, 3), gg.randn(24, 6), (gg.rand(24) > 0.3) * 1.0
    picked = gg.randint(0, 3, (24, 1))

    def loss_of() -> Any:
        one = -F.log_softmax(model(x), 1).gather(1, picked)
        return ((one if faulty else one.squeeze(1)) * mask).mean()

    assert ("broadcast in the loss" in titles(model, loss_of)) == faulty


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_mask_behind_the_mean_is_told(reduction: str) -> None:
    model, x, y, mask = nn.Linear(6, 3), gg.randn(24, 6), gg.randint(0, 3, (24,)), (gg.rand(24) > 0.3) * 1.0
    found = titles(model, lambda: (F.cross_entropy(model(x), y, reduction=reduction) * mask).sum() / mask.sum())
    assert ("averaged before it is weighted" in found) == (reduction == "mean")


def test_a_helper_that_sets_the_mode_is_told_with_its_call(tmp_path: Path) -> None:
    script = tmp_path / "modes.py"
    script.write_text(
        "def switch(mode, model):\n    model.train() if mode == 'train' else model.eval()\n"
        "def check(model):\n    switch('eval', model)\n"
        "switch('train', model)\n"
    )
    place = source_lines.calling_method("eval", [str(script)])
    file, _, line = place.rpartition(":")
    assert line == "2"
    assert source_lines.switching(place, "eval", [str(script)]) == f"{file}:4"
    assert source_lines.switching(f"{file}:4", "eval", [str(script)]) == ""
