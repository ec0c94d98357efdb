"""A separate working directory for every test of the command line, and a way to call it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from glassgrad.cli import run
from glassgrad.tasks import runner

WORDS = "anna bert carla dora emil fritz gerd hanna ida jonas karl lena mona nora otto paula quirin rosa sven tina"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def words() -> str:
    """A small word list, one per line."""
    return WORDS.replace(" ", "\n") + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> Path:
    """An empty working directory with a small word list in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text(words, encoding="utf-8")
    return tmp_path


@pytest.fixture
def real_pictures() -> None:
    """To be asked for where the picture at the end of a run is part of what is tested."""


@pytest.fixture(autouse=True)
def _blank_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out drawing the loss, which takes longer than training in most of these tests."""
    if "real_pictures" not in request.fixturenames:
        monkeypatch.setattr(runner, "draw_loss", lambda _metrics, picture, *_rest: picture.write_bytes(b""))


@pytest.fixture(autouse=True)
def _no_native_code(numpy_target: None) -> None:
    """See `numpy_target`; commands in a process of their own, and `tests/tasks`, train in native code."""


@pytest.fixture
def glassgrad(folder: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Call the command line in this process."""

    def call(*arguments: object) -> Result:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return call


@pytest.fixture
def process(folder: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start the command line as a process of its own; it is ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object, **options: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "glassgrad", *map(str, arguments)]
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": folder, **options}
        started.append(subprocess.Popen(command, env={**os.environ, "PYTHONUNBUFFERED": "1"}, **settings))
        return started[-1]

    yield start
    for entry in started:
        entry.kill()
        entry.communicate()
