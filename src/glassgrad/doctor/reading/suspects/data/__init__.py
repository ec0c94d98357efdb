"""Suspects about data and figures: loaders, splits, scaling, labels, windows, and how results are measured.

`roles` has what they look up.
"""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.data import figures, items, order, pairs, scales, tallies
from glassgrad.doctor.reading.suspects.form import suspects_of

SUSPECTS = suspects_of(figures, items, order, pairs, scales, tallies)
