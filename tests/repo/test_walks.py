"""The walks of CONTRIBUTING ("Find your way in an hour") lead to files and names that exist."""

from __future__ import annotations

import re

import pytest

from tools.sources import ROOT

SOURCE = ROOT / "src" / "glassgrad"
MOST = 8  # places of a walk


def walks() -> dict[str, list[list[str]]]:
    """Return the places of each walk: what stands in backquotes in the first cell of a row."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    part = text.partition("## Find your way in an hour")[2].partition("\n## ")[0]
    found = {}
    for title, _, body in (one.partition("\n") for one in part.split("\n### ")[1:]):
        rows = re.findall(r"^\| (`[^|]*) \|[^|]*\?[^|]*\|$", body, re.MULTILINE)
        found[title] = [re.findall(r"`([^`]+)`", row) for row in rows]
    return found


def test_there_are_five_short_walks() -> None:
    assert len(walks()) == 5
    assert all(4 <= len(rows) <= MOST for rows in walks().values()), {name: len(rows) for name, rows in walks().items()}


@pytest.mark.parametrize("title", walks())
def test_a_walk_leads_to_what_exists(title: str) -> None:
    for place, *others in walks()[title]:
        assert (SOURCE / place).exists(), place
        for other in others:
            if "/" in other:
                assert (SOURCE / other).exists(), other
            else:
                name = re.escape(other.rpartition(".")[2])
                text = (SOURCE / place).read_text(encoding="utf-8")
                assert re.search(rf"^ *(?:(?:class|def) {name}\b|{name}\b.*[=:])", text, re.MULTILINE), (place, other)
