"""The rules that turn data into findings, one family a file: what to look for, what it means and what to do.

A rule neither computes anything about tensors nor prints. `RULES` look at a batch (`CheckUp`), `RUN_RULES` at a run.
"""

from __future__ import annotations

from glassgrad.doctor.facts import CheckUp, Finding
from glassgrad.doctor.rules import batch, calls, data, examination, graph, loss, setup, steps
from glassgrad.doctor.rules.rule import Rule, Seen, apply, ordered

RULES: tuple[Rule, ...] = (*batch.RULES, *graph.RULES)
"""What is looked for in one batch, in this order; a new rule is one entry of its family."""

RUN_RULES: tuple[Rule, ...] = (
    *calls.RULES, *batch.OF_INPUTS, *setup.RULES, *graph.RULES, *loss.RULES, *steps.RULES
)  # fmt: skip  # a table
"""What is looked for in a run."""

SETUP_RULES: tuple[Rule, ...] = setup.RULES
"""What is looked for in an optimizer beside its model."""

EXAMINATION_RULES: tuple[Rule, ...] = examination.RULES
"""What is looked for in an examination, beside what is in its check-up and its setup."""

DATA_RULES: tuple[Rule, ...] = data.RULES
"""What is looked for in a data set."""


def findings(found: CheckUp) -> tuple[Finding, ...]:
    """Return what the rules find in a check-up, errors first."""
    return apply(RULES, found)


__all__ = [
    "DATA_RULES",
    "EXAMINATION_RULES",
    "RULES",
    "RUN_RULES",
    "SETUP_RULES",
    "Rule",
    "Seen",
    "apply",
    "findings",
    "ordered",
]
