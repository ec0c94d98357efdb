"""What looks like a fault of inputs, copies or schedules, and is none; and the order of a script's trainings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.doctor import watch
from glassgrad.doctor.reading.beside import joined
from glassgrad.doctor.script import run_script
from glassgrad.nn import functional as F


@pytest.fixture(autouse=True)
def _seeded() -> None:
    gg.manual_seed(4)


def titles(
    model: Any, loss_of: Callable[[], Any], steps: int = 30, after: Callable[[Any], None] | None = None
) -> set[str]:
    """Return what is found in a training; `after` gets the optimizer after each step."""
    optimizer = gg.optim.Adam(model.parameters(), lr=1e-2)
    with watch(model, optimizer, report=False, preset="full") as seen:
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
            if after is not None:
                after(optimizer)
    return {one.rule for one in seen.findings}


class Two(nn.Module):
    """Takes two arguments, of which the second has an effect in training only, always, or never."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self.one, self.other, self.when = nn.Linear(4, 3), nn.Linear(4, 3), when

    def forward(self, x: Any, hint: Any) -> Any:
        used = self.when == "always" or (self.when == "training" and self.training)
        return self.one(x) + (self.other(hint) if used else 0.0)


@pytest.mark.parametrize(("when", "told"), [("never", True), ("training", False), ("always", False)])
def test_an_argument_may_have_an_effect_in_training_only(when: str, told: bool) -> None:
    model, x, hint, y = Two(when), gg.randn(20, 4), gg.randn(20, 4), gg.randint(0, 3, (20,))
    before = model.one.weight.detach().numpy().copy()
    assert ("input without effect" in titles(model, lambda: F.cross_entropy(model(x, hint), y))) == told
    assert model.training
    assert not np.array_equal(before, model.one.weight.detach().numpy())


def test_a_mask_that_keeps_everything_tells_nothing() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(4, 3)

        def forward(self, x: Any, mask: Any) -> Any:
            return self.out(x * mask)

    model, x, mask, y = Masked(), gg.randn(20, 4), gg.ones(20, 4), gg.randint(0, 3, (20,))
    assert "input without effect" not in titles(model, lambda: F.cross_entropy(model(x, mask), y))


@pytest.mark.parametrize(("stride", "told"), [(1, False), (2, False)])
def test_the_last_place_may_lie_behind_the_last_window(stride: int, told: bool) -> None:
    model = nn.Sequential(nn.Conv1d(3, 4, 3, stride=stride), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
    x, y = gg.randn(20, 3, 12), gg.randint(0, 3, (20,))
    model(x)
    assert ("input without effect" in titles(model, lambda: F.cross_entropy(model(x), y))) == told


def test_copies_with_one_target_are_no_copies_by_mistake() -> None:
    model, row = nn.Linear(4, 3), gg.randn(1, 4)
    same = gg.cat([row] * 20)
    various, alike = gg.tensor(np.arange(20) % 3), gg.tensor(np.zeros(20, np.int64))
    assert "copies in a batch" in titles(model, lambda: F.cross_entropy(model(same), various), 8)
    assert "copies in a batch" not in titles(model, lambda: F.cross_entropy(model(same), alike), 8)


def test_a_new_head_on_loaded_weights_is_no_loss() -> None:
    def made() -> Any:
        return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))

    saved, x, y = made().state_dict(), gg.randn(20, 6), gg.randint(0, 3, (20,))
    found = {}
    for drawn in (1, 3):
        model = made()
        optimizer = gg.optim.Adam(model.parameters(), lr=1e-2)
        with watch(model, optimizer, report=False, preset="full") as seen:
            model.load_state_dict(saved)
            for layer in [model[4], model[2], model[0]][:drawn]:
                nn.init.xavier_uniform_(layer.weight)
            for _ in range(6):
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
        found[drawn] = "loaded weights drawn anew" in {one.rule for one in seen.findings}
    assert found == {1: False, 3: True}


