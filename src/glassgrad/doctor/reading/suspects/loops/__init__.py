"""Suspects about training loops: optimizers, schedules, the order of a round, modes, frozen parts, checkpoints.

`training` has what they look up.
"""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import suspects_of
from glassgrad.doctor.reading.suspects.loops import batches, iterations, optimizers, schedules, states

SUSPECTS = suspects_of(batches, iterations, optimizers, schedules, states)
