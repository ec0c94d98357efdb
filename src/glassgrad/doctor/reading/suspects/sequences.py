"""Suspects about sequences: recurrent layers, attention, masks, positions, tokens and padding."""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import suspects_of

SUSPECTS = suspects_of(globals())
