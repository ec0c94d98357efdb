"""Files and functions stay short: read from the source."""

from __future__ import annotations

from pathlib import Path

from tools import sources
from tools.sources import ROOT

MAX_FILE = 500
MAX_FUNCTION = 60
FOLDERS = ("src", "tests", "benchmarks", "examples", "tools", "docs")


def python_files() -> list[Path]:
    return [file for folder in FOLDERS for file in sources.python_files(folder)]


def test_files_are_short() -> None:
    lengths = {file.relative_to(ROOT): len(sources.text_of(file).splitlines()) for file in python_files()}
    assert len(lengths) > 10
    long = {str(file): length for file, length in lengths.items() if length > MAX_FILE}
    assert not long, f"over {MAX_FILE} lines, split them: {long}"


def test_functions_are_short() -> None:
    long = [
        f"{file.relative_to(ROOT)}:{one.line} {one.name} has {one.length} lines"
        for file in python_files()
        for one in sources.source(file).functions
        if one.length > MAX_FUNCTION
    ]
    assert not long, f"over {MAX_FUNCTION} lines:\n" + "\n".join(long)


def test_a_long_function_is_seen() -> None:
    text = "class A:\n    def f():\n        '''Two\n        lines.'''\n" + "        x = 1\n" * 61
    assert sources.parsed(text).functions == [sources.Function("f", 2, 62)]
