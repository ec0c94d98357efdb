"""Suspects about several models or objectives: policies, GANs, autoencoders, diffusion, contrast, distillation.

`algebra` has what they look up.
"""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import suspects_of
from glassgrad.doctor.reading.suspects.players import generative, noise, pairs, policies, records, values

SUSPECTS = suspects_of(generative, noise, pairs, policies, records, values)
