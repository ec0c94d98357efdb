"""Rules about what the parts of a model are set to: frozen layers, zeros in a row, inverted masks, class weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.doctor import watch
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.rules import ranked
from glassgrad.nn import functional as F


@pytest.fixture(autouse=True)
def _seeded() -> None:
    gg.manual_seed(3)


def found(rule: str, model: Any, loss_of: Callable[[], Any], steps: int = 12) -> list[Finding]:
    """Return the findings of one rule in a training of all parameters that want gradients."""
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = gg.optim.Adam(trained, lr=1e-2)
    with watch(model, optimizer, report=False, preset="full") as seen:
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
    return [one for one in seen.findings if one.rule == rule]


# --- outputs with bounds ---


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("size", [3.0, 0.9])
def test_a_recurrent_layer_at_the_end_has_bounds(kind: Any, size: float) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = kind(2, 1, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.head(x)[0]

    model, x = Model(), gg.randn(20, 6, 2)
    targets = size * gg.tanh(x[..., :1])
    assert len(found("output cannot reach the targets", model, lambda: F.mse_loss(model(x), targets))) == (size > 1)


@pytest.mark.parametrize("size", [1.0, 0.5])
def test_the_first_of_many_large_targets_are_looked_at(size: float) -> None:
    model, targets = nn.Sequential(nn.Linear(1, 1), nn.Sigmoid()), gg.rand(24, 4096, 1) - 0.5 * size
    seen = found("output cannot reach the targets", model, lambda: F.mse_loss(model(targets), targets), steps=2)
    assert len(seen) == 1
    assert f"{-0.5 * size:.3g}" in seen[0].what


# --- frozen layers in training mode ---


def _backbone(*, frozen: bool, resting: bool) -> Any:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    for part in list(model)[:2] if frozen else ():
        part.requires_grad_(False)
    model.train()
    if resting:
        model[1].eval()
    return model


@pytest.mark.parametrize(("frozen", "resting", "told"), [(True, False, 1), (True, True, 0), (False, False, 0)])
def test_a_frozen_normalisation_has_to_rest(frozen: bool, resting: bool, told: int) -> None:
    model = _backbone(frozen=frozen, resting=resting)
    x, y = gg.randn(24, 4) + 3, gg.randint(0, 2, (24,))
    before = model[1].running_mean.tolist()
    seen = found("frozen layers in training mode", model, lambda: F.cross_entropy(model(x), y))
    assert len(seen) == told
    assert (model[1].running_mean.tolist() != before) == (not resting)
    assert all("1" in one.what and one.severity == "warning" for one in seen)


def test_a_normalisation_without_weights_is_not_frozen() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, affine=False), nn.ReLU(), nn.Linear(8, 2))
    x, y = gg.randn(24, 4), gg.randint(0, 2, (24,))
    assert not found("frozen layers in training mode", model, lambda: F.cross_entropy(model(x), y))


# --- zeros in a row ---


class Gated(nn.Module):
    """A branch of two layers beside a straight way."""

    def __init__(self, zeroed: tuple[int, ...]) -> None:
        super().__init__()
        self.way, self.out = nn.Linear(4, 8), nn.Linear(8, 2)
        self.branch = nn.Sequential(nn.Linear(4, 8, bias=False), nn.ReLU(), nn.Linear(8, 8, bias=False))
        for at in zeroed:
            nn.init.zeros_(self.branch[at].weight)

    def forward(self, x: Any) -> Any:
        return self.out(F.relu(self.way(x)) + self.branch(x))


@pytest.mark.parametrize(("zeroed", "told"), [((0, 2), 1), ((2,), 0), ((0,), 0), ((), 0)])
def test_two_matrices_of_zeros_in_a_row_never_move(zeroed: tuple[int, ...], told: int) -> None:
    model, x, y = Gated(zeroed), gg.randn(24, 4), gg.randint(0, 2, (24,))
    seen = found("weights all alike", model, lambda: F.cross_entropy(model(x), y))
    assert len(seen) == told
    assert all("branch.0.weight, branch.2.weight are 0" in one.what for one in seen)
    moved = bool(model.branch[2].weight.detach().numpy().any())
    assert moved == (not told)


# --- mask inverted ---


class Pooled(nn.Module):
    """Averages the words that a mask keeps: all but the filler, or nothing but the filler."""

    def __init__(self, keeps: Callable[[Any], Any]) -> None:
        super().__init__()
        self.embed, self.out, self.keeps = nn.Embedding(12, 8), nn.Linear(8, 2), keeps

    def forward(self, ids: Any) -> Any:
        mask = (self.keeps(ids) * 1.0).unsqueeze(2)
        return self.out((self.embed(ids) * mask).sum(1) / mask.sum(1).clamp(min=1))


@pytest.mark.parametrize(
    ("keeps", "told"), [(lambda ids: ids == 0, 1), (lambda ids: ids != 0, 0), (lambda ids: ids >= 0, 0)]
)
def test_a_mask_that_keeps_the_filler_is_inverted(keeps: Callable[[Any], Any], told: int) -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(1, 12, (32, 9))
    for row, length in zip(ids, rng.integers(3, 10, 32), strict=True):
        row[length:] = 0
    given, y = gg.tensor(ids), gg.randint(0, 2, (32,))
    model = Pooled(keeps)
    assert len(found("mask inverted", model, lambda: F.cross_entropy(model(given), y))) == told


# --- states behind the padding ---


class Reader(nn.Module):
    """Reads a sequence of tokens and answers by its last state, or by that at the end of its words."""

    def __init__(self, at_end: bool) -> None:
        super().__init__()
        self.embed, self.rnn, self.out = nn.Embedding(12, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 2)
        self.at_end = at_end

    def forward(self, ids: gg.Tensor, lengths: gg.Tensor) -> gg.Tensor:
        states, _ = self.rnn(self.embed(ids))
        return self.out(states[gg.arange(len(ids)), lengths - 1] if self.at_end else states[:, -1])


@pytest.mark.parametrize("at_end", [False, True])
def test_a_state_behind_the_padding_is_no_inverted_mask(at_end: bool) -> None:
    rng = np.random.default_rng(0)
    ids, lengths = rng.integers(1, 12, (32, 30)), rng.integers(3, 8, 32)
    lengths[0] = 30
    for row, length in zip(ids, lengths, strict=True):
        row[length:] = 0
    given, ends, y = gg.tensor(ids), gg.tensor(lengths), gg.randint(0, 2, (32,))
    model = Reader(at_end)
    seen = found("padding contributes", model, lambda: F.cross_entropy(model(given, ends), y))
    assert [("the one behind the padding" in one.what, one.severity) for one in seen] == [(True, "error")] * (
        not at_end
    )
    assert not found("mask inverted", model, lambda: F.cross_entropy(model(given, ends), y))


# --- sequences in order, and what a decoder reads ---


@pytest.mark.parametrize("order", ["sorted", "padded"])
def test_sorted_numbers_end_in_no_padding(order: str) -> None:
    rng = np.random.default_rng(1)
    ids = rng.integers(3, 8, (32, 9))
    for row, length in zip(ids, rng.integers(3, 9, 32), strict=True):
        row[length:] = 0
    ids = np.sort(rng.integers(3, 8, (32, 9)), axis=1) if order == "sorted" else ids
    given, y = gg.tensor(ids), gg.randint(0, 2, (32,))
    model = nn.Sequential(nn.Embedding(12, 8), nn.Flatten(), nn.Linear(72, 2))
    assert bool(found("padding contributes", model, lambda: F.cross_entropy(model(given), y))) == (order == "padded")


class Decoder(nn.Module):
    """Reads a source, and a text that each place sees up to itself, or all of it."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.table, self.out, self.causal = nn.Embedding(20, 8), nn.Linear(8, 20), causal

    def forward(self, source: gg.Tensor, text: gg.Tensor) -> gg.Tensor:
        x = self.table(text)
        mixed = F.scaled_dot_product_attention(x, x, x, is_causal=self.causal)
        return self.out(mixed + self.table(source).mean(1, keepdim=True))


