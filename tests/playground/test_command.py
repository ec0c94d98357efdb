"""The command `glassgrad playground`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from glassgrad.cli import run
from glassgrad.lessons.playground import saving


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    command = [sys.executable, "-m", "glassgrad", "playground", str(file), "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "HOME": str(tmp_path)}
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        host, _, path = address.removeprefix("http://").partition("/")
        with contextlib.closing(HTTPConnection(host, timeout=30)) as connection:
            connection.request("GET", f"/{path}")
            assert connection.getresponse().status == 303
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--example", "nothing", "--no-browser"], "there is no example 'nothing'"),
        (["x.py", "--example", "xor"], "both are the text to begin with"),
        (["--export", "page.pdf"], "a program is saved as py, ipynb or html, given 'pdf'"),
        (["--port", "-1"], "port"),
    ],
)
def test_what_does_not_fit_is_told(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["playground", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_an_example_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not (saving.PAGE / "playground.html").is_file():
        assert run(["playground", "--example", "xor", "--export", str(tmp_path / "xor.html")]) == 2
        assert "playground.html" in capsys.readouterr().err
        return
    path = tmp_path / "product.html"
    assert run(["playground", "--example", "product_and_sine", "--export", str(path)]) == 0
    page = path.read_text()
    assert '<script type="application/json" id="data">' in page
    assert "default-src 'none'" in page


def test_the_server_starts_without_the_engine() -> None:
    """A process of its own loads the engine, while the browser loads the page."""
    program = (
        "import sys\n"
        "from glassgrad.cli.app import command\n"
        "command('playground')\n"
        "from glassgrad.lessons.playground.server import Server\n"
        "with Server() as server:\n"
        "    server.state()\n"
        "print(*[name for name in ('numpy', 'glassgrad.engine', 'glassgrad.tasks') if name in sys.modules])\n"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert process.stdout.split() == []
