"""The rules that read scripts, by family: each yields the places where a program has a fault.

`RULES` has them in the order in which a listing of equal lines shows them.
"""

from __future__ import annotations

from glassgrad.doctor.reading.about import (
    attention,
    averages,
    calls,
    data,
    datasets,
    formulas,
    functions,
    learning,
    losses,
    measures,
    modules,
    players,
    rounds,
    signs,
    slips,
    stored,
    tensors,
    weights,
)
from glassgrad.doctor.reading.rule import Rule

RULES: tuple[Rule, ...] = (
    *modules.RULES,
    *weights.RULES,
    *functions.RULES,
    *losses.RULES,
    *signs.RULES,
    *averages.RULES,
    *calls.RULES,
    *learning.RULES,
    *rounds.RULES,
    *data.RULES,
    *datasets.RULES,
    *stored.RULES,
    *measures.RULES,
    *tensors.RULES,
    *attention.RULES,
    *players.RULES,
    *slips.RULES,
    *formulas.RULES,
)

OF_COMMENTS = "allow without a reason", "allow without an effect"
"""What `reading/lint.py` itself finds about the comments that silence rules."""
