"""Every foreseen mistake: one line on stderr, a non-zero exit code, and no written file."""

from __future__ import annotations

import json
import re
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

QUICK = ("--data", "words.txt", "--steps", "20", "--hidden", "4", "--embedding", "2")
Call = Callable[..., Any]


def files(folder: Path) -> list[str]:
    return sorted(str(entry.relative_to(folder)) for entry in folder.rglob("*"))


def refused(folder: Path, result: Any, message: str, before: list[str], code: int = 2) -> None:
    assert result.code == code
    assert result.out == ""
    assert re.fullmatch(r"error: [^\n]+\n", result.err), result.err
    assert message in result.err
    assert files(folder) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file: input.txt"),
        (b"", "input.txt holds no words"),
        (b"\n \n", "input.txt holds no words"),
        (b"\x7fELF\x02\x01\x01\0\0", "input.txt is not a text file"),
        (b"\x89PNG\r\n\x1a\n\0", "input.txt is not a text file"),
        (b"ren\xe9e\n" * 20, "input.txt is not UTF-8 (byte 0xe9 in line 1)"),
        (b"anna\n", "input.txt holds one word; at least 10 words are needed"),
    ],
    ids=["missing", "empty", "blank", "elf", "png", "latin-1", "one-word"],
)
def test_data_files(folder: Path, glassgrad: Call, content: bytes | None, message: str) -> None:
    if content is not None:
        (folder / "input.txt").write_bytes(content)
    before = files(folder)
    for where in ((), ("--run-dir", "new/run")):
        refused(folder, glassgrad("train", "names", "--data", "input.txt", *where), message, before)


def test_a_directory_as_data(folder: Path, glassgrad: Call) -> None:
    refused(folder, glassgrad("train", "names", "--data", folder), "is a directory", files(folder))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rate", "-0.1"), "--rate must be a number above 0 and at most 1e+06, given -0.1"),
        (("--rate", "nan"), "--rate must be a number above 0 and at most 1e+06, given nan"),
        (("--rate", "fast"), "--rate"),
        (("--batch", "0"), "--batch must be a whole number at least 1 and at most 1e+06, given 0"),
        (("--batch", "-3"), "--batch must be a whole number at least 1 and at most 1e+06, given -3"),
        (("--batch", "1"), "--batch must be at least 2 for the model 'mlp'"),
        (("--batch", "1.5"), "--batch"),
        (("--batch", "9" * 40), "--batch must be a whole number at least 1 and at most 1e+06"),
        (("--steps", "0"), "--steps must be a whole number at least 1"),
        (("--steps",), "--steps"),
        (("--model", "mpl"), "rnn, lstm, gru, gpt, bigram, given 'mpl'; did you mean 'mlp'?"),
        (("--model", "bigram", "--hidden", "5"), "--hidden has no effect on the model 'bigram'"),
        (("--device", "cuda"), "--device must be one of cpu, given 'cuda'"),
        (("--drop-at", "1.5"), "--drop-at must be a number at least 0 and at most 1, given 1.5"),
        (("--seed", "-1"), "--seed must be a whole number at least 0"),
        (("--momentun", "0.9"), "--momentum"),
        (("surplus",), "surplus"),
        (("--config", "none.toml"), "cannot read none.toml: No such file or directory"),
        (("--run-dir", "words.txt"), "words.txt exists and is not an empty directory"),
        (("--run-dir", "words.txt/run"), "cannot make the run directory"),
        (("--run-dir", "/proc/self/run"), "cannot make the run directory /proc/self/run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options(folder: Path, glassgrad: Call, options: tuple[str, ...], message: str) -> None:
    before = files(folder)
    refused(folder, glassgrad("train", "names", *QUICK[:4], *options), message, before)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rat = 0.1", "unknown key 'rat' in my.toml; did you mean 'rate'?"),
        ("rate = -1", "rate in my.toml must be a number above 0 and at most 1e+06, given -1"),
        ("rate = ", "my.toml is not valid TOML"),
        ("batch = 1", "batch in my.toml must be at least 2"),
        ("model = 'bigram'\nhidden = 4", "hidden in my.toml has no effect on the model 'bigram'"),
        ("task = 'digits'", "my.toml is for `glassgrad train digits`"),
        ("data = 'none.txt'", "no such file: none.txt"),
    ],
)
def test_configuration_files(folder: Path, glassgrad: Call, text: str, message: str) -> None:
    (folder / "my.toml").write_text(text)
    refused(folder, glassgrad("train", "names", "--config", "my.toml"), message, files(folder))


