"""The pieces of `make mutants` name what is there, and what is written down about mutants fits the source."""

from __future__ import annotations

import tomllib

import pytest

from tools import mutants
from tools.mutants import PACKAGE, PIECES, ROOT


def source_of(file: str) -> str:
    return (ROOT / PACKAGE / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_names_what_is_there(name: str) -> None:
    piece = PIECES[name]
    base = ROOT / PACKAGE
    assert all(any(base.glob(pattern)) for pattern in piece.sources)
    tests = [one for one in piece.tests if one.endswith(".py")]
    assert tests
    assert all((ROOT / one).is_file() for one in tests)
    assert mutants.planted(name), "a mistake that shows that the tests of the piece run"


def test_every_planted_mistake_is_in_a_file_of_its_piece_and_is_python() -> None:
    entries = tomllib.loads(mutants.PLANTED.read_text(encoding="utf-8"))["mutant"]
    assert {entry["piece"] for entry in entries} == set(PIECES)
    for name, piece in PIECES.items():
        for mutant in mutants.planted(name):
            assert mutant.file in mutants.files_of(piece)
            assert mutant.text() != mutant.source
            compile(mutant.text() or "", mutant.file, "exec")


def test_every_explanation_fits_a_line_and_says_why() -> None:
    for entry in mutants.explained():
        assert set(entry) == {"file", "was", "becomes", "reason"}
        assert entry["was"] in " ".join(source_of(entry["file"]).split()), f"nothing to explain: {entry}"
        assert entry["was"] != entry["becomes"]
        assert len(entry["reason"]) > 20


def test_which_mutants_are_made() -> None:
    pytest.importorskip("cosmic_ray")
    told = ("heappush(heap,", "return result", "MUTATIONS.latest", "if parent is None")
    found = mutants.mutants_of("engine/plain_walk.py")
    lines = found[0].source.splitlines()
    made = {mutant.lines() for mutant in found if any(one in lines[mutant.line - 1] for one in told)}
    assert ("heappush(heap, (-parent.seq, parent))", "pass") in made
    assert ("return result", "return None") in made
    assert ("elif node.seq < MUTATIONS.latest:", "elif node.seq <= MUTATIONS.latest:") in made
    assert ("if parent is None or c is None:", "if parent is None and c is None:") in made
