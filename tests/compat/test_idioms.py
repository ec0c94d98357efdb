"""Short scripts in everyday PyTorch print the same under both libraries."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from glassgrad import compat

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("[!_]*.py"))


def printed(script: Path) -> str:
    """What a script prints; PyTorch's name for a shape left out, which is a tuple here."""
    out = io.StringIO()
    sys.modules.pop("_shared", None)  # it imports torch, too
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(script), run_name="__main__")
    text = re.sub(r"torch\.Size\(\[(\d+)\]\)", r"(\1,)", out.getvalue())
    return re.sub(r"torch\.Size\(\[([\d, ]*)\]\)", r"(\1)", text)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_prints_the_same(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(script.parent)
    torch = pytest.importorskip("torch", reason="PyTorch is the other library")
    with torch.compiler.set_stance("force_eager"):  # its compiler takes a minute, and prints nothing else
        expected = printed(script)
    with compat.as_torch():
        found = printed(script)
    assert expected.strip()
    assert found == expected


def test_a_script_and_the_module_beside_it_run_from_the_command_line() -> None:
    command = [sys.executable, "-m", "glassgrad.compat", str(SCRIPTS[0].with_name("learning_to_learn.py"))]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip()


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 12