def test_unknown_commands(folder: Path, glassgrad: Call) -> None:
    refused(folder, glassgrad("trian"), "trian", files(folder))
    refused(folder, glassgrad("train", "nanes"), "nanes", files(folder))
    refused(folder, glassgrad("train", "zebra"), "'zebra'; there are digits, mnist, names", files(folder))
    refused(folder, glassgrad("zebra"), "doctor, ", files(folder))


def test_resuming_what_is_no_run(folder: Path, glassgrad: Call) -> None:
    (folder / "empty").mkdir()
    before = files(folder)
    refused(folder, glassgrad("train", "names", "--resume", "none"), "no run at none: there is no such dir", before)
    refused(folder, glassgrad("train", "names", "--resume", "words.txt"), "no run at words.txt: it is a file", before)
    refused(folder, glassgrad("train", "names", "--resume", "empty"), "the directory has no config.toml", before)
    refused(folder, glassgrad("sample", "none"), "no run at none: there is no such file or directory", before)
    refused(folder, glassgrad("sample", "empty"), "the directory has no model.safetensors", before)
    refused(folder, glassgrad("sample", "words.txt"), "words.txt holds no weights; give", before)
    refused(folder, glassgrad("sample", "none", "-n", "0"), "-n", before)


@pytest.fixture
def finished(folder: Path, glassgrad: Call) -> Path:
    assert glassgrad("train", "names", *QUICK, "--run-dir", "run").code == 0
    return folder / "run"


def cut(path: Path, share: float) -> None:
    path.write_bytes(path.read_bytes()[: int(len(path.read_bytes()) * share)])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_files_of_a_run_cut_short(finished: Path, folder: Path, glassgrad: Call, share: float) -> None:
    cut(finished / "state.safetensors", share)
    cut(finished / "model.safetensors", share)
    before = files(folder)
    refused(folder, glassgrad("train", "names", "--resume", "run"), "run/state.safetensors is damaged", before)
    refused(folder, glassgrad("sample", "run"), "run/model.safetensors is damaged", before)


@pytest.mark.parametrize("more", ["", "hid", "hidden = ", "hidden = 40"])
def test_the_configuration_of_a_run_cut_short(finished: Path, folder: Path, glassgrad: Call, more: str) -> None:
    config = finished / "config.toml"
    config.write_text(config.read_text().partition("hidden = ")[0] + more)
    refused(folder, glassgrad("train", "names", "--resume", "run"), "config.toml", files(folder))


def test_files_of_a_run_in_each_others_place(finished: Path, folder: Path, glassgrad: Call) -> None:
    before = files(folder)
    refused(folder, glassgrad("sample", "run/state.safetensors"), "holds a checkpoint to resume from, which", before)
    shutil.copy(finished / "model.safetensors", finished / "state.safetensors")
    refused(folder, glassgrad("train", "names", "--resume", "run"), "is not a checkpoint that this version", before)


def test_a_model_of_another_version(finished: Path, folder: Path, glassgrad: Call) -> None:
    from glassgrad.train.kept.checkpoint import load_checkpoint, save_checkpoint

    path = finished / "model.safetensors"
    arrays, description = load_checkpoint(path)
    before = files(folder)
    save_checkpoint(path, arrays, {**description, "config": {**description["config"], "new": 1}})
    refused(folder, glassgrad("sample", "run"), "is intact, but this version of glassgrad does not", before)
    save_checkpoint(path, arrays, {**description, "alphabet": "ab"})
    refused(folder, glassgrad("sample", "run"), "is intact, but this version of glassgrad does not", before)


