"""`glassgrad lint`, and what `glassgrad doctor script.py` reads beside what it sees."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glassgrad.cli.app import command
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading.beside import reading_of, unconfirmed

FAULT = "import torch\nloss = torch.ones(1)\nloss.backward\n"
TRAINING = """
import glassgrad as gg
from glassgrad import nn

gg.manual_seed(0)
x, y = gg.randn(64, 6), gg.randint(0, 3, (64,))
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3){end})
optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
total = 0
for step in range(8):
    {zero}
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    total += {value}
"""


def script(folder: Path, zero: str = "optimizer.zero_grad()", value: str = "loss.item()", end: str = "") -> Path:
    path = folder / "train.py"
    path.write_text(TRAINING.format(zero=zero, value=value, end=end), encoding="utf-8")
    return path


def test_findings_are_listed_with_exit_code_1(glassgrad: Callable[..., Any], folder: Path) -> None:
    (folder / "train.py").write_text(FAULT, encoding="utf-8")
    result = glassgrad("lint", "train.py")
    assert result.code == 1
    assert result.out.startswith("train.py:3:1: error method-not-called: loss.backward names a method")
    assert glassgrad("lint", "train.py", "--ignore", "method-not-called,softmax-twice").code == 0
    assert glassgrad("lint", "train.py", "--select", "softmax-twice").out == "no findings in 1 script\n"


def test_the_formats(glassgrad: Callable[..., Any], folder: Path) -> None:
    (folder / "train.py").write_text(FAULT, encoding="utf-8")
    assert json.loads(glassgrad("lint", ".", "--format", "json").out)["findings"][0]["line"] == 3
    assert glassgrad("lint", ".", "--format", "github").out.startswith("::error file=train.py,line=3,col=1,")
    (folder / "train.py").write_text("import torch\n", encoding="utf-8")
    assert glassgrad("lint", ".", "--format", "github").out == ""


def test_what_cannot_be_read_is_exit_code_2(glassgrad: Callable[..., Any], folder: Path) -> None:
    (folder / "broken.py").write_text("x = (\n", encoding="utf-8")
    result = glassgrad("lint", "broken.py")
    assert result.code == 2
    assert "broken.py:1:5: not readable as Python: '(' was never closed" in result.err
    for arguments in (("lint", "nowhere"), ("lint", "broken.py", "--select", "nothing"), ("lint",)):
        result = glassgrad(*arguments)
        assert (result.code, result.err.startswith("error: ")) == (2, True)


def test_the_rules_are_listed(glassgrad: Callable[..., Any]) -> None:
    lines = glassgrad("lint", "--rules").out.splitlines()
    assert "error    softmax-twice" in lines
    assert len(lines) > 50


def test_the_hook_for_pre_commit_runs_the_command() -> None:
    path = Path(__file__).parents[2] / ".pre-commit-hooks.yaml"
    if not path.is_file():
        pytest.skip("an unpacked archive has no hidden files")
    hook = path.read_text(encoding="utf-8")
    entry = re.search(r"^  entry: glassgrad (\w+)$", hook, re.MULTILINE)
    assert entry is not None
    assert entry[1] in command().commands
    assert "types_or: [python, jupyter]" in hook


# --- beside a run ---


def test_the_doctor_tells_what_only_the_source_shows(glassgrad: Callable[..., Any], folder: Path) -> None:
    script(folder, value="loss")
    out = glassgrad("doctor", "train.py").out
    assert "WARNING  graph grows: read in the source: total += loss keeps the loss with its graph" in out
    assert "at train.py:15" in out
    assert "findings     1   (8 steps watched" in out


def test_what_a_run_confirms_is_not_told_twice(glassgrad: Callable[..., Any], folder: Path) -> None:
    script(folder, zero="pass", end=", nn.Softmax(dim=1)")
    out = glassgrad("doctor", "train.py").out
    assert out.count("zero_grad is missing: ") == 1
    assert out.count("softmax twice: ") == 1
    assert "read in the source" not in out


def test_a_cause_that_was_read_stands_first_and_what_follows_beneath(
    glassgrad: Callable[..., Any], folder: Path
) -> None:
    script(folder, zero="optimizer.zero_grad")
    lines = [line for line in glassgrad("doctor", "train.py").out.splitlines() if line.strip()]
    assert lines[2].startswith("  ERROR    method not called: read in the source: optimizer.zero_grad names a method")
    assert any(line.lstrip().startswith("follows: error: zero_grad is missing") for line in lines)


def test_a_script_without_a_training_is_read(glassgrad: Callable[..., Any], folder: Path) -> None:
    (folder / "plain.py").write_text("import glassgrad as gg\ngg.no_grad()\n", encoding="utf-8")
    out = glassgrad("doctor", "plain.py").out
    assert "no training was seen" in out
    assert "read in the source\nfindings     1" in out


def test_the_same_name_at_another_line_is_another_fault(folder: Path) -> None:
    read = reading_of(str(script(folder, zero="pass")))
    (one,) = [one for one in read if one.finding.rule == "zero_grad is missing"]
    assert one.finding.where.endswith("train.py:13")

    def left(where: str, rule: str = "zero_grad is missing") -> int:
        return len(unconfirmed([one], [Finding(rule, "error", f"the backward pass at {where}", "")]))

    assert [left("train.py:13"), left("train.py:14"), left("train.py:40"), left("another.py:13")] == [0, 0, 1, 0]
    assert left("train.py:13", "softmax twice") == 1
