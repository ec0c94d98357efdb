"""The output of a type checker for programs that use the library: a correct one, and mistakes that it has to find."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_MODULE = re.compile(r"\b[a-z_]\w*\.(?=\w)")  # glassgrad.engine.tensor.Tensor -> Tensor


def mypy(*arguments: str) -> list[str]:
    """Return what mypy says of a user's files, line by line."""
    command = [sys.executable, "-m", "mypy", "--strict", "--hide-error-context", "--no-error-summary"]
    own = ["--cache-dir", str(ROOT / ".mypy_cache" / "scripts"), "--config-file", ""]
    done = subprocess.run([*command, *own, *arguments], capture_output=True, text=True, check=False, cwd=ROOT / "src")
    assert not done.stderr
    return done.stdout.splitlines()


def expected(file: Path) -> list[str]:
    """Return the marks of a file: `LINE error CODE` and `LINE is TYPE`."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        mark = re.search(r"  # (error|is): (.*)$", line)
        if mark:
            found.append(f"{number} {mark[1]} {mark[2]}")
    return found


def told(lines: list[str]) -> list[str]:
    """Return mypy's errors and revealed types in the same form."""
    found = []
    for line in lines:
        error = re.fullmatch(r".*?wrong\.py:(\d+): error: .*\[([a-z-]+)\]", line)
        revealed = re.fullmatch(r'.*?wrong\.py:(\d+): note: Revealed type is "(.*)"', line)
        if error:
            found.append(f"{error[1]} error {error[2]}")
        elif revealed:
            found.append(f"{revealed[1]} is {_MODULE.sub('', revealed[2])}")
    return sorted(dict.fromkeys(found), key=lambda one: int(one.partition(" ")[0]))


def test_a_training_script_is_clean_and_mistakes_are_found() -> None:
    # One run: reading the library's stubs takes most of the time.
    lines = mypy(str(HERE / "training.py"), str(HERE / "wrong.py"))
    assert [line for line in lines if "training.py" in line] == []
    assert told(lines) == expected(HERE / "wrong.py")


def test_the_marks_are_read() -> None:
    assert len(expected(HERE / "wrong.py")) > 30
    lines = [
        'a/wrong.py:3: note: Revealed type is "glassgrad.engine.tensor.Tensor"',
        "a/wrong.py:4: error: no  [call-arg]",
    ]
    assert told(lines) == ["3 is Tensor", "4 error call-arg"]


@pytest.mark.slow
def test_stubtest_finds_no_difference() -> None:
    names = ("nn.functional", "linalg", "fft", "special", "func", "data")
    modules = [f"glassgrad.{name}" for name in names]
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "--ignore-missing-stub", *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT / "src")
    # NumPy's names are taken by ops and stand in no signature.
    differs = [line for line in done.stdout.splitlines() if not re.search('have parameter "(axis|keepdims)"$', line)]
    assert differs == []
