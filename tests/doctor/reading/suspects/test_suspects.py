"""Each suspect shows its line in a snippet, and none in a snippet where the line says what is meant."""

from __future__ import annotations

import pytest

from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.source import Script, parsed
from glassgrad.doctor.reading.suspects import SUSPECTS
from glassgrad.doctor.reading.suspects.form import suspicions
from tests.doctor.reading.case import HEADS
from tests.doctor.reading.suspects import CASES
from tests.doctor.reading.test_reading_rules import OF_ALL_KINDS
from tests.doctor.world.practices import PRACTICES
from tests.doctor.world.unusual import UNUSUAL

BOTH = [(case, library) for case in CASES for library in HEADS if case.only in {"", library}]
IDS = [f"{library}-{case.title}" for case, library in BOTH]
LOOKS = {one.title: one for one in SUSPECTS}


def shown_by(title: str, text: str) -> list[int]:
    script = parsed("script.py", text)
    assert isinstance(script, Script), script
    return sorted({spot.node.lineno for spot in LOOKS[title].look(Program(script.tree))})


@pytest.mark.parametrize(("case", "library"), BOTH, ids=IDS)
def test_a_suspect_shows_its_line(case, library) -> None:
    text, lines = case.faulty(library)
    assert lines
    assert shown_by(case.title, text) == lines


@pytest.mark.parametrize(("case", "library"), BOTH, ids=IDS)
def test_it_is_silent_about_what_is_meant(case, library) -> None:
    assert shown_by(case.title, case.healthy(library)) == []


def test_every_suspect_has_a_case_and_words() -> None:
    titles = [one.title for one in SUSPECTS]
    assert len(titles) == len(set(titles))
    assert {case.title for case in CASES} == set(titles) == set(suspicions())


@pytest.mark.parametrize("title", suspicions())
def test_the_words_are_whole(title: str) -> None:
    said = suspicions()[title]
    assert 1 <= said.weight <= 9
    assert said.advice.endswith((".", "?"))
    assert not said.what.endswith(".")


@pytest.mark.parametrize("name", sorted(PRACTICES | UNUSUAL))
def test_unusual_code_is_read_to_its_end(name: str) -> None:
    """Whatever a script holds, each suspect reads it and words its places."""
    script = parsed("script.py", HEADS["torch"] + (PRACTICES | UNUSUAL)[name] + OF_ALL_KINDS)
    assert isinstance(script, Script), script
    program = Program(script.tree)
    told = [one.words.what.format(**spot.facts) for one in SUSPECTS for spot in one.look(program)]
    assert all(told)
