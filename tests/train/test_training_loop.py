"""The loop around the step, with a model in plain NumPy: nothing here needs the engine."""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from glassgrad.data import RandomBatches
from glassgrad.errors import InputError, RunError
from glassgrad.train.kept.checkpoint import load_checkpoint
from glassgrad.train.kept.metrics import read_metrics
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.loop import Loop
from glassgrad.train.show.progress import Progress
from glassgrad.train.signals import StopSignals
from glassgrad.train.task import Task


class Line:
    """Least squares by stochastic gradient descent with momentum: a model and an optimizer in one."""

    def __init__(self, rate: float = 0.05) -> None:
        self.weight, self.velocity, self.rate = np.zeros(4), np.zeros(4), rate

    def step(self, inputs: Any, targets: Any) -> float:
        error = inputs @ self.weight - targets
        self.velocity = 0.9 * self.velocity + 2 * inputs.T @ error / len(error)
        self.weight = self.weight - self.rate * self.velocity
        return float((error**2).mean())

    def set_rate(self, rate: float) -> None:
        self.rate = rate

    def state_dict(self) -> dict[str, Any]:
        return {"weight": self.weight, "velocity": self.velocity}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["weight"].shape != self.weight.shape:
            raise ValueError("weight has another shape")
        self.weight, self.velocity = state["weight"].copy(), state["velocity"].copy()


class Recorder:
    """A display that remembers."""

    def __init__(self) -> None:
        self.updates: list[Progress] = []
        self.milestones: list[Progress] = []
        self.stopped = 0

    def start(self, progress: Progress) -> None:
        self.updates.append(progress)

    def update(self, progress: Progress) -> None:
        self.updates.append(progress)

    def milestone(self, progress: Progress) -> None:
        self.milestones.append(progress)

    def stop(self) -> None:
        self.stopped += 1

    def say(self, text: str = "") -> None:
        raise AssertionError("the loop says nothing of its own")


def make(steps: int = 1_000, **changes: Any) -> tuple[Line, Loop]:
    generator = np.random.default_rng(3)
    inputs = generator.standard_normal((300, 4))
    targets = inputs @ np.array([1.0, -2.0, 3.0, 0.5]) + 0.1 * generator.standard_normal(300)
    line, task = Line(), Task()
    task.config = SimpleNamespace(log_every=changes.pop("log_every", 30), save_every=changes.pop("save_every", 1e9))
    given = {
        "step": line.step,
        "batch_at": RandomBatches(inputs, targets, batch=8, seed=5).at,
        "steps": steps,
        "rate_at": lambda step: 0.01 if step < steps // 2 else 0.001,
        "set_rate": line.set_rate,
        "evaluate": lambda: float(((inputs @ line.weight - targets) ** 2).mean()),
        "save_model": lambda run: run.model.write_bytes(line.weight.tobytes()),
        "parts": {"line": line},
        "eval_every": 250,
    }
    vars(task).update(given | changes)
    return line, Loop(task)


def stop_after(trainer: Loop, step: int, stop: StopSignals, number: int = signal.SIGINT) -> None:
    """Ask to stop while the step of this number runs."""
    own_step, count = trainer.task.step, iter(range(trainer.step + 1, 10**9))

    def counting(inputs: Any, targets: Any) -> Any:
        if next(count) == step:
            stop.request(number)
        return own_step(inputs, targets)

    trainer.task.step = counting


def by_hand(steps: int = 1_000) -> tuple[Line, list[float]]:
    """Oracle: the same training as a plain loop."""
    line, trainer = make(steps)
    losses = []
    for step in range(steps):
        line.rate = 0.01 if step < steps // 2 else 0.001
        losses.append(line.step(*trainer.task.batch_at(step)))
    return line, losses


def without_times(path: Path) -> list[dict[str, Any]]:
    records = read_metrics(path)
    return [{key: value for key, value in record.items() if not key.endswith("seconds")} for record in records]


