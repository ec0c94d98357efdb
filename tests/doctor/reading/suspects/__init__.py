"""A snippet for every suspect, with its line marked, beside one in which the suspect is silent."""

from __future__ import annotations

from tests.doctor.reading.suspects import (
    data,
    figures,
    items,
    loops,
    losses,
    models,
    pairs,
    players,
    scales,
    sequences,
    tallies,
)

_FILES = (data, pairs, items, scales, figures, tallies, loops, losses, models, players, sequences)
CASES = tuple(case for one in _FILES for case in one.CASES)
