"""`glassgrad train names` and `glassgrad sample`, from a user's view."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from glassgrad.train.kept.metrics import read_metrics

Call = Callable[..., Any]
QUICK = ("--data", "words.txt", "--hidden", "8", "--embedding", "3")
# The eager engine, which takes long enough to be interrupted in the middle.
LONG = (*QUICK, "--engine", "eager", "--steps", "3000", "--eval-every", "1000", "--run-dir")


def weights(run: Path) -> dict[str, Any]:
    return load_file(run / "model.safetensors")


def assert_same_run(first: Path, second: Path) -> None:
    left, right = weights(first), weights(second)
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)
    states = [load_file(path / "state.safetensors") for path in (first, second)]
    for name in states[0]:
        np.testing.assert_array_equal(states[0][name], states[1][name], err_msg=name)
    records = []
    for path in (first, second):
        lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        records.append([{key: value for key, value in line.items() if not key.endswith("seconds")} for line in lines])
    assert records[0] == records[1]


@pytest.mark.usefixtures("real_pictures")
def test_a_run_from_beginning_to_end(folder: Path, glassgrad: Call) -> None:
    result = glassgrad("train", "names", *QUICK, "--steps", "300", "--eval-every", "100", "--log-every", "50")
    assert (result.code, result.err) == (0, "")
    assert "\x1b" not in result.out
    assert "words      20: words.txt" in result.out
    assert re.search(r"model      mlp, \d+ parameters, \d+ tokens", result.out)
    assert len(re.findall(r"^step +\d+ / 300   loss \d\.\d{4}   validation \d\.\d{4}", result.out, re.MULTILINE)) == 3
    losses = re.search(r"train loss (\d\.\d{4})   validation loss (\d\.\d{4})", result.out)
    assert losses
    assert len(re.findall(r"^  \S*$", result.out, re.MULTILINE)) == 20

    run = folder / "runs" / "names-001"
    assert sorted(entry.name for entry in run.iterdir() if entry.name[0] != ".") == [
        "config.toml",
        "loss.png",
        "metrics.jsonl",
        "model.safetensors",
        "report.html",
        "run.json",
        "samples.json",
        "state.safetensors",
    ]
    assert (run / "loss.png").read_bytes().startswith(b"\x89PNG")
    config = tomllib.loads((run / "config.toml").read_text())
    assert (config["steps"], config["hidden"], config["rate"]) == (300, 8, 0.1)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records if record["event"] == "train"] == [50, 100, 150, 200, 250, 300]
    assert [record["rate"] for record in records if record["event"] == "train"] == [0.1] * 3 + [0.01] * 3
    assert f"{records[-1]['validation_loss']:.4f}" == losses[2]

    drawn = glassgrad("sample", run, "-n", "5", "--seed", "1")
    assert drawn.code == 0
    assert len(drawn.out.splitlines()) == 5
    assert glassgrad("sample", run / "model.safetensors", "-n", "5", "--seed", "1").out == drawn.out
    longer = glassgrad("sample", run, "-n", "9", "--seed", "1").out
    assert longer.startswith(drawn.out)
    assert len(longer.splitlines()) == 9
    assert glassgrad("sample", run, "-n", "5", "--seed", "2").out != drawn.out


def test_the_same_seed_gives_the_same_file_and_another_one_does_not(folder: Path, glassgrad: Call) -> None:
    for name, seed, log_every in (("a", 7, 10), ("b", 7, 25), ("c", 8, 10)):
        options = ("--steps", "50", "--run-dir", name, "--seed", seed, "--log-every", log_every)
        assert glassgrad("train", "names", *QUICK, *options).code == 0
    first, second, third = ((folder / name / "model.safetensors").read_bytes() for name in "abc")
    assert first == second != third


def test_command_line_over_file_over_default_over_model(folder: Path, glassgrad: Call) -> None:
    (folder / "sub").mkdir()
    (folder / "words.txt").rename(folder / "sub" / "list.txt")
    (folder / "sub" / "my.toml").write_text("model = 'bigram'\nsteps = 40\nrate = 3\ndata = 'list.txt'\n")
    result = glassgrad("train", "names", "--config", "sub/my.toml", "--rate", "2.5", "--run-dir", "run")
    assert result.code == 0
    config = tomllib.loads((folder / "run" / "config.toml").read_text())
    assert (config["model"], config["steps"], config["rate"], config["final_rate"]) == ("bigram", 40, 2.5, 1.0)
    assert config["data"] == str(folder / "sub" / "list.txt")
    assert "hidden" not in config
    again = glassgrad("train", "names", "--config", "run/config.toml", "--run-dir", "again")
    assert again.code == 0
    assert (folder / "again" / "config.toml").read_text() == (folder / "run" / "config.toml").read_text()
    assert_same_run(folder / "run", folder / "again")


def test_the_bigram_learns_the_table_of_frequencies(folder: Path, glassgrad: Call) -> None:
    assert glassgrad("train", "names", "--model", "bigram", "--steps", "4000", "--run-dir", "run").code == 0
    final = json.loads((folder / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    # The best table there is: the entropy of the next character given the last, counted from the training words.
    from glassgrad.data import NamesData, read_words, shipped_words

    data = NamesData.build(read_words(shipped_words()), 1)
    counts = np.zeros((27, 27))
    np.add.at(counts, (data.train.inputs[:, 0], data.train.targets), 1)
    rows = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    best = -(counts[counts > 0] * np.log(rows[counts > 0])).sum() / counts.sum()
    assert best <= final["train_loss"] < best + 0.05


@pytest.mark.parametrize(
    "words",
    ["Анна Борис Вера Глеб Дина Егор Жанна Зоя Илья Клара", "明美 恵子 健太 真理 太郎 花子 次郎 三郎 四郎 美香"],
)
def test_other_alphabets(folder: Path, glassgrad: Call, words: str) -> None:
    (folder / "other.txt").write_bytes(b"\xef\xbb\xbf" + words.replace(" ", "\r\n").encode())
    assert glassgrad("train", "names", "--data", "other.txt", "--steps", "100", "--run-dir", "run").code == 0
    drawn = glassgrad("sample", "run", "-n", "30").out
    assert set(drawn) - {"\n"} <= set(words)
    assert set(drawn) - {"\n"}


def test_mixed_case_is_kept_and_pointed_out(folder: Path, glassgrad: Call) -> None:
    (folder / "case.txt").write_text("Anna\nanna\nANNA\n" + "\n".join("bcdefghij"))
    arguments = ("train", "names", "--data", "case.txt", "--steps", "10", "--hidden", "4")
    kept = glassgrad(*arguments)
    assert "2 differ from others in case only; --lowercase joins them" in kept.out
    assert "14 tokens" in kept.out  # the boundary, A, N, a, n, and b to j
    joined = glassgrad(*arguments, "--lowercase")
    assert "12, 10 of them different" in joined.out
    assert "12 tokens" in joined.out


def test_pytorch_reads_the_weights_under_its_own_names(folder: Path, glassgrad: Call) -> None:
    torch = pytest.importorskip("torch", reason="loads the weights into PyTorch's layers")
    from safetensors.torch import load_file as load

    glassgrad("train", "names", *QUICK, "--steps", "30", "--run-dir", "run")
    state = load(folder / "run" / "model.safetensors")
    hidden = torch.nn.Linear(9, 8)
    hidden.load_state_dict({"weight": state["hidden.weight"], "bias": state["hidden.bias"]})
    norm = torch.nn.BatchNorm1d(8)
    norm.load_state_dict({name[5:]: value for name, value in state.items() if name.startswith("norm.")})
    assert torch.equal(norm.weight, state["norm.weight"])


# --- stopping and going on ---


def wait_for(run: Path, step: int) -> None:
    """Wait until the metrics of a run have reached a step."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if max((record["step"] for record in read_metrics(run / "metrics.jsonl")), default=0) >= step:
            return
        time.sleep(0.005)
    raise AssertionError(f"{run} did not reach step {step}")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, words: str) -> Path:
    """The run that was never stopped."""
    folder = tmp_path_factory.mktemp("reference")
    (folder / "words.txt").write_text(words)
    command = [sys.executable, "-m", "glassgrad", "train", "names", *LONG, "whole"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "whole"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_ctrl_c_and_sigterm_save_and_a_resumed_run_is_as_never_stopped(
    folder: Path, process: Call, glassgrad: Call, reference: Path
) -> None:
    run = folder / "run"
    first = process("train", "names", *LONG, "run")
    wait_for(run, 500)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=30)
    assert first.returncode == 130
    stopped = re.fullmatch(
        r"interrupted: stopped after step ([\d,]+) of 3,000 and saved it\n"
        r"go on with: glassgrad train names --resume run\n",
        err,
    )
    assert stopped, err

    second = process("train", "names", "--resume", "run")
    wait_for(run, int(stopped[1].replace(",", "")) + 500)
    second.send_signal(signal.SIGTERM)
    out, err = second.communicate(timeout=30)
    assert second.returncode == 143
    assert "asked to stop: stopped after step" in err
    assert f"going on at step {stopped[1]}" in out

    assert glassgrad("train", "names", "--resume", "run").code == 0
    assert_same_run(run, reference)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_last_checkpoint(
    folder: Path, process: Call, glassgrad: Call, reference: Path
) -> None:
    run = folder / "run"
    started = process("train", "names", *LONG, "run", "--save-every", "0.05")
    wait_for(run, 1_500)
    started.kill()
    started.wait()
    result = glassgrad("train", "names", "--resume", "run")
    assert result.code == 0
    assert int(re.search(r"going on at step ([\d,]+)", result.out)[1].replace(",", "")) > 0
    for path in (run, reference):  # how often to save is no part of what is trained
        assert (path / "metrics.jsonl").exists()
    assert_same_run(run, reference)
    assert not [entry for entry in run.iterdir() if entry.name.endswith(".tmp")]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.slow
