"""The twins of `benchmarks.training` compute what our models compute: equal held-out losses after some steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.training import KINDS, compare

NAMES = {"embedding": 8, "steps": 12, "dropout": 0.0, "batch": 8}


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("digits", {"epochs": 1, "hidden": 16, "batch": 128}),
        ("digits", {"epochs": 1, "hidden": 16, "batch": 128, "model": "cnn", "channels": 2}),
        ("names", {**NAMES, "model": "rnn", "hidden": 8, "layers": 2}),
        ("names", {**NAMES, "model": "lstm", "hidden": 8}),
        ("names", {**NAMES, "model": "gru", "hidden": 8}),
        ("names", {**NAMES, "model": "gpt", "layers": 2}),
        ("text", {"steps": 12, "width": 16, "layers": 1, "context": 8}),
    ],
    ids=lambda value: value.get("model", "") if isinstance(value, dict) else value,
)
def test_both_libraries_train_alike(task: str, options: dict[str, object], tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is the other side")
    if task == "text":
        (tmp_path / "text.txt").write_text("the cat sat on the mat and ate a rat, " * 20)
        options = {**options, "data": str(tmp_path / "text.txt")}
    lines = list(compare(KINDS[task], options, ("glassgrad eager", "PyTorch")))
    losses = [float(line.split("|")[3]) for line in lines]
    assert losses[0] == pytest.approx(losses[1], abs=5e-4)
