"""Suspects about sequences: recurrent layers, attention, masks, positions, tokens, padding, CTC and time series.

`parts` has what they look at: calls of recurrent layers with their results, places in a subscript, words of a script.
"""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import suspects_of
from glassgrad.doctor.reading.suspects.sequences import (
    attention,
    blocks,
    cells,
    ctc,
    recurrent,
    targets,
    tokens,
    windows,
)

SUSPECTS = suspects_of(recurrent, cells, attention, blocks, tokens, targets, windows, ctc)
