"""The rules that turn data into findings, one family per file.

A rule neither computes statistics nor prints. `RULES` take a batch (`CheckUp`), `RUN_RULES` a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from glassgrad.doctor.facts import CheckUp, Finding
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.rules import (
    axes,
    batch,
    calls,
    data,
    entering,
    examination,
    fitting,
    graph,
    layers,
    learnable,
    loss,
    objectives,
    order,
    parts,
    setup,
    steps,
    targets,
    validation,
)
from glassgrad.doctor.rules.causes import ranked
from glassgrad.doctor.rules.rule import Rule, Rules, Seen, apply, ordered
from glassgrad.doctor.run import Run

RULES: Rules = (*batch.RULES, *graph.RULES)
"""The rules for one batch, in order; a new rule is a function in the file of its family."""


def _normalises(run: Run) -> bool:
    """Tell whether a model normalises its inputs first, or right behind its first layer if they are not large."""
    kinds = run.data.kinds if run.data is not None else ()
    large = any(facts.summary.abs_max > batch.FAR_INPUT for facts in run.inputs)
    return any("Norm" in kind for kind in kinds[: 1 if large else 2])


def _at_the_call(one: Rule[Any]) -> Rule[Any]:
    """Return a rule about inputs that names the line of the model's call."""

    def look(run: Run) -> Iterator[Seen]:
        if one.name == "inputs unnormalised" and _normalises(run):
            return  # the model does it itself
        for seen in one.look(run):
            yield Seen(seen, run.calls.line("forward")) if isinstance(seen, str) else seen

    return replace(one, look=look)


_CAUSES = (
    order.RULES,
    parts.RULES,
    layers.RULES,
    axes.RULES,
    entering.RULES,
    targets.RULES,
    objectives.RULES,
    validation.RULES,
    learnable.RULES,
    fitting.RULES,
)
_OF_RUNS = calls.RULES, map(_at_the_call, batch.OF_INPUTS), *_CAUSES, setup.RULES, graph.RULES, loss.RULES, steps.RULES
RUN_RULES: Rules = tuple(chain.from_iterable(_OF_RUNS))
"""The rules for a run."""

SETUP_RULES: Rules = setup.RULES
"""The rules for an optimizer and its model."""

EXAMINATION_RULES: Rules = examination.RULES
"""The rules for an examination, in addition to those for its check-up and setup."""

DATA_RULES: Rules = data.RULES
"""The rules for a data set."""


COURSE = named(
    "rate-above-the-curvature rate-unfit-for-the-weights gradients-zigzag vanishing-gradient exploding-gradient "
    "saturated dead-units initial-weights-out-of-the-usual first-loss-far-off loss-spikes loss-rises "
    "inputs-unnormalised targets-unnormalised learning-rate-out-of-the-usual sigmoids-too-deep"
)
"""Names of findings that warn of what may become of a training: mere information where all is learnt."""


BUMPS = named("gradients-zigzag loss-spikes")
"""Names of findings about single steps: mere information where the loss falls all the same."""


def _has_halved(run: Run) -> bool:
    """Tell whether the loss ends at half of what it began with, or below."""
    known = run.curve[:, 1]
    part = max(len(known) // 10, 1)
    return len(known) >= 20 and 0 <= float(np.median(known[-part:])) < 0.5 * float(np.median(known[:part]))


def findings_of_run(run: Run) -> tuple[Finding, ...]:
    """Return the findings about a run, causes first."""
    found = apply(RUN_RULES, run)
    if any(one.name in COURSE for one in found):
        milder = COURSE if learnable.learns_well(run) else BUMPS if _has_halved(run) else frozenset()
        found = tuple(replace(one, severity="info") if one.name in milder else one for one in found)
    return ranked(found)


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
    "findings_of_run",
    "ordered",
    "ranked",
]
