"""Suspects about data and figures: loaders, splits, scaling, augmentation, labels, and how results are measured."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES: tuple[Case, ...] = ()
