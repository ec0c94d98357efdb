"""The rules that turn data into findings, one family a file: what to look for, what it means and what to do.

A rule neither computes anything about tensors nor prints. `RULES` look at a batch (`CheckUp`), `RUN_RULES` at a run.
"""

from __future__ import annotations

from glassgrad.doctor.facts import CheckUp, Finding
from glassgrad.doctor.rules import batch, calls, graph, setup, steps
from glassgrad.doctor.rules.rule import Rule, Seen, apply

RULES: tuple[Rule, ...] = (*batch.RULES, *graph.RULES)
"""What is looked for in one batch, in this order; a new rule is one entry of its family."""

RUN_RULES: tuple[Rule, ...] = (
    *calls.RULES, *batch.OF_INPUTS, *setup.RULES, *graph.RULES, *steps.RULES
)  # fmt: skip  # a table
"""What is looked for in a run."""


def findings(found: CheckUp) -> tuple[Finding, ...]:
    """Return what the rules find in a check-up, errors first."""
    return apply(RULES, found)


__all__ = ["RULES", "RUN_RULES", "Rule", "Seen", "apply", "findings"]
