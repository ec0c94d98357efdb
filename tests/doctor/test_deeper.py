"""The experiments of `glassgrad doctor --deeper` and `examine(deeper=True)`, in both libraries."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.cli import run
from glassgrad.doctor import examine
from glassgrad.doctor.deeper import choice
from glassgrad.doctor.deeper.experiments import EXPERIMENTS, Bench, Outcome, Start, groups_of
from glassgrad.doctor.deeper.taken import Given
from glassgrad.doctor.deeper.taking import DeepWatch
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.rules import EXAMINATION_RULES, RULES, RUN_RULES

NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="the same with PyTorch")
LIBRARIES = pytest.mark.parametrize("library", ["glassgrad", pytest.param("torch", marks=NEEDS_TORCH)])
SLOWLY = pytest.mark.parametrize("library", ["glassgrad", pytest.param("torch", marks=[NEEDS_TORCH, pytest.mark.slow])])


def imported(library: str) -> Any:
    return importlib.import_module(library)


def mlp(lib: Any, *more: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(6, 24), lib.nn.Tanh(), *more, lib.nn.Linear(24, 3))


def data(lib: Any, rows: int = 256) -> tuple[Any, Any]:
    lib.manual_seed(1)
    x = lib.randn(rows, 6)
    return x, (x @ lib.randn(6, 3)).argmax(1)


def watched(lib: Any, loss_of: Callable[..., Any], model: Any = None, rate: float = 0.1, steps: int = 8) -> DeepWatch:
    """Watch some steps; the loss is computed in the loop, as scripts do it."""
    x, y = data(lib)
    model = mlp(lib) if model is None else model
    optimizer = lib.optim.SGD(model.parameters(), lr=rate)
    with DeepWatch(model, optimizer, report=False) as seen:
        for step in range(steps):
            rows = lib.arange(step % 4 * 64, step % 4 * 64 + 64)
            optimizer.zero_grad()
            loss = loss_of(model, x[rows], y, rows)
            loss.backward()
            optimizer.step()
    return seen


def usual(lib: Any) -> Callable[..., Any]:
    return lambda model, x, y, rows: lib.nn.functional.cross_entropy(model(x), y[rows])


def values(model: Any) -> list[bytes]:
    return [np.asarray(one.detach().numpy()).tobytes() for one in model.state_dict().values()]


# --- batches that are computed again ---


@LIBRARIES
@pytest.mark.parametrize("form", ["usual", "by hand", "with a penalty", "with a column"])
def test_the_loss_of_a_watched_step_is_computed_again(library: str, form: str) -> None:
    lib = imported(library)
    functional = lib.nn.functional
    losses: list[float] = []

    def loss_of(model: Any, x: Any, y: Any, rows: Any) -> Any:
        output = model(x)
        if form == "usual":
            loss = functional.cross_entropy(output, y[rows])
        elif form == "by hand":
            loss = -functional.log_softmax(output, 1)[lib.arange(64), y[rows]].mean()
        elif form == "with a penalty":
            loss = functional.cross_entropy(output, y[rows]) + 0.1 * sum(p.square().sum() for p in model.parameters())
        else:
            loss = (output[:, 0] - y[rows] * 1.0).square().mean()
        losses.append(float(loss.detach()))
        return loss

    bench = watched(lib, loss_of).bench()
    assert len(bench.batches) >= 4
    with bench.begun():
        again = float(bench.batches[0].loss().detach())
        other = float(bench.batches[0].loss(np.random.default_rng(0).permutation(64)).detach())
    assert again == pytest.approx(losses[0], rel=1e-5)
    assert other != pytest.approx(again, rel=1e-3)


@SLOWLY
def test_the_experiments_restore_everything(library: str) -> None:
    lib = imported(library)
    seen = watched(lib, usual(lib), mlp(lib, lib.nn.BatchNorm1d(24), lib.nn.Dropout(0.1)))
    before, mode = values(seen.model), seen.model.training
    drawn = lib.get_rng_state()
    for experiment in EXPERIMENTS.values():
        assert isinstance(experiment(seen.bench()), Outcome)
    assert values(seen.model) == before
    assert seen.model.training == mode
    np.testing.assert_array_equal(np.asarray(lib.get_rng_state()), np.asarray(drawn))


@LIBRARIES
def test_a_model_called_twice_before_its_loss_is_left_out(library: str) -> None:
    lib = imported(library)

    def twins(model: Any, x: Any, y: Any, rows: Any) -> Any:
        return lib.nn.functional.cross_entropy(model(x) + model(x + 1), y[rows])

    bench = watched(lib, twins).bench()
    assert list(bench.batches) == []
    assert choice.run(bench, []) == ()
    assert "no step was seen that can be computed again" in "\n".join(choice.lines([], (), taken=False))


def test_a_watch_that_keeps_batches_changes_no_weight() -> None:
    ends = []
    for kind in (DeepWatch, gg.doctor.Watch):
        x, y = data(gg)
        model = mlp(gg)
        optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
        with kind(model, optimizer, report=False):
            for _ in range(6):
                optimizer.zero_grad()
                gg.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
        ends.append(values(model))
    assert ends[0] == ends[1]


# --- what each points to ---


def outcome(name: str, seen: DeepWatch) -> Outcome:
    return EXPERIMENTS[name](seen.bench())


@LIBRARIES
def test_one_batch_tells_a_model_that_can_learn_from_one_that_cannot(library: str) -> None:
    lib = imported(library)
    healthy = outcome("one batch", watched(lib, usual(lib)))
    assert not healthy.points
    assert "model, loss and gradients work" in healthy.means
    cut = watched(lib, lambda model, x, y, rows: lib.nn.functional.cross_entropy(model(x * 0), y[rows]))
    assert outcome("one batch", cut).points


@LIBRARIES
def test_labels_tell_pairs_from_labels_that_came_apart(library: str) -> None:
    lib = imported(library)
    assert not outcome("labels", watched(lib, usual(lib))).points
    mixed = watched(lib, lambda model, x, y, rows: lib.nn.functional.cross_entropy(model(x), (y[rows] + rows * 7) % 3))
    found = outcome("labels", mixed)
    assert found.points
    assert "tell nothing about the labels" in found.means


@LIBRARIES
@pytest.mark.parametrize(
    ("rate", "says"), [(0.1, "is not the cause"), (60.0, "too high"), (1e-5, "too low")], ids=["fit", "high", "low"]
)
def test_the_rate_is_halved_and_doubled(library: str, rate: float, says: str) -> None:
    found = outcome("rate", watched(imported(library), usual(imported(library)), rate=rate, steps=4))
    assert says in found.means, found
    assert found.points == (rate != 0.1)


@LIBRARIES
def test_modes_tell_running_statistics_that_never_arrive(library: str) -> None:
    lib = imported(library)
    fine = watched(lib, usual(lib), mlp(lib, lib.nn.BatchNorm1d(24, momentum=0.9)), steps=60)
    assert not outcome("modes", fine).points
    stale = lib.nn.Sequential(lib.nn.BatchNorm1d(6, momentum=0.0), lib.nn.Linear(6, 3))
    far = watched(lib, lambda model, x, y, rows: lib.nn.functional.cross_entropy(model(x * 50 + 90), y[rows]), stale)
    assert outcome("modes", far).points


# --- which experiments, and the report ---


def told(*rows: tuple[str, str]) -> list[Finding]:
    return [Finding(rule, "warning", "", "", because=because) for rule, because in rows]


def test_the_table_names_findings_and_experiments_that_there_are() -> None:
    titles = {one.name for one in (*RULES, *RUN_RULES, *EXAMINATION_RULES)} | {"overfitting"}
    assert set(choice.SYMPTOMS) <= titles
    assert {name for pair in choice.SYMPTOMS.values() for name in pair} | set(choice.NO_FINDING) == set(EXPERIMENTS)
    assert all(len(set(pair)) == 2 for pair in choice.SYMPTOMS.values())


def test_a_symptom_with_a_cause_needs_no_experiment() -> None:
    alone = told(("loss does not fall", ""))
    explained = told(("softmax twice", ""), ("loss does not fall", "softmax twice"))
    assert choice.experiments_for(alone) == ("one batch", "rate")
    assert choice.experiments_for(explained) == ()
    assert choice.experiments_for([]) == choice.NO_FINDING
    assert list(choice.lines(explained, None)) == []
    first, second = choice.lines(alone, None)
    assert (
        first == "unexplained  nothing here explains 'loss does not fall'; two experiments tell most: one batch, rate"
    )
    assert "--deeper" in second
    assert list(choice.lines(explained, ())) == ["experiments  none: every symptom has a cause"]


def test_an_experiment_that_fails_says_so() -> None:
    class Broken:
        def rows(self) -> int:
            return 4

        def loss(self, order: Any = None) -> Any:
            raise ValueError("no more data")

    model = mlp(gg)
    bench = Bench(model, [Broken(), Broken()], None, [], Start(model))
    found = choice.run(bench, told(("loss does not fall", "")))
    assert [one.name for one in found] == ["one batch", "rate"]
    assert "could not be computed again (ValueError: no more data)" in found[0].seen
    assert found[1].seen == "the optimizer is not known"


def test_the_options_of_groups_are_kept_for_the_experiment_with_the_rate() -> None:
    model = mlp(gg)
    groups = [{"params": model[0].parameters(), "lr": 0.5}, {"params": model[2].parameters(), "momentum": 0.9}]
    optimizer = gg.optim.SGD(groups, lr=0.1)
    x, y = data(gg)
    batch = Given(model, gg.doctor.checkup.Batch(model, (x, y)), gg.nn.functional.cross_entropy)
    bench = Bench(model, batch.parts(2), optimizer, groups_of(optimizer), Start(model))
    assert [one["lr"] for one in bench.groups] == [0.5, 0.1]
    assert EXPERIMENTS["rate"](bench).values[1] > 0


@SLOWLY
def test_examine_makes_the_experiments(library: str) -> None:
    lib = imported(library)
    x, y = data(lib)
    model = mlp(lib)
    found = examine(model, (x, y), lib.nn.functional.cross_entropy, deeper=True, report=False)
    assert found.outcomes is not None
    assert [one.name for one in found.outcomes] == list(choice.NO_FINDING)
    assert not any(one.points for one in found.outcomes)
    assert "experiments  2" in str(found)
    assert examine(model, (x, y), lib.nn.functional.cross_entropy, report=False).outcomes is None


SCRIPT = """
import {library} as lib
from {library}.nn import functional as F

lib.manual_seed(0)
x = lib.randn(512, 6)
y = (x @ lib.randn(6, 3)).argmax(1)
model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.Tanh(), lib.nn.Linear(16, 3))
optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
for step in range(24):
    rows = lib.arange(step % 8 * 64, step % 8 * 64 + 64)
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad(){zero}
    loss.backward()
    optimizer.step()
"""


@SLOWLY
def test_the_command_makes_them_for_a_script(library: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.format(library=library, zero=""), encoding="utf-8")
    assert run(["doctor", str(path), "--deeper", "--seconds", "0"]) == 0
    out = capsys.readouterr().out
    assert "findings     none: nothing here looks wrong   (24 steps watched" in out
    assert "experiments  2\n  one batch: in 150 steps of Adam on one batch alone the loss goes from" in out
    assert "the inputs tell something about the labels" in " ".join(out.split())
    assert run(["doctor", str(path), "--seconds", "0"]) == 0
    assert "experiments" not in capsys.readouterr().out


def test_a_recorded_run_has_no_model_for_experiments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", str(tmp_path), "--deeper"]) == 2
    assert "--deeper makes experiments with the model of a script" in capsys.readouterr().err
