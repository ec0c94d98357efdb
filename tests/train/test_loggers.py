"""The loggers of a run besides metrics.jsonl, and the meters for a custom loop."""

from __future__ import annotations

import csv
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.errors import ArgumentError, InputError
from glassgrad.train import AverageMeter, CSVLogger, accuracy, read_metrics

from .fitting import trainer


def test_the_table_has_what_the_lines_have(tmp_path: Path) -> None:
    trainer(run_dir=str(tmp_path / "run"), log_to="csv", metrics={"accuracy": accuracy}, clip_norm=1.0).fit()
    lines = read_metrics(tmp_path / "run" / "metrics.jsonl")
    with (tmp_path / "run" / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(lines) == 8
    for row, line in zip(rows, lines, strict=True):
        assert {key: str(value) for key, value in line.items()} == {key: value for key, value in row.items() if value}


def test_a_row_that_was_cut_is_dropped_on_resume(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    log = CSVLogger(path)
    for step in (10, 20, 30):
        log.write(event="train", step=step, loss=1 / step)
    path.write_text(path.read_text()[:-4] + "\ntrai")
    log = CSVLogger(path)
    log.drop_after(20)
    log.write(event="train", step=30, loss=0.5)
    assert path.read_text() == "event,step,loss\ntrain,10,0.1\ntrain,20,0.05\ntrain,30,0.5\n"


def test_tensorboard_gets_every_number_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="the optional extra tensorboard")
    from tensorboardX.proto.event_pb2 import Event

    for until in (13, None):
        trainer(run_dir=str(tmp_path / "run"), log_to="tensorboard").fit(resume=True, until=until)
    found: list[tuple[tuple[str, int], float]] = []
    for file in sorted((tmp_path / "run" / "tensorboard").iterdir()):
        content = file.read_bytes()
        while content:
            length = int.from_bytes(content[:8], "little")
            event = Event.FromString(content[12 : 12 + length])
            content = content[16 + length :]
            found += [((value.tag, event.step), value.simple_value) for value in event.summary.value]
    numbers = dict(found)
    assert len(numbers) == len(found)
    lines = [line for line in read_metrics(tmp_path / "run" / "metrics.jsonl") if "loss" in line]
    assert lines
    for line in lines:
        assert numbers[f"{line['event']}/loss", line["step"]] == pytest.approx(line["loss"], rel=1e-6)


def test_wandb_gets_every_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    logged: list[Any] = []
    options: dict[str, Any] = {}
    fake = types.ModuleType("wandb")

    class Run:
        def log(self, values: dict[str, float], step: int) -> None:
            logged.append((step, values))

        def finish(self) -> None:
            logged.append("finished")

    def init(**given: Any) -> Run:
        options.update(given)
        return Run()

    fake.init = init  # what the package has
    monkeypatch.setitem(sys.modules, "wandb", fake)
    found = trainer(run_dir=str(tmp_path / "mine"), log_to="wandb").fit()
    assert (options["id"], options["resume"], options["config"]["epochs"]) == ("mine", "allow", 3)
    assert logged[-1] == "finished"
    assert [step for step, _ in logged[:-1]] == [line["step"] for line in found.records]
    assert logged[0][1]["train/loss"] == found.records[0]["loss"]


@pytest.mark.parametrize(("name", "package"), [("tensorboard", "tensorboardX"), ("wandb", "wandb")])
def test_a_package_that_is_missing_is_named_before_training(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    made = trainer(run_dir=str(tmp_path / "run"), log_to=name)
    with pytest.raises(InputError, match=f"log_to='{name}' needs {package}, which is not installed: pip install"):
        made.fit()
    assert made.loop.step == 0


def test_meters() -> None:
    meter = AverageMeter("loss")
    assert np.isnan(meter.avg)
    for value, count in ((1.0, 3), (2.0, 1)):
        meter.update(gg.tensor(value), count)
    assert (meter.val, meter.avg, meter.count) == (2.0, 1.25, 4)
    meter.reset()
    assert meter.count == 0


def test_accuracy_against_a_plain_count() -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.standard_normal((50, 7)), rng.integers(0, 7, 50)
    labels[::9] = -100
    for k in (1, 3, 7):
        kept = [row for row in range(50) if labels[row] != -100]
        right = sum(
            labels[row] in sorted(range(7), key=lambda c, row=row: -scores[row, c])[:k] for row in kept
        )  # a default binds the loop's value
        assert accuracy(scores, labels, k) == right / len(kept)
        assert accuracy(gg.tensor(scores), gg.tensor(labels), (1, k))[1] == right / len(kept)
    places = rng.standard_normal((5, 7, 10))
    expected = (places.argmax(axis=1) == labels.reshape(5, 10))[labels.reshape(5, 10) != -100].mean()
    assert accuracy(places, labels.reshape(5, 10)) == pytest.approx(expected)
    with pytest.raises(ArgumentError, match=r"outputs of shape \(50, 7\) and targets of shape \(49,\) do not match"):
        accuracy(scores, labels[:49])
    with pytest.raises(ArgumentError, match="topk"):
        accuracy(scores, labels, 8)
