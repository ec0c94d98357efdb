"""Which experiments tell most about a symptom, and their outcomes as lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from glassgrad.doctor.deeper.experiments import EXPERIMENTS, Bench, Outcome
from glassgrad.doctor.facts import Finding
from glassgrad.errors import GlassgradError

SYMPTOMS: Mapping[str, tuple[str, str]] = {
    "loss does not fall": ("one batch", "rate"),
    "batch not learnt": ("labels", "rate"),
    "loss rises": ("rate", "one batch"),
    "loss spikes": ("rate", "labels"),
    "loss not finite": ("rate", "one batch"),
    "first loss far off": ("one batch", "modes"),
    "loss far off": ("one batch", "modes"),
    "underfitting": ("one batch", "rate"),
    "overfitting": ("labels", "modes"),
    "validation far worse than training": ("modes", "labels"),
    "learns less than a probe": ("one batch", "rate"),
    "gradients mostly noise": ("labels", "rate"),
    "gradients zigzag": ("rate", "one batch"),
    "always clipped": ("rate", "one batch"),
    "exploding gradient": ("rate", "one batch"),
    "vanishing gradient": ("one batch", "rate"),
    "dead units": ("one batch", "rate"),
    "saturated": ("one batch", "rate"),
    "no gradient": ("one batch", "modes"),
    "gradient zero": ("one batch", "modes"),
    "never updated": ("rate", "one batch"),
    "output without input": ("one batch", "labels"),
}
"""Findings that have a cause elsewhere, and the two experiments most likely to tell which."""
_RAISED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    GlassgradError,
)
"""What the code of a script may raise when its step is computed again."""
NO_FINDING = "one batch", "labels"
"""The experiments for a training in which no rule finds anything."""


def unexplained(findings: Sequence[Finding]) -> list[Finding]:
    """Return the symptoms, warnings and errors, that no other finding explains.

    Example:
        >>> rows = Finding("loss rises", "error", "", ""), Finding("dead units", "error", "", "", because="loss rises")
        >>> [one.rule for one in unexplained(rows)]
        ['loss rises']
    """
    causes = [one for one in findings if one.severity != "info" and not one.because and one.rule not in SYMPTOMS]
    alone = [one for one in findings if one.severity != "info" and not one.because and one.rule in SYMPTOMS]
    return [] if causes else alone


def experiments_for(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the names of the two experiments to make; none if every symptom has a cause."""
    symptoms = unexplained(findings)
    if symptoms:
        return SYMPTOMS[symptoms[0].rule]
    return () if any(one.severity != "info" for one in findings) else NO_FINDING


def run(bench: Bench, findings: Sequence[Finding]) -> tuple[Outcome, ...]:
    """Make the experiments for some findings; an experiment that raises an error says so."""
    found = []
    for name in experiments_for(findings) if bench.batches else ():
        try:
            found.append(EXPERIMENTS[name](bench))
        except _RAISED as error:
            why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            found.append(Outcome(name, f"the step could not be computed again ({why})", "nothing can be said"))
    return tuple(found)


def lines(findings: Sequence[Finding], outcomes: Sequence[Outcome] | None, taken: bool = True) -> Iterator[str]:
    """Yield the lines below findings: the experiments that were made, or those that would tell most."""
    symptoms = unexplained(findings)
    if outcomes is None:
        if symptoms:
            first, second = experiments_for(findings)
            told = f"nothing here explains {symptoms[0].rule!r}; two experiments tell most: {first}, {second}"
            yield f"unexplained  {told}"
            yield " " * 13 + "(glassgrad doctor --deeper script.py, or doctor.examine(..., deeper=True))"
        return
    if outcomes:
        yield f"experiments  {len(outcomes)}"
        for one in outcomes:
            yield from textwrap.wrap(str(one), 100, initial_indent="  ", subsequent_indent=" " * 11)
    elif not taken:
        yield "experiments  none: no step was seen that can be computed again (a compiled step, or several models)"
    else:
        yield "experiments  none: every symptom has a cause"
