"""`train.Logger`: the records of a custom loop, and the values that other tools read from them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.cli import run
from glassgrad.train import Logger, read_metrics


def test_console_lines_and_files_hold_the_same_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Logger(tmp_path, "console, jsonl, csv", print_every=2) as logger:
        for step in range(1, 4):
            logger.log({"loss": gg.tensor(3.0, requires_grad=True) / step, "rate": np.float32(0.5)}, step)
        logger.log({"loss": gg.ones(1, 1)}, event="validation")
        logger.log({"loss": 2})
    assert capsys.readouterr().out.splitlines() == [
        "step 1  loss 3  rate 0.5", "step 3  loss 1  rate 0.5", "validation  step 3  loss 1"
    ]  # fmt: skip  # a line each
    records = read_metrics(tmp_path / "metrics.jsonl")
    assert [(one["event"], one["step"], one["loss"]) for one in records] == [
        ("train", 1, 3.0), ("train", 2, 1.5), ("train", 3, 1.0), ("validation", 3, 1.0), ("train", 4, 2.0)
    ]  # fmt: skip  # a table
    with (tmp_path / "metrics.csv").open(newline="") as file:
        assert [float(row["loss"]) for row in csv.DictReader(file)] == [one["loss"] for one in records]


def test_a_second_process_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    for _ in range(2):
        with Logger(tmp_path, "jsonl") as logger:
            logger.log({"loss": 1.0})
    assert [one["step"] for one in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2]


def test_a_nan_is_kept_and_the_doctor_sees_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Logger(tmp_path) as logger:
        for step, loss in enumerate([1.0, 0.5, float("nan"), float("nan")], start=1):
            logger.log({"loss": loss}, step)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[2]) == {"event": "train", "step": 3, "loss": None}
    assert "step 3  loss nan" in capsys.readouterr().out
    run(["doctor", str(tmp_path)])
    assert "the loss is NaN from step 3 on" in capsys.readouterr().out
    assert run(["report", str(tmp_path)]) == 0
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("value", "given"),
    [
        (gg.ones(3), "Tensor of shape (3,)"),
        (np.ones(2), "ndarray of shape (2,)"),
        ("2.5", "str"),
        (None, "NoneType"),
        ([1.0], "list"),
    ],
)
def test_what_is_no_number_is_refused_with_the_line(value: Any, given: str, tmp_path: Path) -> None:
    with Logger(tmp_path) as logger:
        with pytest.raises(errors.ArgumentError, match="a single number") as caught:
            logger.log({"loss": value})
        assert given in str(caught.value)
        assert "test_logger.py" in str(caught.value)
    assert read_metrics(tmp_path / "metrics.jsonl") == []


def test_wrong_destinations_are_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError, match="did you mean 'console'"):
        Logger(tmp_path, "consol")
    with pytest.raises(errors.InputError, match="give a run_dir"):
        Logger(None, "csv")
    with pytest.raises(errors.ArgumentError, match="print_every"):
        Logger(print_every=0)


def test_monitors_hand_their_numbers_over(tmp_path: Path) -> None:
    layer = gg.nn.Linear(2, 1, bias=False)
    layer(gg.tensor([[3.0, 4.0]])).sum().backward()
    with Logger(tmp_path, "jsonl") as logger:
        gg.GradientMonitor(layer).log_stats(logger, 7)
    (record,) = read_metrics(tmp_path / "metrics.jsonl")
    assert (record["step"], record["total_norm"], record["gradient_norm/weight"]) == (7, 5.0, 5.0)


def test_ready_images_are_scaled_and_load(tmp_path: Path) -> None:
    train, test = gg.data.digits()
    assert train.inputs.shape == (1437, 1, 8, 8)
    assert abs(float(train.inputs.mean())) < 1e-6
    assert float(train.inputs.std()) == pytest.approx(1)
    images, labels = next(iter(gg.utils.data.DataLoader(test, batch_size=10)))
    np.testing.assert_array_equal(images.numpy(), test.inputs[:10])
    np.testing.assert_array_equal(labels.numpy(), test.targets[:10])
    with pytest.raises(errors.InputError, match="no such directory"):
        gg.data.mnist(tmp_path / "nowhere")