def test_a_run_cannot_become_another_one(finished: Path, folder: Path, glassgrad: Call) -> None:
    before = files(folder)
    changes = {
        ("--rate", "0.2"): "--rate of a run cannot change: it began with 0.1, given 0.2",
        ("--hidden", "5"): "--hidden of a run cannot change: it began with 4, given 5",
        ("--model", "bigram"): "--model of a run cannot change: it began with mlp, given bigram",
        ("--config", "x.toml"): "--resume and --config cannot be given together",
        ("--run-dir", "other"): "--resume and --run-dir cannot be given together",
        ("--log-every", "0"): "--log-every must be a whole number at least 1",
    }
    for options, message in changes.items():
        refused(folder, glassgrad("train", "names", "--resume", "run", *options), message, before)
    config = finished / "config.toml"
    config.write_text(config.read_text().replace("hidden = 4", "hidden = 5"))
    refused(folder, glassgrad("train", "names", "--resume", "run"), "hidden in run/config.toml of a run can", before)


def test_the_words_of_a_run_must_be_the_same(finished: Path, folder: Path, glassgrad: Call) -> None:
    words = (folder / "words.txt").read_text()
    (folder / "words.txt").rename(folder / "moved.txt")
    before = files(folder)
    refused(folder, glassgrad("train", "names", "--resume", "run"), "no such file", before)
    (folder / "words.txt").write_text(words.replace("anna", "anne"))
    result = glassgrad("train", "names", "--resume", "run")
    refused(folder, result, "does not hold the words with which this run began", files(folder))
    assert glassgrad("train", "names", "--resume", "run", "--data", "moved.txt").code == 0


def test_a_taken_run_directory(finished: Path, folder: Path, glassgrad: Call) -> None:
    before = files(folder)
    result = glassgrad("train", "names", *QUICK, "--run-dir", "run")
    refused(folder, result, "run already holds a run; continue it with --resume run", before)


def test_diverging_is_told_and_keeps_the_run(folder: Path, glassgrad: Call) -> None:
    result = glassgrad("train", "names", *QUICK, "--rate", "1e6", "--weight-decay", "1e6", "--run-dir", "run")
    assert result.code == 1
    assert re.fullmatch(r"error: the loss became (NaN|infinite) at step [^\n]+\n", result.err)
    assert "try a smaller learning rate than" in result.err


def test_a_loss_that_grows_and_stays_there_ends_the_run(folder: Path, glassgrad: Call) -> None:
    options = ("--data", "words.txt", "--rate", "60", "--steps", "400", "--log-every", "20", "--engine", "manual")
    result = glassgrad("train", "names", *options, "--drop-at", "0.12", "--run-dir", "run")
    assert result.code == 1
    assert "try a smaller learning rate than 60;" in result.err  # not the one that it has dropped to
    assert re.fullmatch(r"error: the loss is [\d.e+]+ at step \d+ and was 3\.\d+ at the first: [^\n]+\n", result.err)
    assert "the checkpoint of step 0 in run is untouched" in result.err
    last = json.loads((folder / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert 60 <= last["step"] < 400
    [listed] = json.loads(glassgrad("runs", "run", "--json").out)
    assert (listed["state"], listed["step"]) == ("failed", last["step"])


def test_weights_that_turn_out_useless_at_the_end(folder: Path, glassgrad: Call) -> None:
    result = glassgrad("train", "names", "--steps", "2", "--rate", "1e6", "--weight-decay", "1e6", "--run-dir", "run")
    assert result.code == 1
    assert re.fullmatch(
        r"error: after the last step the train loss is (nan|inf): [^\n]+ than 1e\+06"
        r" \(the run's checkpoint of step \d+ in run [^\n]+\n",
        result.err,
    )
    assert (folder / "run" / "state.safetensors").is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are a Unix matter")
@pytest.mark.parametrize("room", [0, 1_000])
def test_a_disk_without_room_for_the_run(
    folder: Path, process: Call, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # Python 3.11 would leave half a .pyc file beside the source

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    before = files(folder)
    started = process("train", "names", *QUICK, "--run-dir", "new/run", preexec_fn=limit)
    _, err = started.communicate(timeout=60)
    assert started.returncode == 2
    assert err == "error: cannot make the run directory new/run: File too large\n"
    assert files(folder) == before
