"""Random programs over expanded, empty and reversed shapes, each group in its own process: an abort is a failure.

`hostile.py` draws and compares them. It compiles with `strict=True`, so nothing may be refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("hostile.py")


def findings(backend, start, count):
    """Return what a child process found wrong with these programs."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), backend, str(start), str(count)],
        capture_output=True,
        text=True,
        timeout=1800,
        env={**os.environ, "GLASSGRAD_CACHE_DIR": ""},
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = [line for line in lines if "problem" in line]
    if done.returncode:
        found.append({**lines[-1], "problem": f"the process ended with {done.returncode}", "text": done.stderr[-2000:]})
    assert found or len(lines) == count
    return found


@pytest.mark.parametrize("start", [0, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_programs_over_hostile_shapes(backend, start):
    assert findings(backend, start, 60 if start else 30) == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10_000, 20_000, 500))
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_many_programs_over_hostile_shapes(backend, start):
    assert findings(backend, start, 500) == []


def test_a_process_that_ends_is_a_finding(tmp_path, monkeypatch):
    script = tmp_path / "ends.py"
    script.write_text("import os\nprint('{\"seed\": 7}', flush=True)\nos.abort()\n", encoding="utf-8")
    monkeypatch.setitem(globals(), "SCRIPT", script)
    (found,) = findings("llvm", 0, 1)
    assert found["seed"] == 7
    assert "ended with" in found["problem"]
