"""Sound trainings that have something in common with a fault are silent, and the fault itself is not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.distributions import Categorical
from glassgrad.doctor import watch
from glassgrad.doctor.facts import Finding
from glassgrad.nn import functional as F


@pytest.fixture(autouse=True)
def _seeded() -> None:
    gg.manual_seed(3)


def found(
    model: Any, loss_of: Callable[[], Any], after: Callable[[], None] = lambda: None, steps: int = 12
) -> list[Finding]:
    """Return the findings of a training that are no hints; `after` runs after each step."""
    parts = [one for one in model.parameters() if one.requires_grad]
    optimizer = gg.optim.Adam(parts, lr=1e-2)
    with watch(model, optimizer, report=False, preset="full") as seen:
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
            after()
    return [one for one in seen.findings if one.severity != "info"]


def rules(findings: list[Finding]) -> set[str]:
    return {one.rule for one in findings}


# --- averages of a model ---


class Pair(nn.Module):
    """A model and a frozen copy of it, which may follow."""

    def __init__(self) -> None:
        super().__init__()
        self.fast = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
        self.slow = copy.deepcopy(self.fast).requires_grad_(False)

    def forward(self, x: Any) -> Any:
        with gg.no_grad():
            self.slow(x)
        return self.fast(x)

    def follow(self) -> None:
        with gg.no_grad():
            for slow, fast in zip(self.slow.parameters(), self.fast.parameters(), strict=True):
                slow.mul_(0.9).add_(fast, alpha=0.1)


@pytest.mark.parametrize(("follows", "told"), [(True, False), (False, True)])
def test_a_copy_that_follows_is_no_frozen_backbone(follows: bool, told: bool) -> None:
    pair, x, y = Pair(), gg.randn(24, 4) + 3, gg.randint(0, 2, (24,))
    after = pair.follow if follows else lambda: None
    seen = rules(found(pair, lambda: F.cross_entropy(pair(x), y), after=after))
    assert ("frozen layers in training mode" in seen) == told


# --- padding ---


class Columns(nn.Module):
    """Reads sequences that stand in the columns of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(9, 8, padding_idx=0), nn.Linear(8, 2)

    def forward(self, ids: Any) -> Any:
        return self.out(self.embed(ids).mean(0))


@pytest.mark.parametrize(("columns", "told"), [("padded", False), ("a token", True)])
def test_padding_at_the_ends_of_columns_is_no_token(columns: str, told: bool) -> None:
    ids = np.random.default_rng(0).integers(1, 9, (7, 20))
    ids[np.arange(7)[:, None] >= np.arange(20) % 5 + 3] = 0
    if columns == "a token":
        ids = np.random.default_rng(0).integers(0, 9, (7, 20))
    model, y = Columns(), gg.randint(0, 2, (20,))
    seen = rules(found(model, lambda: F.cross_entropy(model(gg.tensor(ids)), y)))
    assert ("padding index is a token" in seen) == told


class Decoder(nn.Module):
    """Reads sequences step by step, one token of each."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(9, 8, padding_idx=0), nn.GRUCell(8, 8), nn.Linear(8, 2)

    def forward(self, ids: Any) -> Any:
        state = gg.zeros(len(ids), 8)
        for at in range(ids.shape[1]):
            state = self.cell(self.embed(ids[:, at]), state)
        return self.out(state)


@pytest.mark.parametrize(("padded", "told"), [(True, False), (False, True)])
def test_padding_behind_the_last_step_of_some_examples_is_no_token(padded: bool, told: bool) -> None:
    ids = np.random.default_rng(0).integers(padded, 9, (20, 7))
    ids[(np.arange(7) >= np.arange(20)[:, None] % 5 + 3) & padded] = 0
    model, y = Decoder(), gg.randint(0, 2, (20,))
    seen = rules(found(model, lambda: F.cross_entropy(model(gg.tensor(ids)), y)))
    assert ("padding index is a token" in seen) == told


# --- terms of a loss ---


class Coder(nn.Module):
    """The parts of a variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.spread, self.back = nn.Linear(6, 3), nn.Linear(6, 3), nn.Linear(3, 6)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        mean, spread = self.mean(x), self.spread(x)
        return self.back(mean + gg.exp(spread) * gg.randn_like(mean)), mean, spread


@pytest.mark.parametrize(("summed", "told"), [(False, False), (True, True)])
def test_an_error_of_known_noise_weighs_much(summed: bool, told: bool) -> None:
    model, x = Coder(), gg.randn(50, 6)

    def loss() -> Any:
        again, mean, spread = model(x)
        error = ((again - x) ** 2).sum(1)
        kl = 0.5 * (mean**2 + gg.exp(2 * spread) - 1 - 2 * spread).sum(1)
        return (error.sum() if summed else (error / (2 * 0.1**2)).mean()) + kl.mean()

    assert ("loss terms of unequal size" in rules(found(model, loss))) == told


# --- a head alone ---


