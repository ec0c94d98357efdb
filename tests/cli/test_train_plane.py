"""`glassgrad train xor` and `glassgrad train moons`, from a user's view."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]


@pytest.mark.usefixtures("real_pictures")
@pytest.mark.parametrize("task", ["xor", "moons"])
def test_points_from_beginning_to_end(folder: Path, glassgrad: Call, task: str) -> None:
    result = glassgrad("train", task, "--engine", "manual")
    assert (result.code, result.err) == (0, "")
    assert "points     200 training / 50 test" in result.out
    run = folder / "runs" / f"{task}-001"
    assert f"boundary   runs/{task}-001/boundary.png" in result.out
    assert (run / "boundary.png").read_bytes().startswith(b"\x89PNG")
    final = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert final["train_accuracy"] == 1.0
    assert final["test_accuracy"] >= 0.96
    again = glassgrad("train", task, "--resume", run)
    assert again.code == 0
    assert "going on at step 1,000" in again.out
    refused = glassgrad("sample", run)
    assert (refused.code, refused.out) == (2, "")
    assert f"holds a model of the task {task!r}, which generates no text" in refused.err
    assert "damaged" not in refused.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("xor", "--points", "3"), "--points must be a whole number at least 4"),
        (("xor", "--noise", "-1"), "--noise must be a number at least 0 and at most 1e+06, given -1"),
        (("moons", "--noise", "inf"), "--noise must be a number at least 0"),
        (("moons", "--rate", "-0.1"), "--rate must be a number above 0 and at most 1e+06, given -0.1"),
        (("moons", "--hidden", "0"), "--hidden must be a whole number at least 1"),
        (("moons", "--engine", "jit"), "--engine must be one of eager, compiled, manual, given 'jit'"),
        (("xor", "--data", "words.txt"), "--data"),
        (("xor", "--config", "moons.toml"), "moons.toml is for `glassgrad train moons`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_used_is_one_line_and_makes_no_file(
    folder: Path, glassgrad: Call, options: tuple[str, ...], message: str
) -> None:
    (folder / "moons.toml").write_text("task = 'moons'\n")
    before = sorted(entry.name for entry in folder.iterdir())
    result = glassgrad("train", *options)
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", result.err), result.err
    assert message in result.err
    assert sorted(entry.name for entry in folder.iterdir()) == before


def test_a_run_says_its_dtype_keeps_it_and_goes_on_in_it(folder: Path, glassgrad: Call) -> None:
    first = glassgrad("train", "moons", "--dtype", "bfloat16", "--steps", "20", "--run-dir", "run")
    assert first.code == 0
    assert "dtype      products in bfloat16, their sums, weights and optimizer in float32" in first.out
    assert re.search(r'^dtype = "bfloat16"$', (folder / "run/config.toml").read_text(), re.MULTILINE)
    again = glassgrad("train", "moons", "--resume", "run", "--steps", "30")
    assert "dtype      products in bfloat16" in again.out
    assert json.loads((folder / "run/metrics.jsonl").read_text().splitlines()[-1])["step"] == 30
    refused = glassgrad("train", "moons", "--resume", "run", "--dtype", "float64")
    assert (refused.code, refused.out) == (2, "")
    assert "--dtype of a run cannot change: it began with bfloat16, given float64" in refused.err
    by_hand = glassgrad("train", "moons", "--engine", "manual", "--dtype", "float64")
    assert (by_hand.code, by_hand.out) == (2, "")
    assert "--dtype 'float64' is not possible with --engine manual" in by_hand.err
