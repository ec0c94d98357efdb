"""Suspects about sequences: recurrent layers, attention, masks, positions, tokens, padding, CTC and time series.

`parts` has what they look at: calls of recurrent layers with their results, places in a subscript, words of a script.
"""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import Suspect
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

SUSPECTS: tuple[Suspect, ...] = (
    *recurrent.SUSPECTS,
    *cells.SUSPECTS,
    *attention.SUSPECTS,
    *blocks.SUSPECTS,
    *tokens.SUSPECTS,
    *targets.SUSPECTS,
    *windows.SUSPECTS,
    *ctc.SUSPECTS,
)
