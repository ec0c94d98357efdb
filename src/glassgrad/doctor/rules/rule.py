"""The form of a rule: a name, a small function from data to observations, and a threshold with its source."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from glassgrad.doctor.facts import Evidence, Finding
from glassgrad.doctor.library import Array
from glassgrad.doctor.record import MonitorData
from glassgrad.doctor.run import Run

SEVERITIES = ("error", "warning", "info")
"""Error: training cannot work. Warning: training is slower or worse than it has to be. Info: worth knowing."""


AGAINST = {
    "dead units": "Lower the learning rate, draw weights with kaiming_normal_ and biases at 0, or use LeakyReLU.",
    "saturated": "Draw smaller weights for the layer before it, normalise its input, or scale the inputs of the model.",
    "vanishing gradient": "Use ReLU or GELU instead of tanh and sigmoid, initial weights that fit (kaiming_normal_; "
    "for tanh xavier_normal_ with gain 5/3), normalisation layers, or connections that skip layers.",
    "exploding gradient": "Clip the gradients (clip_grad_norm_ with 1.0), lower the learning rate, draw smaller "
    "initial weights, or add normalisation layers.",
}
"""Advice that rules about one batch share with rules about the steps of a run."""
GLOROT = "Glorot and Bengio (2010), Understanding the difficulty of training deep feedforward neural networks"
COHEN = "Cohen et al. (2021), Gradient descent on neural networks typically occurs at the edge of stability"

D = TypeVar("D")
"""The kind of data that a rule reads."""


@dataclass(frozen=True)
class Seen:
    """One observation of a rule: its text, its place, and the number that was compared with the threshold.

    `severity`, `advice` and `remedy` override those of the rule for a milder or special case.
    """

    what: str
    where: str = ""
    value: float = math.nan
    evidence: Evidence = ()
    severity: str = ""
    advice: str = ""
    remedy: str = ""
    threshold: float = math.nan


@dataclass(frozen=True)
class Rule(Generic[D]):
    """One rule for one kind of data.

    Attributes:
        name: the title of its findings.
        severity: "error", "warning" or "info".
        look: yields its observations, as text if there is no number.
        advice: what to do, in words; `remedy` is the same as a line of code.
        threshold: the limit of the measured value; `source` is its origin.
    """

    name: str
    severity: str
    look: Callable[[D], Iterator[Seen | str]]
    advice: str
    remedy: str = ""
    threshold: float = math.nan
    source: str = ""

    def findings(self, data: D) -> Iterator[Finding]:
        """Yield a finding for each observation."""
        for seen in self.look(data):
            one = Seen(seen) if isinstance(seen, str) else seen
            yield Finding(
                self.name,
                one.severity or self.severity,
                one.what,
                one.advice or self.advice,
                one.where,
                one.value,
                self.threshold if math.isnan(one.threshold) else one.threshold,
                self.source,
                one.evidence,
                one.remedy or self.remedy,
            )


def rule(
    severity: str, name: str, advice: str, remedy: str = "", threshold: float = math.nan, source: str = ""
) -> Callable[[Callable[[D], Iterator[Seen | str]]], Rule[D]]:
    """Make a rule from the decorated function, which yields observations; for the arguments see `Rule`."""
    return lambda look: Rule(name, severity, look, advice, remedy, threshold, source)


def sampled(least: int) -> Callable[[Callable[[Run, MonitorData], Iterator[Seen]]], Callable[[Run], Iterator[Seen]]]:
    """Apply a rule only to runs with at least `least` samples; the rule receives the samples in addition to the run."""

    def applied(look: Callable[[Run, MonitorData], Iterator[Seen]]) -> Callable[[Run], Iterator[Seen]]:
        return lambda run: look(run, run.data) if run.data is not None and len(run.data) >= least else iter(())

    return applied


Rules = tuple[Rule[Any], ...]
error, warning, info = partial(rule, "error"), partial(rule, "warning"), partial(rule, "info")


def rules_of(names: Mapping[str, object]) -> Rules:
    """Return the rules among the names of a module, in their order."""
    return tuple(one for one in names.values() if isinstance(one, Rule))


def at_(line: str) -> str:
    """Return a place for a sentence: " at train.py:3"; empty if it is unknown."""
    return f" at {line}" if line else ""


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words, at most the first four."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def pairs(steps: Array, values: Array, most: int = 6) -> Evidence:
    """Return some of the (step, value) pairs as evidence, evenly chosen."""
    if not len(steps):
        return ()
    places = np.unique(np.linspace(0, len(steps) - 1, min(most, len(steps))).astype(int))
    return tuple((int(steps[at]), float(values[at])) for at in places)


def ends(curve: Array) -> tuple[float, float]:
    """Return the median of a curve of (step, value) in its first fifth, and in its last: one spike is not a trend."""
    part = max(len(curve) // 5, 2)
    return float(np.median(curve[:part, 1])), float(np.median(curve[-part:, 1]))


def apply(rules: Iterable[Rule[D]], data: D) -> tuple[Finding, ...]:
    """Return the findings of rules about data: errors first, findings of equal severity in the order of the rules."""
    return ordered(finding for rule in rules for finding in rule.findings(data))


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with errors first, those of equal severity in their order."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
