"""The count of lines of code leaves out docstrings, comments and blank lines, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import lines
from tools.sources import ROOT

SAMPLE = '''"""A docstring of the module
in two lines."""

import os  # counted once


# a comment alone
class Holder:
    """A class."""

    value: int = 1
    """What an attribute means."""

    def told(self) -> str:
        """Return a text."""
        return """first

        third"""


def called(
    first: int,

    # a comment inside of a call
    second: int,
) -> int: ...


async def waits() -> None:
    "One that waits."
    "A statement of text, which nobody documents."
    os.getpid(); os.getpid()
'''
CODE = """
import os
class Holder:
value: int = 1
def told
return first
(blank inside of a text)
third
def called(
first: int,
second: int,
) -> int: ...
async def waits
A statement of text
os.getpid()
""".strip().splitlines()


def test_a_sample_has_the_lines_that_were_counted_by_hand() -> None:
    assert lines.lines_of(SAMPLE) == len(CODE)


@pytest.mark.parametrize("text", ["", "\n\n", "# a comment\n", '"""A docstring."""\n'])
def test_files_without_code_have_no_lines(text: str) -> None:
    assert lines.lines_of(text) == 0


def test_packages_add_up(tmp_path: Path) -> None:
    for name, text in (("one/a.py", "x = 1\n"), ("one/b/c.py", "y = 2\nz = 3\n"), ("two.py", SAMPLE)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert lines.by_package(tmp_path) == {"one": 3, "two": len(CODE)}
    assert lines.by_package(tmp_path, 2) == {"one/a": 1, "one/b": 2, "two": len(CODE)}


def test_the_command_prints_rows_and_their_sum() -> None:
    command = [sys.executable, str(ROOT / "tools" / "lines.py"), str(ROOT / "src" / "glassgrad" / "errors")]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    counts = [int(line.split()[0].replace(",", "")) for line in said]
    assert len(counts) > 5
    assert sum(counts[:-1]) == counts[-1]
    assert counts[:-1] == sorted(counts[:-1], reverse=True)
