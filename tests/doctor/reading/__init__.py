"""Scripts with one fault each that their source shows, beside the healthy script."""

from __future__ import annotations

from tests.doctor.reading import (
    calls,
    data,
    formulas,
    learning,
    losses,
    measures,
    modules,
    players,
    rounds,
    sequences,
    signs,
    slips,
    tensors,
    weights,
)

_FILES = (
    modules,
    losses,
    calls,
    data,
    tensors,
    slips,
    formulas,
    learning,
    rounds,
    signs,
    sequences,
    players,
    weights,
    measures,
)
CASES = tuple(case for one in _FILES for case in one.CASES)
