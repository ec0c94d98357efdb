"""The script in examples/training does what its docstring promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "training" / "spirals.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def test_it_trains_keeps_its_run_and_says_what_is_misspelt(tmp_path: Path) -> None:
    result = run("--epochs", "40", "--run-dir", str(tmp_path / "run"), "--progress", "plain", "--engine", "eager")
    assert result.returncode == 0, result.stderr
    found = re.search(r"after 800 steps (\d+\.\d)% of the points held out are right", result.stdout)
    assert found
    assert float(found[1]) > 90
    assert "hidden = 32" in (tmp_path / "run" / "config.toml").read_text()
    wrong = run("--hiden", "3")
    assert wrong.returncode == 1
    assert wrong.stderr == "error: unknown option --hiden; did you mean '--hidden'?\n"
