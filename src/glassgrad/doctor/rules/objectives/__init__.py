"""Rules about what a loss makes large or small: the signs and weights of its terms, overlaps, and policies."""

from __future__ import annotations

from glassgrad.doctor.rules.objectives import overlap, policies, signs
from glassgrad.doctor.rules.rule import Rules

RULES: Rules = (*overlap.RULES, *policies.RULES, *signs.RULES)
