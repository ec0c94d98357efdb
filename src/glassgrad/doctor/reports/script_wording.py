"""The report about a script: each of its trainings, and what its source shows beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from glassgrad.doctor.deeper import choice
from glassgrad.doctor.deeper.experiments import Outcome
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reports import wording
from glassgrad.doctor.script import Watched


def lines(
    watched: Sequence[Watched], outcomes: Sequence[Sequence[Outcome] | None], read: Sequence[Finding]
) -> Iterator[str]:
    """Yield the lines about the trainings of a script.

    Args:
        watched: the trainings, with their findings.
        outcomes: for each, the results of the experiments with it; None if none were asked for.
        read: what the source shows and no training of the script.
    """
    if not watched:
        yield "no training was seen: the script made no optimizer for a module of glassgrad or PyTorch"
    told: dict[tuple[str, str], set[tuple[str, str]]] = {}
    alike: Counter[tuple[str, str]] = Counter()
    for one, tried in zip(watched, outcomes, strict=True):
        found = {(finding.rule, finding.where) for finding in one.findings}
        kind = one.model, one.made
        if kind in told and found <= told[kind] and not tried:
            alike[kind] += 1
            continue
        told.setdefault(kind, set()).update(found)
        yield f"\n{one.model}, optimizer made at {one.made}"
        yield from wording.lines(one.findings, one.steps, one.samples)
        yield from choice.lines(one.findings, tried, one.bench is None or bool(one.bench.batches))
    for (model, made), count in alike.items():
        yield f"\n{count} more watched of {model}, optimizer made at {made}: no other finding"
    if read:
        yield "\nread in the source"
        yield from wording.lines(read)
