"""`glassgrad train digits` and `glassgrad train mnist`, from a user's view."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import struct
import threading
import tomllib
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad.data import download

Call = Callable[..., Any]
QUICK = ("--hidden", "8", "--engine", "manual")


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def write_mnist(folder: Path, counts: dict[str, int]) -> None:
    """Made-up images in which the brightest column tells the class."""
    folder.mkdir()
    for part, count in counts.items():
        labels = np.arange(count, dtype=np.uint8) % 10
        images = np.zeros((count, 12, 12), np.uint8)
        images[np.arange(count), :, labels] = 255
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            (folder / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(header + array.tobytes()))


@pytest.mark.usefixtures("real_pictures")
def test_digits_from_beginning_to_end_and_again(folder: Path, glassgrad: Call) -> None:
    result = glassgrad("train", "digits", "--epochs", "3", "--engine", "eager", "--hidden", "32")
    assert (result.code, result.err) == (0, "")
    assert "examples   1,437 training / 360 test" in result.out
    assert (
        len(re.findall(r"^step +\d+ / 66   loss \d\.\d{4}   test \d\.\d{4} \(\d\d\.\d\d%\)", result.out, re.MULTILINE))
        == 3
    )
    shown = re.search(r"test accuracy (\d\d\.\d\d)%", result.out)
    run = folder / "runs" / "digits-001"
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
    final = records(run)[-1]
    assert shown
    assert shown[1] == f"{100 * final['test_accuracy']:.2f}"
    assert final["test_accuracy"] > 0.5
    config = tomllib.loads((run / "config.toml").read_text())
    assert (config["task"], config["epochs"]) == ("digits", 3)
    assert "channels" not in config

    refused = glassgrad("sample", run)
    assert (refused.code, refused.out) == (2, "")
    again = glassgrad("train", "digits", "--resume", run, "--engine", "manual")
    assert again.code == 0
    assert "going on at step 66" in again.out
    assert records(run)[-1]["test_loss"] == pytest.approx(final["test_loss"], abs=1e-5)
    changed = glassgrad("train", "digits", "--resume", run, "--rate", "0.5")
    assert (changed.code, changed.out) == (2, "")
    assert "--rate of a run cannot change" in changed.err


def test_mnist_from_a_folder(folder: Path, glassgrad: Call) -> None:
    write_mnist(folder / "data", {"t10k": 200})
    options = ("--batch", "20", "--epochs", "12", "--layers", "1", "--shift", "0", "--rate", "0.01")
    result = glassgrad("train", "mnist", "--data", "data", *QUICK, *options, "--run-dir", "run")
    assert (result.code, result.err) == (0, "")
    assert "examples   180 training / 20 test" in result.out
    assert "images     12 x 12: data" in result.out
    assert "test accuracy 100.00%" in result.out

    write_mnist(folder / "other", {"t10k": 210})
    other = glassgrad("train", "mnist", "--resume", "run", "--data", "other")
    assert (other.code, other.out) == (2, "")
    assert "other does not hold the images with which this run began" in other.err
    assert glassgrad("train", "mnist", "--resume", "run").code == 0


def test_mnist_is_fetched_once(folder: Path, glassgrad: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mnist(folder / "mirror", {"train": 100, "t10k": 20})
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (folder / "mirror").iterdir()}
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, form: str, *arguments: Any) -> None:
            asked.append(arguments[0])

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder / "mirror")))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setattr(download, "MNIST_FILES", sums)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv(download.MIRRORS_VARIABLE, f"http://127.0.0.1:{server.server_address[1]}/")
    try:
        for name in ("first", "second"):
            result = glassgrad("train", "mnist", *QUICK, "--batch", "20", "--epochs", "1", "--run-dir", name)
            assert (result.code, result.err) == (0, "")
            assert "examples   100 training / 20 test" in result.out
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert len(asked) == 4
    assert sorted(path.name for path in (folder / "cache" / "glassgrad" / "mnist").iterdir()) == sorted(sums)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("mnist", "--data", "missing"), "no MNIST in missing: there is no such directory"),
        (("mnist", "--data", "words.txt"), "no MNIST in words.txt: it is a file"),
        (("mnist",), "without a network, put MNIST's four files into a folder"),
        (("digits", "--batch", "5000"), "batch must be at most the 1,437 training images, given 5,000"),
        (("digits", "--channels", "4"), "--channels has no effect on the model 'mlp'"),
        (("digits", "--model", "cnn", "--layers", "4"), "--layers has no effect on the model 'cnn'"),
        (("digits", "--engine", "jit"), "--engine must be one of eager, compiled, manual, given 'jit'"),
        (("names", "--engine", "manuel"), "did you mean 'manual'?"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_makes_no_file(
    folder: Path, glassgrad: Call, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], message: str
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv(download.MIRRORS_VARIABLE, "http://127.0.0.1:9/")
    result = glassgrad("train", *options)
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", result.err), result.err
    assert message in result.err
    assert [entry.name for entry in folder.iterdir()] == ["words.txt"]


def test_help_names_every_hyperparameter(glassgrad: Call) -> None:
    from glassgrad.tasks.images import ImagesConfig, MnistConfig
    from glassgrad.train.config import flag, rules

    for command, config in (("digits", ImagesConfig), ("mnist", MnistConfig)):
        text = glassgrad("train", command, "--help").out
        assert [key for key in rules(config) if flag(key) not in text] == []