@pytest.mark.parametrize("causal", [False, True])
def test_a_decoder_may_see_its_targets_in_its_second_argument(causal: bool) -> None:
    rng = np.random.default_rng(2)
    source, text = gg.tensor(rng.integers(0, 20, (16, 6))), gg.tensor(rng.integers(0, 20, (16, 10)))
    model = Decoder(causal)
    seen = found(
        "targets seen by the model",
        model,
        lambda: F.cross_entropy(model(source, text[:, :-1]).reshape(-1, 20), text[:, 1:].reshape(-1)),
    )
    assert bool(seen) == (not causal)


class Convolved(nn.Module):
    """Brings the channels of a series before its times: by an exchange of axes, or by a cut."""

    def __init__(self, cuts: bool) -> None:
        super().__init__()
        self.layer, self.out, self.cuts = nn.Conv1d(3, 6, 3), nn.Linear(6, 2), cuts

    def forward(self, x: gg.Tensor) -> gg.Tensor:
        x = x.reshape(len(x), 3, -1) if self.cuts else x.permute(0, 2, 1)
        return self.out(self.layer(x).mean(2))


@pytest.mark.parametrize("cuts", [False, True])
def test_inputs_cut_anew_before_the_first_layer(cuts: bool) -> None:
    model, x, y = Convolved(cuts), gg.randn(16, 10, 3), gg.randint(0, 2, (16,))
    assert bool(found("axes mixed by a reshape", model, lambda: F.cross_entropy(model(x), y))) == cuts


