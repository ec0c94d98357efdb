"""Suspects about data and figures: loaders, splits, scaling, augmentation, labels, and how results are measured."""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import suspects_of

SUSPECTS = suspects_of(globals())
