"""Suspects about losses: what is compared with what, reductions, weights of terms, distributions."""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import suspects_of

SUSPECTS = suspects_of(globals())
