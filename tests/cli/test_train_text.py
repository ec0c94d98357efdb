"""`glassgrad train text`, and sampling from models of text and of whole words, from a user's view."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad import cli

Call = Callable[..., Any]
SMALL = ("--context", "12", "--width", "16", "--layers", "1", "--heads", "2")
QUICK = (*SMALL, "--engine", "eager", "--steps", "40", "--eval-every", "20", "--log-every", "10")


@pytest.fixture
def text(folder: Path) -> str:
    """A generated text of six words."""
    content = " ".join(np.random.default_rng(0).choice(["über", "the", "red", "hat", "a", "rat\n"], 400))
    (folder / "text.txt").write_text(content, encoding="utf-8")
    return content


@pytest.fixture
def trained(text: str, folder: Path, glassgrad: Call) -> Path:
    assert glassgrad("train", "text", "--data", "text.txt", *QUICK, "--run-dir", "run").code == 0
    return folder / "run"


@pytest.mark.usefixtures("real_pictures")
def test_a_text_from_beginning_to_end(text: str, folder: Path, glassgrad: Call) -> None:
    result = glassgrad("train", "text", "--data", "text.txt", *QUICK, "--rate", "0.01")
    assert (result.code, result.err) == (0, "")
    assert "\x1b" not in result.out
    assert re.search(r"^characters [\d,]+ training / \d+ validation$", result.out, re.MULTILINE)
    assert re.search(rf"^model      gpt, [\d,]+ parameters, {len(set(text))} tokens$", result.out, re.MULTILINE)
    assert len(re.findall(r"^step +\d+ / 40   loss \d\.\d{4}   validation \d\.\d{4}", result.out, re.MULTILINE)) == 2
    run = folder / "runs" / "text-001"
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert records[-1]["validation_loss"] < np.log(len(set(text))) - 0.3
    config = tomllib.loads((run / "config.toml").read_text())
    assert (config["task"], config["context"], config["data"]) == ("text", 12, str(folder / "text.txt"))
    printed = result.out.split("validation loss")[1].split("saved")[0]
    assert len(printed) > 800  # two texts of 400 characters
    assert set(printed.split("\n", 1)[1]) <= set(text) | {"\n"}
    (folder / "other.txt").write_text(text.replace("rat", "tar"))
    other = glassgrad("train", "text", "--resume", run, "--data", "other.txt")
    assert (other.code, other.out) == (2, "")
    assert "other.txt does not hold the text with which this run began" in other.err
    assert glassgrad("train", "text", "--resume", run).code == 0


@pytest.mark.slow
def test_texts_drawn_again(trained: Path, glassgrad: Call, text: str) -> None:
    def drawn(*options: object) -> str:
        result = glassgrad("sample", "run", *options)
        assert (result.code, result.err) == (0, "")
        return result.out[:-1]

    whole = drawn("--length", "60")
    assert len(whole) == 60
    assert set(whole) <= set(text)
    assert drawn("--length", "60") == whole
    assert drawn("--length", "90").startswith(whole)
    assert drawn("--length", "60", "--seed", "2") != whole
    assert drawn("--length", "9", "--prompt", "the red").startswith("the red")
    assert len(drawn("--length", "9", "--prompt", "u\u0308ber")) == 13  # the accent is put together
    greedy = drawn("--length", "40", "--temperature", "0")
    assert greedy == drawn("--length", "40", "--temperature", "0", "--seed", "9")
    assert greedy == drawn("--length", "40", "--top-k", "1") == drawn("--length", "40", "--top-p", "1e-9")
    several = drawn("-n", "3", "--length", "20").split("\n" + "-" * 40 + "\n")
    assert [len(one) for one in several] == [20] * 3
    assert len(set(several)) == 3


@pytest.mark.parametrize("model", ["rnn", "gru", "lstm", "gpt"])
def test_names_of_whole_word_models(folder: Path, glassgrad: Call, model: str) -> None:
    size = ("--embedding", "8", "--engine", "eager", "--steps", "30", "--log-every", "5", "--rate", "0.01")
    result = glassgrad("train", "names", "--data", "words.txt", "--model", model, *size, "--run-dir", "run")
    assert (result.code, result.err) == (0, "")
    assert "examples   16 training / 2 validation / 2 test words" in result.out
    assert len(re.findall(r"^  \S*$", result.out, re.MULTILINE)) == 20
    losses = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    assert losses[-1]["train_loss"] < losses[0]["loss"] - 0.1
    drawn = glassgrad("sample", "run", "-n", "6", "--prompt", "an", "--temperature", "0.7", "--top-k", "5")
    assert (drawn.code, drawn.err) == (0, "")
    words = drawn.out.splitlines()
    assert len(words) == 6
    assert all(word.startswith("an") for word in words)
    assert glassgrad("sample", "run").out.count("\n") == 20
    config = tomllib.loads((folder / "run" / "config.toml").read_text())
    assert "momentum" not in config
    assert glassgrad("train", "names", "--config", "run/config.toml", "--run-dir", "again").code == 0
    first, second = ((folder / name / "model.safetensors").read_bytes() for name in ("run", "again"))
    assert first == second


def refused(folder: Path, result: Any, message: str, before: list[str]) -> None:
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", result.err), result.err
    assert message in result.err
    assert sorted(str(entry) for entry in folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no text given, and none comes with glassgrad: give a UTF-8 file with --data"),
        (("--data", "none.txt"), "no such file: none.txt"),
        (("--data", "texts.txt"), "did you mean text.txt?"),
        (("--data", "."), ". is a directory; expected a text file"),
        (("--data", "empty.txt"), "empty.txt holds no text"),
        (("--data", "binary.txt"), "binary.txt is not a text file (a zero byte in line 2); expected a text file"),
        (("--data", "latin.txt"), "latin.txt is not UTF-8 (byte 0xe9 in line 1)"),
        (("--data", "many.txt"), "many.txt has 10,001 different characters, more than the 10,000"),
        (("--data", "text.txt", "--context", "9000"), "at least 90,010 are needed for a context of 9,000"),
        (("--data", "text.txt", "--context", "0"), "--context must be a whole number at least 1"),
        (("--data", "text.txt", "--heads", "3"), "--heads must divide --width (128), given 3"),
        (("--data", "text.txt", "--width", "30"), "--heads must divide --width (30), given 4"),
        (("--data", "text.txt", "--rate", "-1"), "--rate must be a number above 0 and at most 1e+06, given -1"),
        (("--data", "text.txt", "--dropout", "1"), "--dropout must be a number at least 0 and at most 0.99"),
        (("--data", "text.txt", "--beta2", "1"), "--beta2 must be a number at least 0 and at most"),
        (("--data", "text.txt", "--clip", "nan"), "--clip must be a number at least 0"),
        (("--data", "text.txt", "--engine", "manual"), "--engine must be one of eager, compiled, given 'manual'"),
        (("--data", "text.txt", "--model", "gtp"), "--model must be one of gpt, given 'gtp'; did you mean 'gpt'?"),
        (("--data", "text.txt", "--stpes", "3"), "--steps"),
        (("--config", "wrong.toml"), "unknown key 'widht' in wrong.toml; did you mean 'width'?"),
        (("--config", "heads.toml"), "heads in heads.toml must divide --width (128), given 5"),
        (("--data", "text.txt", "--resume", "none"), "no run at none"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_used_is_one_line_and_makes_no_file(
    text: str, folder: Path, glassgrad: Call, options: tuple[str, ...], message: str
) -> None:
    (folder / "empty.txt").write_bytes(b"")
    (folder / "binary.txt").write_bytes(b"text\n\0\1\2")
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    (folder / "many.txt").write_text("".join(map(chr, range(0x4E00, 0x4E00 + 10_001))))
    (folder / "wrong.toml").write_text("widht = 3\n")
    (folder / "heads.toml").write_text("heads = 5\ndata = 'text.txt'\n")
    before = sorted(str(entry) for entry in folder.rglob("*"))
    refused(folder, glassgrad("train", "text", *options), message, before)
    if "--resume" not in options:
        refused(folder, glassgrad("train", "text", *options, "--run-dir", "new/run"), message, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "lstm", "--context", "4"), "--context has no effect on the model 'lstm'"),
        (("--model", "gpt", "--hidden", "4"), "--hidden has no effect on the model 'gpt'"),
        (("--model", "gpt", "--heads", "5"), "--heads must divide --embedding (64), given 5"),
        (("--layers", "2"), "--layers has no effect on the model 'mlp'"),
        (("--clip", "2"), "--clip has no effect on the model 'mlp'"),
        (
            ("--model", "gru", "--engine", "manual"),
            "--engine 'manual' has no hand-written backward pass for the model 'gru'",
        ),
        (("--model", "rnn", "--momentum", "0.9"), "--momentum has no effect on the model 'rnn'"),
        (("--model", "lsmt"), "did you mean 'lstm'?"),
        (("--model", "gpt", "--dropout", "-0.1"), "--dropout must be a number at least 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_do_not_go_with_a_model_of_names(
    folder: Path, glassgrad: Call, options: tuple[str, ...], message: str
) -> None:
    before = sorted(str(entry) for entry in folder.rglob("*"))
    refused(folder, glassgrad("train", "names", "--data", "words.txt", *options), message, before)


def test_drawing_with_values_that_cannot_be(trained: Path, folder: Path, glassgrad: Call) -> None:
    before = sorted(str(entry) for entry in folder.rglob("*"))
    for options, message in {
        ("--temperature", "-0.5"): "--temperature must be a number at least 0 and at most 1e+06, given -0.5",
        ("--temperature", "nan"): "--temperature must be a number at least 0 and at most 1e+06, given nan",
        ("--temperature", "hot"): "--temperature",
        ("--top-k", "-1"): "--top-k must be a whole number at least 0",
        ("--top-p", "0"): "--top-p must be a number above 0 and at most 1, given 0",
        ("--top-p", "1.5"): "--top-p must be a number above 0 and at most 1, given 1.5",
        ("--length", "0"): "--length must be a whole number at least 1",
        ("--seed", "-1"): "--seed must be a whole number at least 0",
        ("--prompt", "Zebra"): "--prompt has 'Z', which the model has never seen; it knows",
        ("-n", "0"): "-n",
    }.items():
        refused(folder, glassgrad("sample", "run", *options), message, before)
    assert glassgrad("train", "names", "--data", "words.txt", "--model", "bigram", "--steps", "5").code == 0
    before = sorted(str(entry) for entry in folder.rglob("*"))
    result = glassgrad("sample", "runs/names-001", "--length", "5")
    refused(folder, result, "--length has no effect on a model of names", before)


def test_help_names_every_hyperparameter(glassgrad: Call) -> None:
    from glassgrad.tasks.drawing import SampleOptions
    from glassgrad.tasks.text import TextConfig
    from glassgrad.train.config import flag, rules

    text = glassgrad("train", "text", "--help").out
    assert [key for key in rules(TextConfig) if flag(key) not in text] == []
    text = glassgrad("sample", "--help").out
    assert [key for key in rules(SampleOptions) if flag(key) not in text] == []


def test_ctrl_c_while_a_text_is_printed_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(run: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("glassgrad.tasks.sample.load_model", interrupted)
    assert cli.run(["sample", "somewhere"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")