def test_many_ctrl_cs_do_no_harm(folder: Path, process: Call, glassgrad: Call, reference: Path) -> None:
    run = folder / "run"
    started = process("train", "names", *LONG, "run", "--save-every", "0.01")
    wait_for(run, 500)
    while started.poll() is None:
        started.send_signal(signal.SIGINT)
        time.sleep(0.0005)
    _, err = started.communicate(timeout=30)
    assert started.returncode in {130, -signal.SIGINT}, err
    assert "Traceback" not in err
    assert glassgrad("train", "names", "--resume", "run").code == 0
    assert_same_run(run, reference)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_a_reader_that_goes_away_stops_the_run_cleanly(folder: Path, process: Call, glassgrad: Call) -> None:
    started = process("train", "names", *QUICK, "--steps", "1000000", "--eval-every", "200", "--run-dir", "run")
    for _ in range(6):
        started.stdout.readline()
    started.stdout.close()
    err = started.stderr.read()
    assert started.wait(timeout=30) == 128 + signal.SIGPIPE
    assert re.match(r"output closed: stopped after step [\d,]+ of 1,000,000 and saved it\n", err)
    assert "Exception" not in err
    assert glassgrad("sample", "run", "-n", "3").code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_in_a_terminal_the_display_is_live(folder: Path, process: Call) -> None:
    import pty

    outer, inner = pty.openpty()
    environment = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    command = [sys.executable, "-m", "glassgrad", "train", "names", *LONG, "run"]
    started = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, cwd=folder, env={**os.environ, **environment}, close_fds=True
    )
    os.close(inner)
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([outer], [], [], 1)[0]:
            continue
        try:
            part = os.read(outer, 65_536)
        except OSError:  # how Linux reports that the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(outer)
    assert started.wait(timeout=30) == 0
    text = shown.decode()
    assert len(re.findall(r"step +[\d,]+ / 3,000", text)) > 3
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is shown again
    assert "validation loss" in text
    assert "100%" in text


def test_help_names_every_hyperparameter(glassgrad: Call) -> None:
    from glassgrad.tasks.names import NamesConfig
    from glassgrad.train.config import flag, rules

    text = glassgrad("train", "names", "--help").out
    for key in rules(NamesConfig):
        assert flag(key) in text


def test_version(glassgrad: Call) -> None:
    assert re.fullmatch(r"glassgrad \d+\.\d+\.\d+\S*\n", glassgrad("--version").out)
