"""What a rule is: a name, a small function from data to what it has seen, and where its threshold comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad.doctor.facts import Evidence, Finding

Array = Any

SEVERITIES = ("error", "warning", "info")
"""An error: training cannot work. A warning: it is slower or worse than it has to be. Info: worth knowing."""


@dataclass(frozen=True)
class Seen:
    """One thing that a rule has seen: in words, where, and the number that was held against the threshold.

    `severity`, `advice` and `remedy` replace those of the rule where a case is milder, or needs other words.
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
class Rule:
    """One thing to look for in one kind of data.

    Attributes:
        name: the title of its findings.
        severity: "error", "warning" or "info".
        look: yields what it sees, in words alone where there is no number to it.
        advice: what to do, in words; `remedy` is the same as a line of code.
        threshold: what the measured value is held against; `source` is where that number comes from.
    """

    name: str
    severity: str
    look: Callable[[Any], Iterator[Seen | str]]
    advice: str
    remedy: str = ""
    threshold: float = math.nan
    source: str = ""

    def findings(self, data: Any) -> Iterator[Finding]:
        """Yield a finding for each thing seen."""
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


def listed(names: Sequence[str]) -> str:
    """Return names in a row, the first four of many."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def pairs(steps: Array, values: Array, most: int = 6) -> Evidence:
    """Return some of the (step, value) pairs as evidence, evenly chosen."""
    if not len(steps):
        return ()
    places = np.unique(np.linspace(0, len(steps) - 1, min(most, len(steps))).astype(int))
    return tuple((int(steps[at]), float(values[at])) for at in places)


def apply(rules: Iterable[Rule], data: Any) -> tuple[Finding, ...]:
    """Return what rules find in data: errors first, each kind in the order of the rules."""
    return ordered(finding for rule in rules for finding in rule.findings(data))


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with errors first, each kind as it came."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
