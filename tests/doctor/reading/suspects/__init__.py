"""A snippet for every suspect, with its line marked, beside one in which the suspect is silent."""

from __future__ import annotations

from tests.doctor.reading.suspects import data, loops, losses, models, players, players_more, sequences

_FILES = (data, loops, losses, models, players, players_more, sequences)
CASES = tuple(case for one in _FILES for case in one.CASES)
