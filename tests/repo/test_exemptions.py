"""Every suppressed check (linter, formatter, type checker, skipped test) has a reason beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.sources import ROOT, comments, python_files, text_of

FOLDERS = ("src", "tests", "tools", "benchmarks", "docs", "examples")
SILENCE = re.compile(r"#\s*(noqa|type:\s*ignore|fmt:\s*(?:skip|off)|pragma|pyright|pylint)\b")
WITH_REASON = re.compile(r"#\s*(noqa: [A-Z0-9, ]+?|type: ignore\[[a-z, -]+\]|fmt: skip)\s+(-{1,2}|#)\s*[\w`].{2,}")
SKIPS = re.compile(
    r"pytest\.(?:importorskip\(\"[\w.]+\"\)|skip\(\)|mark\.(?:skip|xfail)\b(?!if)(?!\(reason=|\([^)]*reason=))"
)


def exemptions(text: str) -> list[tuple[int, str]]:
    """Return the comments of a source that silence something, each with its line."""
    if not SILENCE.search(text):
        return []  # most files need not be taken apart
    return [(line, comment) for line, comment in comments(text) if SILENCE.search(comment)]


def texts_of_tests() -> Iterator[tuple[str, str]]:
    """Yield the names and texts of tests, without the examples below."""
    for file in python_files("tests"):
        if file != Path(__file__):
            yield str(file.relative_to(ROOT)), text_of(file)


@pytest.mark.parametrize("folder", FOLDERS)
def test_exemptions_say_why(folder: str) -> None:
    bare = []
    for file in (*python_files(folder), *sorted((ROOT / folder).rglob("*.pyi"))):
        for line, comment in exemptions(text_of(file)):
            if not WITH_REASON.search(comment):
                bare.append(f"{file.relative_to(ROOT)}:{line}: {comment}")
    assert bare == []


def test_tests_hold_no_exemption_from_types_which_nobody_checks_there() -> None:
    idle = [
        f"{name}:{line}" for name, text in texts_of_tests() for line, comment in exemptions(text) if "type:" in comment
    ]
    assert idle == []


def test_tests_that_skip_say_why() -> None:
    silent = [f"{name}: {found.group()}" for name, text in texts_of_tests() for found in SKIPS.finditer(text)]
    assert silent == []


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ("# noqa: N801", False),
        ("# noqa", False),
        ("# type: ignore[misc]", False),
        ("# type: ignore", False),
        ("# fmt: off", False),
        ("# noqa: N801 - PyTorch's name", True),
        ("# type: ignore[misc, arg-type]  # set when tracing", True),
        ("# fmt: skip  # a table", True),
    ],
)
def test_the_patterns_tell_a_reason_from_none(comment: str, reason: bool) -> None:
    assert exemptions(f"x = 1  {comment}\n")
    assert bool(WITH_REASON.search(comment)) == reason


def test_tests_replace_no_private_names() -> None:
    """What a test has to replace is an argument, an attribute with a public name, or an entry of `stats`."""
    named = r"[\"'](?:[\w.]*\.)?_[a-zA-Z]\w*[\"']"
    replaced = re.compile(r"\b(?:setattr|setitem|patch(?:\.object)?)\(\s*(?:[^(),\"']+,\s*)?" + named)
    found = [f"{name}: {one.group()}" for name, text in texts_of_tests() for one in replaced.finditer(text)]
    assert found == []
    assert replaced.search('monkeypatch.setattr(\n    amp, "_has_units", True)')
    assert replaced.search('setattr("glassgrad.amp._has_units", True)')
    assert not replaced.search('setattr(amp, "units", _true)')
