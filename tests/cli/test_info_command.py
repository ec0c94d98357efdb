"""`glassgrad info`: the facts for a bug report."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

import glassgrad as gg
from glassgrad.cli import bug


def test_facts_stand_under_their_headings(glassgrad):
    result = glassgrad("info")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    headings = [line for line in lines if not line.startswith(" ")]
    assert headings == ["versions", "machine", "arrays", "compiler", "cache", "variables"]
    assert f"glassgrad    {gg.__version__}" in "\n".join(lines)
    assert str(Path.home()) not in result.out or str(Path.home()) == "/"


def test_they_are_one_json_object(glassgrad, monkeypatch):
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", "")
    facts = json.loads(glassgrad("info", "--json").out)
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["compiler"]["native code"].startswith("LLVM ")
    assert facts["compiler"]["cores used"] >= 1
    assert list(facts["cache"]) == ["folder"]
    assert facts["cache"]["folder"].startswith("none: ")
    assert facts["variables"]["GLASSGRAD_CACHE_DIR"] == ""


def test_a_blas_that_is_missing_is_told(glassgrad, monkeypatch):
    from glassgrad.compile.llvm.module.blas import blas

    monkeypatch.setenv("GLASSGRAD_BLAS", "none_such")
    blas.cache_clear()
    try:
        facts = json.loads(glassgrad("info", "--json").out)
    finally:
        blas.cache_clear()
    assert "none_such" in facts["compiler"]["matrix products"]


def test_a_report_has_room_for_the_program_and_brings_the_facts(glassgrad):
    result = glassgrad("info", "--bug")
    assert (result.code, result.err) == (0, "")
    headings = [line for line in result.out.splitlines() if line.startswith("### ")]
    assert headings == [
        "### The shortest program that shows it", "### What happens, and what you expected", "### Checks", "### Facts",
    ]  # fmt: skip  # a table
    assert f"  glassgrad  {gg.__version__}" in result.out
    assert result.out.count("```") == 8
    checks = result.out.partition("### Checks")[2].partition("### Facts")[0]
    found = [line.rpartition("  ")[::2] for line in checks.splitlines() if "  " in line]
    assert [name.strip() for name, _ in found] == list(bug.CHECKS)
    assert {result for _, result in found} == {"works"}


def test_a_report_names_no_user(glassgrad, monkeypatch, tmp_path):
    home = tmp_path / "jane.doe"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", str(home / "cache"))
    out = glassgrad("info", "--bug").out
    assert "jane.doe" not in out
    assert "GLASSGRAD_CACHE_DIR  ~" in out


def test_a_check_that_fails_says_how():
    def wrong_kind():
        raise ValueError("first line\nsecond line")

    def warned():
        warnings.warn("no LLVM here\nNext: install it", stacklevel=1)
        return "works"

    assert bug.outcome(wrong_kind) == "fails: ValueError: first line"
    assert bug.outcome(warned) == "works; no LLVM here"
    assert bug.outcome(lambda: bug._is(2.0, 3.0)) == "gives 2.0 instead of 3.0"


def test_a_missing_compiler_is_said_and_ends_nothing(glassgrad, monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    out = glassgrad("info", "--bug").out
    assert "native code  none: " in out
    assert "### Facts" in out