def test_the_loop_trains_as_a_plain_loop_does(tmp_path: Path) -> None:
    line, trainer = make()
    assert trainer.run(RunDirectory(tmp_path), Recorder(), StopSignals())
    expected, losses = by_hand()
    assert (line.weight == expected.weight).all()
    records = read_metrics(tmp_path / "metrics.jsonl")
    train = [record for record in records if record["event"] == "train"]
    assert [record["step"] for record in train] == [*range(30, 1_000, 30), 1_000]
    for record in train:
        begin = (record["step"] - 1) // 30 * 30
        assert record["loss"] == pytest.approx(np.mean(losses[begin : record["step"]]), rel=1e-12)
        assert record["rate"] == (0.01 if record["step"] <= 500 else 0.001)
    assert [record["step"] for record in records if record["event"] == "validation"] == [250, 500, 750, 1_000]
    assert records[-1]["loss"] == trainer.task.evaluate()


@pytest.mark.parametrize("stops", [[1], [30], [250], [499, 500, 501], [7, 8, 300, 990], [999]], ids=str)
def test_stopped_and_resumed_is_as_never_stopped(tmp_path: Path, stops: list[int]) -> None:
    whole_line, whole = make()
    (tmp_path / "whole").mkdir()
    whole.run(RunDirectory(tmp_path / "whole"), Recorder(), StopSignals())

    run = RunDirectory(tmp_path / "parts")
    run.path.mkdir()
    for number, place in enumerate([*stops, None]):
        line, trainer = make()
        stop = StopSignals()
        if number:
            trainer.load(run)
            assert trainer.step == stops[number - 1]
        if place:
            stop_after(trainer, place, stop)
        assert trainer.run(run, Recorder(), stop) == (place is None)
    assert (line.weight == whole_line.weight).all()
    assert without_times(run.metrics) == without_times(tmp_path / "whole" / "metrics.jsonl")
    for key in ("window", "loss", "measures", "parts"):
        assert load_checkpoint(run.state)[1][key] == load_checkpoint(tmp_path / "whole" / "state.safetensors")[1][key]


def test_a_rank_asked_after_a_step_was_agreed_on_goes_on_to_the_next() -> None:
    class Ranks:
        saving = stopping = False
        gather, steps = None, 0

        def agree(self, loss: float, stop: StopSignals, saving: bool) -> float:
            self.steps += 1
            self.stopping = bool(stop.requested)
            if self.steps == 3:
                stop.request(signal.SIGINT)
            return loss

    ranks = Ranks()
    _, trainer = make(ranks=ranks)
    assert not trainer.run(None, Recorder(), StopSignals())
    assert (trainer.step, ranks.steps) == (4, 4)


def test_a_kill_loses_only_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    run = RunDirectory(tmp_path)
    _, trainer = make(save_every=1e-9)
    own_step, count = trainer.task.step, iter(range(10**9))

    def killed(inputs: Any, targets: Any) -> Any:
        time.sleep(0.0005)
        if next(count) == 640:
            raise Killed
        return own_step(inputs, targets)

    trainer.task.step = killed
    with pytest.raises(Killed):
        trainer.run(run, Recorder(), StopSignals())
    with run.metrics.open("a") as file:
        file.write('{"event": "train", "step": 690, "lo')  # what a kill leaves
    line, trainer = make()
    trainer.load(run)
    assert 0 < trainer.step <= 640
    assert trainer.run(run, Recorder(), StopSignals())
    assert (line.weight == by_hand()[0].weight).all()
    steps = [record["step"] for record in read_metrics(run.metrics) if record["event"] == "train"]
    assert steps == [*range(30, 1_000, 30), 1_000]
    assert all(json.loads(text) for text in run.metrics.read_text().splitlines())


