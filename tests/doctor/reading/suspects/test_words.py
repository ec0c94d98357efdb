"""The words of each suspect name only facts that its places hold."""

from __future__ import annotations

import pytest

from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.source import Script, parsed
from tests.doctor.reading.suspects import CASES
from tests.doctor.reading.suspects.test_suspects import LOOKS


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_words_fit_their_places(case) -> None:
    text, _ = case.faulty(case.only or "torch")
    script = parsed("script.py", text)
    assert isinstance(script, Script), script
    suspect = LOOKS[case.title]
    said = [suspect.words.what.format(**spot.facts) for spot in suspect.look(Program(script.tree))]
    assert said
    assert all(0 < len(one) < 600 for one in said)
