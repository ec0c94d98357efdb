"""Findings as lines of text, for a terminal."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from glassgrad.doctor.facts import Finding

_WIDTH = 100


def lines(
    findings: Sequence[Finding], steps: int | None = None, samples: int | None = None, unseen: Iterable[str] = ()
) -> Iterator[str]:
    """Yield the lines about findings, the worst first, with place, numbers and remedy, and the parts not examined."""
    seen = "" if steps is None else f"   ({steps:,} steps watched, {samples:,} sampled)"
    if not findings:
        yield f"findings     none: nothing here looks wrong{seen}"
    else:
        yield f"findings     {len(findings)}{seen}"
    for what in unseen:
        yield from _wrapped(f"not examined: {what}", " " * 13, 15)
    causes = {finding.rule for finding in findings if not finding.because}
    for finding in findings:
        if finding.because in causes:
            continue
        yield from _wrapped(f"{finding.severity.upper():<8} {finding.rule}: {finding.what}", "  ", 11)
        if finding.where and finding.where not in finding.what:
            yield " " * 11 + f"at {finding.where}"
        measured = _measured(finding)
        if measured:
            yield from _wrapped(measured, " " * 11, 11)
        yield from _wrapped(f"-> {finding.advice}", " " * 11, 14)
        if finding.remedy:
            yield " " * 14 + finding.remedy
        yield " " * 11 + f"see {finding.page}"
        for other in findings:
            if other.because == finding.rule:
                told = f"follows: {other.severity}: {other.rule}: {other.what}"
                yield " " * 11 + textwrap.shorten(told, _WIDTH - 11, placeholder=" ...")


def _measured(finding: Finding) -> str:
    parts = []
    if not math.isnan(finding.value) and not math.isnan(finding.threshold):
        parts.append(f"measured {finding.value:.3g}, threshold {finding.threshold:.3g}")
    if finding.evidence:
        shown = finding.evidence[:4]
        parts.append("step " + ", ".join(f"{step}: {value:.3g}" for step, value in shown))
    if finding.source:
        parts.append(finding.source)
    return "; ".join(parts)


def _wrapped(text: str, indent: str, after: int) -> Iterable[str]:
    for at, paragraph in enumerate(text.splitlines()):
        begin = indent if at == 0 else " " * after
        yield from textwrap.wrap(paragraph, _WIDTH, initial_indent=begin, subsequent_indent=" " * after)