class Headed(nn.Module):
    """A body with an old head, and a new one."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.ReLU())
        self.old, self.new = nn.Linear(12, 30), nn.Linear(12, 3)

    def forward(self, x: Any) -> Any:
        return self.new(self.body(x))


@pytest.mark.parametrize("loads", [True, False])
def test_a_head_alone_may_be_trained_on_loaded_layers(loads: bool) -> None:
    """Features of any size are no fault of the head either."""
    body = nn.ModuleDict({"body": nn.Sequential(nn.Linear(6, 12), nn.ReLU()), "old": nn.Linear(12, 30)})
    nn.init.normal_(body["body"][0].weight, 0, 9)
    model, x, y = Headed(), gg.randn(40, 6), gg.arange(40) % 3
    optimizer = gg.optim.Adam(model.new.parameters(), lr=1e-2)
    with watch(model, optimizer, report=False, preset="full") as seen:
        if loads:
            model.load_state_dict(body.state_dict(), strict=False)
        for _ in range(12):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    told = rules([one for one in seen.findings if one.severity != "info"])
    apart = {"parameters without an optimizer", "no gradient"}
    assert (told & {*apart, "first loss far off"}) == (set() if loads else apart)


# --- signs ---


@pytest.mark.parametrize(
    ("loss_of", "told"),
    [
        (lambda log_prob, gain: (log_prob * -gain).mean(), False),
        (lambda log_prob, gain: (-gain * log_prob).mean(), False),
        (lambda log_prob, gain: (-log_prob * gain).mean(), False),
        (lambda log_prob, gain: (log_prob * gain).mean(), True),
        (lambda log_prob, gain: (-log_prob * -gain).mean(), True),
    ],
)
def test_a_minus_before_the_advantage_counts(loss_of: Callable[[Any, Any], Any], told: bool) -> None:
    model, x = nn.Linear(4, 3), gg.randn(30, 4)
    actions, gain = gg.randint(0, 3, (30,)), gg.randn(30)
    seen = rules(found(model, lambda: loss_of(Categorical(logits=model(x)).log_prob(actions), gain)))
    assert ("sign of the loss turned" in seen) == told


# --- jumps of the loss ---


@pytest.mark.parametrize("scored", [True, False])
def test_the_score_of_a_critic_may_jump(scored: bool) -> None:
    model, critic, x, step = nn.Linear(4, 3), nn.Linear(3, 1), gg.rand(64, 4), iter(range(120))

    def loss() -> Any:
        score = critic(model(x)) + (25.0 if next(step) % 25 > 20 else 1.0)
        return score.mean() if scored else score.square().mean()

    assert ("loss spikes" in rules(found(model, loss, steps=120))) != scored


@pytest.mark.parametrize(("length", "told"), [(1, False), (3, True)])
def test_a_jump_that_is_over_at_once_is_one_of_the_sample(length: int, told: bool) -> None:
    """What a step has done to the weights is felt in the next steps too."""
    model, x, y, step = nn.Linear(4, 1), gg.randn(64, 4), gg.randn(64, 1), iter(range(120))

    def loss() -> Any:
        error = F.mse_loss(model(x), y)
        return error + 20 if next(step) % 25 in range(15, 15 + length) else error + 1

    assert ("loss spikes" in rules(found(model, loss, steps=120))) == told


# --- passes without gradients ---


@pytest.mark.parametrize(("own", "told"), [(True, False), (False, True)])
def test_what_a_sampler_puts_in_again_is_no_other_data(own: bool, told: bool) -> None:
    """A model that goes on from its outputs leaves the range of its data; examples of another range are a fault."""
    model, x = nn.Linear(4, 4), gg.randn(64, 4)

    def sampled() -> None:
        with gg.no_grad():
            state = gg.randn(64, 4)
            for _ in range(12):
                out = model(state if own else 40 * gg.randn(64, 4))
                state = 1.8 * state + 0.5 * out + 0.3 * gg.randn(64, 4)

    seen = rules(found(model, lambda: F.mse_loss(model(x), x), sampled))
    assert ("held-out inputs of another scale" in seen) == told


@pytest.mark.parametrize("kind", ["all", "counted", "chosen"])
def test_the_mean_of_what_a_hinge_leaves_need_not_fall(kind: str) -> None:
    model = nn.Linear(4, 1)
    levels = gg.linspace(-0.5, 0.7, 400).reshape(400, 1)

    def loss_of() -> Any:
        terms = F.relu(levels + 0.01 * (model(gg.randn(400, 4)) - model(gg.randn(400, 4))))
        if kind == "all":
            return terms.mean()
        return terms.sum() / (terms > 0).sum() if kind == "counted" else terms[terms > 0].mean()

    assert ("loss does not fall" in rules(found(model, loss_of, steps=150))) == (kind == "all")


# --- labels of places ---


class Tagger(nn.Module):
    """Tells two kinds of places apart in each sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.layer(x).transpose(1, 2)


@pytest.mark.parametrize("numbers", [True, False])
def test_numbers_of_two_classes_at_each_place_need_not_add_up(numbers: bool) -> None:
    model, x, y = Tagger(), gg.randn(24, 6, 4), gg.randint(0, 2, (24, 6))
    flat = nn.Sequential(nn.Flatten(), nn.Linear(24, 6))
    seen = (
        found(model, lambda: F.cross_entropy(model(x), y))
        if numbers
        else found(flat, lambda: F.cross_entropy(flat(x), y.float()))
    )
    assert ("targets of cross entropy do not add up" in rules(seen)) != numbers
