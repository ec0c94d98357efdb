"""The rules about scripts, in the order in which a listing of equal lines shows them."""

from __future__ import annotations

from glassgrad.doctor.reading import (
    about_calls,
    about_data,
    about_formulas,
    about_losses,
    about_modules,
    about_slips,
    about_tensors,
)
from glassgrad.doctor.reading.rule import Rule

RULES: tuple[Rule, ...] = (
    *about_modules.RULES,
    *about_losses.RULES,
    *about_calls.RULES,
    *about_data.RULES,
    *about_tensors.RULES,
    *about_slips.RULES,
    *about_formulas.RULES,
)

OF_COMMENTS = "allow without a reason", "allow without an effect"
"""What `lint.py` itself finds about the comments that silence rules."""
