"""The rules that turn data into findings, one family per file.

A rule neither computes statistics nor prints. `RULES` take a batch (`CheckUp`), `RUN_RULES` a run.
"""

from __future__ import annotations

from itertools import chain

from glassgrad.doctor.facts import CheckUp, Finding
from glassgrad.doctor.rules import batch, calls, data, examination, graph, loss, setup, steps
from glassgrad.doctor.rules.rule import Rule, Rules, Seen, apply, ordered

RULES: Rules = (*batch.RULES, *graph.RULES)
"""The rules for one batch, in order; a new rule is a function in the file of its family."""

_OF_RUNS = calls.RULES, batch.OF_INPUTS, setup.RULES, graph.RULES, loss.RULES, steps.RULES
RUN_RULES: Rules = tuple(chain.from_iterable(_OF_RUNS))
"""The rules for a run."""

SETUP_RULES: Rules = setup.RULES
"""The rules for an optimizer and its model."""

EXAMINATION_RULES: Rules = examination.RULES
"""The rules for an examination, besides those for its check-up and setup."""

DATA_RULES: Rules = data.RULES
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
    "Rules",
    "Seen",
    "apply",
    "findings",
    "ordered",
]
