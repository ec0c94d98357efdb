"""Suspects about several models or objectives: reinforcement learning, GANs, distillation, contrast, autoencoders."""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import suspects_of

SUSPECTS = suspects_of(globals())
