"""Callbacks: their order, their view of the run, and that they do not change it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad.data import WordList
from glassgrad.errors import InputError, RunError
from glassgrad.nn import functional as F
from glassgrad.tasks.names import NamesTask, configure
from glassgrad.train import Callback, Loop, RunDirectory, RunState, StopSignals, read_metrics
from glassgrad.train.config import command_line
from glassgrad.train.show.display import PlainDisplay

WORDS = "anna bert carla dora emil fritz gerd hanna ida jonas karl lena mona nora otto paula quirin rosa"


def loop(callbacks: list[Callback], **options: Any) -> tuple[NamesTask, Loop]:
    given = {"steps": 20, "hidden": 8, "engine": "eager", "log_every": 5, "eval_every": 10, **options}
    words = WordList(tuple(WORDS.split()), "text")
    task = NamesTask(configure([command_line(given)]), words)
    task.epoch_steps = 8
    return task, Loop(task, callbacks)


def go(made: Loop, path: Path, stop: StopSignals | None = None) -> bool:
    path.mkdir(exist_ok=True)
    return made.run(RunDirectory(path), PlainDisplay(io.StringIO()), stop or StopSignals())


class Diary(Callback):
    """Writes down everything."""

    def __init__(self, every: int = 1) -> None:
        self.every = every
        self.lines: list[Any] = []

    def on_train_start(self, run: RunState) -> None:
        self.lines.append(("start", run.step))

    def on_step_start(self, run: RunState) -> None:
        assert run.batch is not None
        self.lines.append(("before", run.step))

    def on_step_end(self, run: RunState) -> None:
        assert run.loss is not None
        self.lines.append(("after", run.step))

    def on_epoch_end(self, run: RunState) -> None:
        self.lines.append(("epoch", run.epoch, run.step))

    def on_validation_end(self, run: RunState, measures: Mapping[str, float]) -> None:
        assert measures == run.measures
        self.lines.append(("validation", run.step))

    def on_train_end(self, run: RunState) -> None:
        self.lines.append(("end", run.step))


def test_everybody_is_called_in_order(tmp_path: Path) -> None:
    diary = Diary(every=6)
    assert go(loop([diary])[1], tmp_path)
    assert diary.lines == [
        ("start", 0),
        ("before", 0),
        ("after", 6),
        ("before", 6),
        ("epoch", 1, 8),
        ("validation", 10),
        ("after", 12),
        ("before", 12),
        ("epoch", 2, 16),
        ("after", 18),
        ("before", 18),
        ("validation", 20),
        ("end", 20),
    ]


def test_a_stopped_and_resumed_run_calls_each_event_once(tmp_path: Path) -> None:
    whole = Diary(every=3)
    go(loop([whole])[1], tmp_path / "whole")

    class Stopping(Callback):
        def on_step_end(self, run: RunState) -> None:
            if run.step == 7:
                stop.request()

    stop, first, second = StopSignals(), Diary(every=3), Diary(every=3)
    assert not go(loop([first, Stopping()])[1], tmp_path / "parts", stop)
    made = loop([second])[1]
    made.load(RunDirectory(tmp_path / "parts"))
    assert go(made, tmp_path / "parts")
    assert first.lines[-1] == ("end", 7)
    assert second.lines[0] == ("start", 7)
    assert first.lines[1:-1] + second.lines[1:] == whole.lines[1:]


@pytest.mark.parametrize("engine", ["eager", "compiled"])
def test_looking_at_gradients_changes_nothing(engine: str, tmp_path: Path) -> None:
    class Look(Callback):
        every = 4

        def __init__(self) -> None:
            self.norms: list[float] = []

        def on_step_start(self, run: RunState) -> None:
            assert run.batch is not None
            with run.gradients() as loss:
                found = {name: parameter.grad.numpy().copy() for name, parameter in run.model.named_parameters()}
                assert run.clip() is None  # the run does not clip
            assert all(parameter.grad is None for parameter in run.model.parameters()) or engine == "eager"
            self.norms.append(float(np.sqrt(sum(float((g**2).sum()) for g in found.values()))))
            run.log("look", norm=self.norms[-1], odd=float("nan"))
            self.loss = loss

        def on_step_end(self, run: RunState) -> None:
            pass

    look = Look()
    plain, watched = loop([], engine=engine), loop([look], engine=engine)
    go(plain[1], tmp_path / "plain")
    go(watched[1], tmp_path / "watched")
    for name, array in plain[0].learner.weights().items():
        assert (array == watched[0].learner.weights()[name]).all(), name
    records = [one for one in read_metrics(tmp_path / "watched" / "metrics.jsonl") if one["event"] == "look"]
    assert [one["step"] for one in records] == [0, 4, 8, 12, 16]
    assert [one["norm"] for one in records] == look.norms
    assert records[0]["odd"] is None
    assert len(set(look.norms)) == 5


def test_the_gradients_shown_are_those_of_the_coming_batch(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    class Look(Callback):
        every = 100

        def on_step_start(self, run: RunState) -> None:
            with run.gradients() as loss:
                seen["loss"] = loss
                seen.update({name: parameter.grad.numpy().copy() for name, parameter in run.model.named_parameters()})

    go(loop([Look()], steps=1)[1], tmp_path)
    task, made = loop([])
    inputs, targets = made.task.batch_at(0)
    from glassgrad import tensor

    loss = F.cross_entropy(task.learner.model(tensor(inputs)), tensor(targets))
    loss.backward()
    assert seen.pop("loss") == float(loss)
    for name, parameter in task.learner.model.named_parameters():
        np.testing.assert_array_equal(seen[name], parameter.grad.numpy())


def test_a_callback_ends_a_run_for_good(tmp_path: Path) -> None:
    class Enough(Callback):
        def on_step_end(self, run: RunState) -> None:
            if run.step == 13:
                run.stop("enough")

    made = loop([Enough()])[1]
    assert go(made, tmp_path)
    assert (made.step, made.ended) == (13, "enough")
    again = loop([Diary()])[1]
    again.load(RunDirectory(tmp_path))
    assert again.finished
    assert go(again, tmp_path)
    assert again.step == 13


def test_what_a_callback_remembers_is_in_the_checkpoint(tmp_path: Path) -> None:
    class Counting(Callback):
        def __init__(self) -> None:
            self.sums = np.zeros(2)

        def on_step_end(self, run: RunState) -> None:
            self.sums += (1, run.step)
            if run.step == 9 and not isinstance(self, Silent):
                stop.request()

        def state_dict(self) -> dict[str, Any]:
            return {"sums": self.sums}

        def load_state_dict(self, state: dict[str, Any], /) -> None:
            self.sums = state["sums"].copy()

    class Silent(Counting):
        pass

    stop = StopSignals()
    go(loop([Counting()])[1], tmp_path, stop)
    counting, newcomer = Counting(), Silent()
    made = loop([newcomer, counting])[1]
    made.load(RunDirectory(tmp_path))
    go(made, tmp_path)
    assert counting.sums.tolist() == [20, sum(range(21))]
    assert newcomer.sums.tolist() == [11, sum(range(10, 21))]


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Diary\.every must be a whole number of at least 1, given 0"):
        loop([Diary(every=0)])

    class Late(Callback):
        def on_train_start(self, run: RunState) -> None:
            run.gradients()

    with pytest.raises(RunError, match="there is no batch yet; call it from `on_step_start`"):
        go(loop([Late()])[1], tmp_path / "late")
