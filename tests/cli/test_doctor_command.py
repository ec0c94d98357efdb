"""`glassgrad doctor` of scripts and run directories, and `--doctor`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SCRIPT = """
import sys
import numpy as np
import {library} as lib

lib.manual_seed(0)
rng = np.random.default_rng(0)
x, y = rng.normal(size=(64, 6)).astype(np.float32), rng.integers(0, 3, 64)
model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.ReLU(), lib.nn.Linear(16, 3))
optimizer = lib.optim.SGD(model.parameters(), lr=float(sys.argv[1]))
for step in range(8):
    loss = lib.nn.functional.cross_entropy(model(lib.tensor(x)), lib.tensor(y))
    {zero}
    loss.backward()
    optimizer.step()
{end}
print("the loss is", loss.item())
"""


def script(folder: Path, library: str = "glassgrad", zero: str = "optimizer.zero_grad()", end: str = "") -> Path:
    path = folder / "train.py"
    path.write_text(SCRIPT.format(library=library, zero=zero, end=end), encoding="utf-8")
    return path


def test_a_healthy_script_is_told_so_and_gets_its_arguments(glassgrad: Callable[..., Any], folder: Path) -> None:
    script(folder)
    path, arguments = list(sys.path), list(sys.argv)
    result = glassgrad("doctor", "train.py", "0.1")
    assert result.code == 0, result.err
    assert "the loss is 1." in result.out
    assert "Sequential, optimizer made at train.py:10" in result.out
    assert "findings     none: nothing here looks wrong   (8 steps watched" in result.out
    assert (sys.path, sys.argv) == (path, arguments)


def test_what_is_wrong_with_a_script_is_named_with_its_lines(glassgrad: Callable[..., Any], folder: Path) -> None:
    script(folder, zero="pass")
    result = glassgrad("doctor", "train.py", "10")
    assert result.code == 0
    assert "ERROR    zero_grad is missing: the backward pass at train.py:14" in result.out
    assert "WARNING  learning rate out of the usual: the learning rate of SGD is 10" in result.out


def test_a_script_that_fails_shows_its_own_traceback(glassgrad: Callable[..., Any], folder: Path) -> None:
    script(folder, end="raise ValueError('enough')")
    result = glassgrad("doctor", "train.py", "0.1")
    assert result.code == 1
    assert "ValueError: enough" in result.err
    assert "runpy" not in result.err
    assert "ERROR    stopped: the loop ended after 8 steps: ValueError: enough" in result.out


def test_what_is_no_script_is_a_clear_error(glassgrad: Callable[..., Any], folder: Path) -> None:
    result = glassgrad("doctor", "nothing.py")
    assert (result.code, result.err.strip()) == (2, "error: there is no script nothing.py")
    result = glassgrad("doctor", "nowhere")
    assert result.code == 2
    assert "there is no such directory" in result.err
    (folder / "cells.ipynb").write_text("{}", encoding="utf-8")
    assert "it is a file; a script to watch has a name that ends in .py" in glassgrad("doctor", "cells.ipynb").err
    (folder / "plain.py").write_text("print('hello')\n", encoding="utf-8")
    assert "no training was seen" in glassgrad("doctor", "plain.py").out


def test_the_step_that_makes_a_nan_is_named(glassgrad: Callable[..., Any], folder: Path) -> None:
    bad = "with np.errstate(all='ignore'): loss = loss + (model(lib.tensor(x)) * 0).log().sum() * 0"
    script(folder, zero=bad)
    result = glassgrad("doctor", "train.py", "--nan", "0.1")
    assert result.code == 1
    assert "step 0: NaN in the forward pass" in result.err
    assert "ERROR    NaN in the forward pass" in result.out
    assert "train.py:13" in result.out
    result = glassgrad("doctor", ".", "--nan")
    assert (result.code, "Next: give the script" in result.err) == (2, True)


@pytest.mark.slow
def test_a_script_of_pytorch_is_run_by_the_command(folder: Path) -> None:
    pytest.importorskip("torch", reason="the script imports it")
    script(folder, "torch", "pass")
    command = [sys.executable, "-m", "glassgrad", "doctor", "train.py", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "ERROR    zero_grad is missing: the backward pass at train.py:14" in done.stdout


def test_a_run_made_with_doctor_is_judged_at_its_end_and_later(
    glassgrad: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glassgrad.cli.options.draw", lambda directory: [])  # pictures have tests of their own
    options = ("train", "names", "--data", "words.txt", "--steps", 40, "--hidden", 16, "--log-every", 10)
    result = glassgrad(*options, "--out", "run", "--doctor")
    assert result.code == 0, result.err
    assert "findings     none: nothing here looks wrong   (40 steps watched, 40 sampled)" in result.out
    assert (folder / "run" / "monitor.npz").is_file()
    assert glassgrad(*options, "--out", "alone").code == 0
    alone, judged = ((folder / run / "model.safetensors").read_bytes() for run in ("alone", "run"))
    assert alone == judged
    assert "findings     none" in glassgrad("doctor", "run").out
    assert "only the losses are known" in glassgrad("doctor", "alone").out


def test_losses_that_rise_and_sets_aside_that_are_left_behind_are_found(
    glassgrad: Callable[..., Any], folder: Path
) -> None:
    (folder / "run").mkdir()
    steps = np.arange(10, 400, 10)
    records = [{"event": "train", "step": int(step), "loss": 1.0 + step / 100, "rate": 0.1} for step in steps]
    (folder / "run" / "metrics.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    assert "ERROR    loss rises" in glassgrad("doctor", "run").out
    records = [{"event": "train", "step": int(step), "loss": 10 / step, "rate": 0.1} for step in steps]
    records += [{"event": "validation", "step": 100 * at, "loss": 0.5 + abs(at - 2)} for at in range(5)]
    (folder / "run" / "metrics.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    assert "WARNING  overfitting: the held-out loss was best at step 200 (0.5)" in glassgrad("doctor", "run").out
