"""The engines of `glassgrad train`: each gives the same losses and checkpoints, and `manual` loads no autograd."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad.data import WordList
from glassgrad.tasks import learners
from glassgrad.tasks.images import DIGITS
from glassgrad.tasks.names import NAMES, NamesTask
from glassgrad.train.config import command_line
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.learners.learner import ENGINES
from glassgrad.train.loop import Loop
from tests.tasks.stopping import check_stopping

NAMES_TEXT = "anna bert carla dora emil fritz gerd hanna ida jonas karl lena mona nora otto paula quirin rosa"
WORDS = WordList(tuple(NAMES_TEXT.split()), "test")
OTHERS = tuple(engine for engine in ENGINES if engine != "eager")


def names(engine: str, **options: Any) -> NamesTask:
    return NamesTask(NAMES.configure([command_line({"engine": engine, "hidden": 32, **options})]), WORDS)


def digits(engine: str, **options: Any) -> Any:
    return DIGITS.build(DIGITS.configure([command_line({"engine": engine, "hidden": 32, **options})]))


def losses(task: Any, steps: int) -> list[float]:
    found = []
    for step in range(steps):
        task.learner.set_rate(task.rate_at(step))
        found.append(float(task.learner.step(*task.batch_at(step))))
    return found


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize(
    "options",
    [{"model": "mlp", "steps": 60}, {"model": "mlp", "steps": 60, "momentum": 0.5, "weight_decay": 0.01}],
    ids=["plain", "momentum-and-decay"],
)
def test_fifty_steps_on_names_agree(engine: str, options: dict[str, Any]) -> None:
    first, other = names("eager", **options), names(engine, **options)
    for name, array in first.learner.weights().items():
        np.testing.assert_array_equal(other.learner.weights()[name], array, err_msg=name)
    expected = losses(first, 50)
    assert expected[-1] < expected[0] - 0.5
    np.testing.assert_allclose(losses(other, 50), expected, atol=1e-4)
    assert other.settle() == pytest.approx(first.settle(), abs=1e-4)
    for name, array in first.learner.weights().items():
        np.testing.assert_allclose(other.learner.weights()[name], array, atol=1e-4, err_msg=name)


def test_the_bigram_by_hand_agrees() -> None:
    options = {"model": "bigram", "steps": 60}
    tasks = [NamesTask(NAMES.configure([command_line({"engine": e, **options})]), WORDS) for e in ("eager", "manual")]
    np.testing.assert_allclose(losses(tasks[1], 50), losses(tasks[0], 50), atol=1e-4)
    assert tasks[0].learner.parameters == tasks[1].learner.parameters


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize(
    "options", [{"model": "mlp"}, {"model": "cnn", "channels": 4, "batch": 32}], ids=["mlp", "cnn"]
)
def test_fifty_steps_on_digits_agree(engine: str, options: dict[str, Any]) -> None:
    first, other = digits("eager", **options), digits(engine, **options)
    expected = losses(first, 50)
    assert expected[-1] < 0.8 * expected[0]
    np.testing.assert_allclose(losses(other, 50), expected, atol=1e-4)
    found, wanted = other.settle(), first.settle()
    assert found["test_loss"] == pytest.approx(wanted["test_loss"], abs=1e-3)
    assert found["test_accuracy"] == pytest.approx(wanted["test_accuracy"], abs=0.01)


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("kind", ["names", "digits"])
def test_a_checkpoint_of_one_engine_is_gone_on_with_by_another(engine: str, kind: str, tmp_path: Path) -> None:
    make = names if kind == "names" else digits
    options = {"momentum": 0.5} | ({"steps": 40} if kind == "names" else {"epochs": 2})
    whole = losses(make("eager", **options), 40)
    for before, after in (("eager", engine), (engine, "eager"), (engine, engine)):
        first, second = make(before, **options), make(after, **options)
        losses_before = losses(first, 20)
        run = RunDirectory(tmp_path)
        trainer = Loop(first)
        trainer.step = 20
        trainer.save(run)
        Loop(second).load(run)
        rest = []
        for step in range(20, 40):
            second.learner.set_rate(second.rate_at(step))
            rest.append(float(second.learner.step(*second.batch_at(step))))
        np.testing.assert_allclose(losses_before + rest, whole, atol=1e-4, err_msg=f"{before} then {after}")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_was_stopped_ends_bit_for_bit_like_one_that_was_not(engine: str, tmp_path: Path) -> None:
    check_stopping(lambda: names(engine, steps=300), tmp_path, (7, 151))


def test_without_a_compiler_the_compiled_engine_is_the_eager_one(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = losses(names("eager", steps=10), 5)
    monkeypatch.setattr(learners, "can_compile", lambda: False)
    task = names("compiled", steps=10)
    assert not task.learner.options.compiled
    assert losses(task, 5) == expected


WATCH = """
import json, sys
from glassgrad.cli import run
parts = ("engine", "nn", "optim", "autograd", "ops", "compile")
for arguments in json.loads(sys.argv[1]):
    code = run(arguments)
    print(json.dumps([code, [part for part in parts if "glassgrad." + part in sys.modules]]))
"""


def test_by_hand_nothing_of_the_engine_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text(NAMES_TEXT.replace(" ", "\n"))
    digits = ("digits", "--epochs", "1", "--hidden", "8")
    runs = {
        "names": ("names", "--steps", "100", "--hidden", "8", "--momentum", "0.5", "--data", "words.txt"),
        "mlp": digits,
        "cnn": (*digits, "--channels", "2", "--model", "cnn"),
    }
    calls = [("train", *options, "--engine", "manual", "--run-dir", name) for name, options in runs.items()]
    calls += [("train", options[0], "--resume", name) for name, options in runs.items()]
    command = [sys.executable, "-c", WATCH, json.dumps(calls)]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert told == [[0, []]] * len(calls)
