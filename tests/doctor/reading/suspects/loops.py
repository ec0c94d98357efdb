"""Suspects about training loops: optimizers, schedules, gradients, modes, checkpoints, frozen parts."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES: tuple[Case, ...] = ()
