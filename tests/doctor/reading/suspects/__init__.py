"""A snippet for every suspect, with its line marked, beside one in which the suspect is silent."""

from __future__ import annotations

from tests.doctor.reading.suspects import (
    data,
    figures,
    items,
    loops,
    loops_more,
    loops_states,
    losses,
    models,
    models_special,
    pairs,
    players,
    players_more,
    scales,
    sequences,
    tallies,
)

_FILES = (
    data,
    figures,
    items,
    loops,
    loops_more,
    loops_states,
    losses,
    models,
    models_special,
    pairs,
    players,
    players_more,
    scales,
    sequences,
    tallies,
)
CASES = tuple(case for one in _FILES for case in one.CASES)
