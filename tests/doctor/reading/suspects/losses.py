"""Suspects about losses: what is compared with what, reductions, weights of terms, distributions."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES: tuple[Case, ...] = ()
