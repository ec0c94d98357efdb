"""The rules that turn data into findings, one family per file.

A rule neither computes statistics nor prints. `RULES` take a batch (`CheckUp`), `RUN_RULES` a run.
"""

from __future__ import annotations

from glassgrad.doctor.facts import CheckUp, Finding
from glassgrad.doctor.rules import batch, calls, data, examination, graph, loss, setup, steps
from glassgrad.doctor.rules.rule import Rule, Seen, apply, ordered

RULES: tuple[Rule, ...] = (*batch.RULES, *graph.RULES)
"""The rules for one batch, in order; a new rule is one entry of its family."""

RUN_RULES: tuple[Rule, ...] = (
    *calls.RULES, *batch.OF_INPUTS, *setup.RULES, *graph.RULES, *loss.RULES, *steps.RULES
)  # fmt: skip  # a table
"""The rules for a run."""

SETUP_RULES: tuple[Rule, ...] = setup.RULES
"""The rules for an optimizer and its model."""

EXAMINATION_RULES: tuple[Rule, ...] = examination.RULES
"""The rules for an examination, besides those for its check-up and setup."""

DATA_RULES: tuple[Rule, ...] = data.RULES
"""The rules for a data set."""


def findings(found: CheckUp) -> tuple[Finding, ...]:
    """Return the findings about a check-up, errors first."""
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
