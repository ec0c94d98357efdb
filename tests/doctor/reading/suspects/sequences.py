"""Suspects about sequences: recurrent layers, attention, masks, positions, tokens and padding."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES: tuple[Case, ...] = ()
