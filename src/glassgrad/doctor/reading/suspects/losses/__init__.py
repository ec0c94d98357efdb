"""Suspects about losses: what is compared with what, formulas written out, terms, masks, reductions.

`formulas` has what they look up.
"""

from __future__ import annotations

from glassgrad.doctor.reading.suspects.form import suspects_of
from glassgrad.doctor.reading.suspects.losses import library, masks, sets, terms, written

SUSPECTS = suspects_of(library, masks, sets, terms, written)
