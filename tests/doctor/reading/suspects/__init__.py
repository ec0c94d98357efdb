"""A snippet for every suspect, with its line marked, beside one in which the suspect is silent."""

from __future__ import annotations

from tests.doctor.reading.suspects import (
    attention,
    blocks,
    cells,
    ctc,
    data,
    loops,
    losses,
    models,
    players,
    sequences,
    targets,
    tokens,
)

_FILES = (data, loops, losses, models, players, sequences, cells, attention, blocks, tokens, targets, ctc)
CASES = tuple(case for one in _FILES for case in one.CASES)