@pytest.mark.parametrize("stepped", [False, True])
def test_a_schedule_is_told_if_none_of_an_optimizer_is_stepped(stepped: bool) -> None:
    model, x, y = nn.Linear(4, 3), gg.randn(20, 4), gg.randint(0, 3, (20,))
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer, report=False, preset="full") as seen:
        schedules = [gg.optim.lr_scheduler.StepLR(optimizer, 40) for _ in range(2)]
        for _ in range(70):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            if stepped:
                schedules[1].step()
    assert ("schedule never stepped" in {one.rule for one in seen.findings}) == (not stepped)


def test_picked_log_probabilities_are_no_classes() -> None:
    model, x, y = nn.Linear(4, 3), gg.randn(20, 4), gg.tensor(np.arange(20) % 3)
    optimizer = gg.optim.Adam(model.parameters(), lr=1e-2)
    weight = gg.tensor(np.array([1.0, 2.0, 3.0], np.float32))
    counts = []
    for weighted in (False, True):
        with watch(model, optimizer, report=False, preset="full") as seen:
            optimizer.zero_grad()
            if weighted:
                loss = F.cross_entropy(model(x), y, weight=weight)
            else:
                scores = F.log_softmax(model(x), 1)
                loss = -scores.gather(1, y.unsqueeze(1)).mean()
            loss.backward()
            optimizer.step()
        counts.append([labels.count for _, labels in seen.run.labels])
    assert counts == [[], [20]]


SCRIPT = """
import glassgrad as gg
from glassgrad import nn
from glassgrad.nn import functional as F
gg.manual_seed(0)
x, y = gg.randn(80, 4), gg.randint(0, 2, (80,))
def train(model, clear):
    opt = gg.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(40):
        if clear:
            opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
class Other(nn.Linear):
    pass
train(nn.Linear(4, 2), True)
train(Other(4, 2), False)
"""


@pytest.mark.filterwarnings("ignore")
def test_the_worst_training_of_a_script_stands_first(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    watched, ended = run_script(path)
    assert ended
    assert [one.model for one in watched] == ["Linear", "Other"]
    ordered, rest = joined(str(path), watched)
    assert [one.model for one in ordered] == ["Other", "Linear"]
    assert rest == []
    assert ordered[0].findings[0].rule == "zero_grad is missing"


@pytest.mark.filterwarnings("ignore")
def test_a_loop_that_accumulates_by_hand_takes_a_step_for_each_change(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        "import glassgrad as gg\ngg.manual_seed(0)\nx = gg.randn(40, 4)\nW = gg.randn(4, 8, requires_grad=True)\n"
        "V = gg.randn(8, 1, requires_grad=True)\nfor step in range(30):\n    for part in (x[:20], x[20:]):\n"
        "        (((part @ W).tanh() @ V - part[:, :1]).square().mean() / 2).backward()\n    with gg.no_grad():\n"
        "        for p in (W, V):\n            p -= 0.1 * p.grad\n            p.grad = None\n",
        encoding="utf-8",
    )
    (watched,), ended = run_script(path)
    assert ended
    assert 25 <= watched.steps <= 30
    assert [one.rule for one in watched.findings if one.severity == "error"] == []


# --- the watch calls the model again ---


class Decoder(nn.Module):
    """Tells the next token; computes its own loss, and can do nothing without the targets."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.head, self.calls = nn.Embedding(12, 16), nn.Linear(16, 12), 0

    def forward(self, ids: Any, labels: Any = None) -> Any:
        self.calls += 1
        logits = self.head(self.token(ids).cumsum(1))
        return F.cross_entropy(logits.reshape(-1, 12), labels.reshape(-1)), logits


@pytest.mark.parametrize("by_name", [True, False])
def test_a_call_that_the_watch_cannot_make_is_no_error_of_the_user(by_name: bool) -> None:
    """Nothing is asked without arguments that came by name, and what fails in a question is not raised."""
    model, rng = Decoder(), np.random.default_rng(0)

    def loss() -> Any:
        text = np.cumsum(rng.integers(1, 4, (32, 10)), axis=1) % 12
        ids, labels = gg.tensor(text[:, :-1]), gg.tensor(text[:, 1:])
        return (model(ids, labels=labels) if by_name else model(ids, labels))[0]

    assert "targets seen by the model" not in titles(model, loss)
    assert model.calls >= 30
    assert not by_name or model.calls == 30
