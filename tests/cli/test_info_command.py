"""`glassgrad info`: the facts for a bug report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import glassgrad as gg


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