class ActorCritic(nn.Module):
    """Two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, x: gg.Tensor) -> tuple[gg.Tensor, gg.Tensor]:
        return self.actor(x).squeeze(1), self.critic(x)


@pytest.mark.parametrize("column", [False, True])
def test_advantages_that_cross_a_ratio_before_the_last_layer(column: bool) -> None:
    model, x, gains = ActorCritic(), gg.randn(16, 4), gg.randn(16, 1)

    def loss() -> gg.Tensor:
        ratio = model.actor(x).squeeze(1).exp()
        gain = -(ratio * (gains if column else gains.squeeze(1))).mean()
        return gain + (model.critic(x) - gains).square().mean()

    assert bool(found("broadcast in the loss", model, loss)) == column


def test_a_head_that_another_optimizer_trains_has_gradients_there() -> None:
    body, heads = nn.Linear(4, 6), nn.ModuleList([nn.Linear(6, 2), nn.Linear(6, 2)])
    model, x, y = nn.ModuleList([body, heads]), gg.randn(20, 4), gg.randint(0, 2, (20,))
    first = gg.optim.Adam(model.parameters(), lr=1e-2)
    told = []
    with watch(model, first, report=False, preset="full") as seen:
        for head, optimizer in ((0, first), (1, gg.optim.Adam(heads[1].parameters(), lr=1e-2))):
            told.append([one.rule for one in seen.findings])
            for _ in range(8):
                model.zero_grad()
                F.cross_entropy(heads[head](body(x).tanh()), y).backward()
                optimizer.step()
    assert "no gradient" not in {one.rule for one in seen.findings}


# --- layers replaced in the middle ---


@pytest.mark.parametrize("anew", [False, True])
def test_layers_that_come_in_the_middle_need_an_optimizer(anew: bool) -> None:
    model, x, y = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 2)), gg.randn(24, 4), gg.randint(0, 2, (24,))
    optimizer = gg.optim.Adam(model.parameters(), lr=1e-2)
    with watch(model, optimizer, report=False, preset="full") as seen:
        for step in range(24):
            if step == 12:
                model[2] = nn.Linear(9, 2)
                optimizer = gg.optim.Adam(model.parameters(), lr=1e-2) if anew else optimizer
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    told = [one for one in seen.findings if one.rule == "parameters without an optimizer"]
    assert [one.severity for one in told] == ["error"] * (not anew)


def test_frozen_layers_explain_a_model_that_does_not_learn() -> None:
    symptom, frozen = Finding("learns less than a probe", "warning", "", ""), Finding("frozen layers", "info", "", "")
    assert [(one.rule, one.because) for one in ranked([symptom, frozen])] == [
        ("frozen layers", ""),
        ("learns less than a probe", "frozen layers"),
    ]
    alone = ranked([Finding("overfitting", "warning", "", ""), frozen])
    assert [one.rule for one in alone] == ["overfitting", "frozen layers"]


# --- class weights ---


@pytest.mark.parametrize(
    ("weight", "told"),
    [((0.9, 0.1), 1), ((0.1, 0.9), 0), ((1.0, 1.0), 0), (None, 0)],
    ids=["turned", "", "equal", "none"],
)
def test_class_weights_are_compared_with_the_classes_that_come(weight: tuple[float, float] | None, told: int) -> None:
    y = gg.tensor((np.arange(200) % 10 == 0).astype(np.int64))
    model, x = nn.Linear(4, 2), gg.randn(200, 4)
    given = None if weight is None else gg.tensor(np.array(weight, np.float32))
    seen = found("class weights favour the frequent", model, lambda: F.cross_entropy(model(x), y, weight=given))
    assert len(seen) == told
    assert all("class 0, the commonest" in one.what and one.value > one.threshold for one in seen)


def test_equal_classes_may_have_any_weights() -> None:
    y = gg.tensor((np.arange(200) % 2).astype(np.int64))
    model, x, weight = nn.Linear(4, 2), gg.randn(200, 4), gg.tensor(np.array([0.9, 0.1], np.float32))
    assert not found("class weights favour the frequent", model, lambda: F.cross_entropy(model(x), y, weight=weight))


# --- passes that no backward pass uses ---


@pytest.mark.parametrize("resting", [False, True])
def test_validations_in_training_mode_are_told_with_gradients_too(resting: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = gg.optim.Adam(model.parameters(), lr=1e-2)
    x, y = gg.randn(24, 4), gg.randint(0, 2, (24,))
    with watch(model, optimizer, report=False, preset="full") as seen:
        for step in range(16):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            if step % 4 == 3:
                model.train(not resting)
                for begin in range(0, 24, 8):
                    model(x[begin : begin + 8])
                model.train()
    told = [one for one in seen.findings if one.rule == "training mode in evaluation"]
    assert len(told) == (not resting)
    assert all("test_of_models.py" in one.where and one.value == 12 for one in told)
