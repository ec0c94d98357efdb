"""Suspects about training loops: optimizers, schedules, gradients, modes, checkpoints, frozen parts."""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import suspects_of

SUSPECTS = suspects_of(globals())
