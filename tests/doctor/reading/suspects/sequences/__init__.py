"""Suspects about sequences, in the rooms of `reading/suspects/sequences`."""

from __future__ import annotations

from tests.doctor.reading.suspects.sequences import attention, blocks, cells, ctc, recurrent, targets, tokens

CASES = (
    *recurrent.CASES,
    *cells.CASES,
    *attention.CASES,
    *blocks.CASES,
    *tokens.CASES,
    *targets.CASES,
    *ctc.CASES,
)