def test_a_finished_run_has_nothing_left_to_do(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    make()[1].run(run, Recorder(), StopSignals())
    before = run.metrics.read_bytes()
    _, trainer = make(step=lambda inputs, targets: 1 / 0)
    trainer.load(run)
    assert trainer.run(run, Recorder(), StopSignals())
    assert run.metrics.read_bytes() == before


@pytest.mark.parametrize("bad", [float("nan"), float("inf")], ids=["nan", "inf"])
def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_checkpoint(tmp_path: Path, bad: float) -> None:
    run = RunDirectory(tmp_path)
    line, trainer = make()
    stop = StopSignals()
    stop_after(trainer, 100, stop)
    trainer.run(run, Recorder(), stop)
    good = run.state.read_bytes()

    line, trainer = make()
    trainer.load(run)
    count = iter(range(101, 10**9))
    trainer.task.step = lambda inputs, targets: bad if next(count) == 130 else line.step(inputs, targets)
    display = Recorder()
    with pytest.raises(RunError) as caught:
        trainer.run(run, display, StopSignals())
    word = "NaN" if math.isnan(bad) else "infinite"
    assert f"the loss became {word} at step 130; try a smaller learning rate than 0.01" in str(caught.value)
    assert "the checkpoint of step 100" in str(caught.value)
    assert run.state.read_bytes() == good
    assert display.stopped


def test_a_full_disk_keeps_the_last_good_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDirectory(tmp_path)
    _, trainer = make()
    stop = StopSignals()
    stop_after(trainer, 100, stop)
    trainer.run(run, Recorder(), stop)
    good = run.state.read_bytes()
    _, trainer = make()
    trainer.load(run)
    stop = StopSignals()
    stop_after(trainer, 200, stop)
    fsync = os.fsync

    def full(descriptor: int) -> None:
        if "state" in Path(f"/proc/self/fd/{descriptor}").readlink().name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    display = Recorder()
    with pytest.raises(RunError) as caught:
        trainer.run(run, display, stop)
    monkeypatch.undo()
    assert str(caught.value).startswith(f"cannot save {tmp_path}: No space left on device; the checkpoint of step 100")
    assert f"--resume {tmp_path}" in str(caught.value)
    assert run.state.read_bytes() == good
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "metrics.jsonl",
        "model.safetensors",
        "run.json",
        "state.safetensors",
    ]
    assert display.stopped
    _, trainer = make()
    trainer.load(run)
    assert trainer.step == 100


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    make(steps=10)[1].run(run, Recorder(), StopSignals())
    line, trainer = make()
    line.weight = np.zeros(5)
    with pytest.raises(InputError, match=r"does not fit .*: weight has another shape"):
        trainer.load(run)


def test_facts_are_checked_before_anything_is_taken_over(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    make(steps=10, facts=lambda: {"words": "abc"})[1].run(run, Recorder(), StopSignals())
    line, trainer = make()
    seen = []

    def check(facts: Any, checked: RunDirectory) -> None:
        assert checked is run
        seen.append(facts)
        raise KeyError

    trainer.task.check = check
    with pytest.raises(KeyError):
        trainer.load(run)
    assert seen == [{"words": "abc"}]
    assert not line.weight.any()


def test_checkpoints_come_at_intervals_but_take_a_small_share_of_the_time(tmp_path: Path) -> None:
    saves: list[tuple[float, float]] = []

    def slow(run: RunDirectory) -> None:
        began = time.perf_counter()
        time.sleep(0.01)
        saves.append((began, time.perf_counter()))

    _, trainer = make(steps=1_500, save_every=0.01, save_model=slow, step=lambda *_: time.sleep(0.0005) or 1.0)
    trainer.run(RunDirectory(tmp_path), Recorder(), StopSignals())
    assert len(saves) >= 3
    for (_, ended), (began, _) in itertools.pairwise(saves[:-1]):
        assert began - ended > 0.15  # a save of 10 ms is followed by at least 200 ms of training


def test_the_display_is_fed_about_ten_times_a_second(tmp_path: Path) -> None:
    display = Recorder()
    _, trainer = make(steps=1_000, step=lambda *_: time.sleep(0.0005) or 1.0)
    began = time.perf_counter()
    trainer.run(RunDirectory(tmp_path), display, StopSignals())
    seconds = time.perf_counter() - began
    assert 3 <= len(display.updates) <= 10 * seconds + 4
    assert [entry.step for entry in display.milestones] == [250, 500, 750, 1_000]
    assert display.milestones[-1].seconds_left == 0
    assert display.milestones[-1].validation_loss is not None
    assert display.stopped == 1


def test_the_loop_itself_costs_little_per_step(tmp_path: Path) -> None:
    def seconds_per_step(steps: int) -> float:
        _, trainer = make(steps=steps, step=lambda *_: 1.0, log_every=100, eval_every=10**9, evaluate=lambda: 1.0)
        began = time.perf_counter()
        trainer.run(RunDirectory(tmp_path), Recorder(), StopSignals())
        return (time.perf_counter() - began) / steps

    cost = min(seconds_per_step(20_000) for _ in range(3))
    assert cost < 20e-6  # 3 µs on an idle machine; the bound leaves room for a busy one
    print(f"loop and batches: {cost * 1e6:.2f} µs per step")
