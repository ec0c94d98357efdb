"""Suspects about several models or objectives: reinforcement learning, GANs, distillation, contrast, autoencoders."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES: tuple[Case, ...] = ()
