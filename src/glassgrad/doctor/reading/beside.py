"""Join what was read in a script with what its run has shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from glassgrad.base import provenance
from glassgrad.doctor.deeper.choice import SYMPTOMS
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading.lint import Remark, names, of_file
from glassgrad.doctor.reading.names import titles
from glassgrad.doctor.reading.origins import traced
from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.rule import words
from glassgrad.doctor.reading.source import Unreadable, read
from glassgrad.doctor.reading.suspects import BESIDE, STRONG, worth_a_look
from glassgrad.doctor.rules import ranked
from glassgrad.doctor.rules.rule import SEVERITIES
from glassgrad.doctor.script import Watched

_READ = "read in the source"
_OTHERS = {
    title: what
    for what, named in {
        "the loss is computed": "softmax twice; activation before its loss; accumulated without division",
        "the outputs are made": "loss of raw outputs",
        "the layer is made": "sequence read at its beginning",
        "the schedule is made": "schedule stepped for each batch",
        "the softmax is taken": "mask behind the softmax",
        "the layer takes it": "random initial state",
        "the loss takes it": "advantage with gradients",
        "the loss takes them": "class weights favour the frequent",
        "the other term is computed": "loss terms of unequal size",
        "they are put into evaluation mode": "frozen layers in training mode",
        "the mean is taken": "averaged twice",
        "the difference is taken": "average pushed away",
        "the term is computed": (
            "entropy with the wrong sign; penalty subtracted; gradient cut in the loss; sign of the loss turned"
        ),
        "the other order is drawn": "pairs shuffled apart",
        "the array gets its second name": "labels overwritten while they are read",
        "the ratio is computed": "weight instead of pos_weight",
        "the level is taken": "noise level of a single step",
        "the function is called": "evaluation mode in training",
    }.items()
    for title in titles(named)
}
"""What stands in the other line of a fault, by its title: a line that mends the fault as well."""


UNCERTAIN = titles(
    "labels do not belong to the inputs; outputs opposite to the targets; output without input; inputs unnormalised; "
    "inputs constant; labels alike; NaN in the data; NaN in the targets; discriminator has won; "
    "rate above the curvature; rate unfit for the weights"
)
"""Causes of symptoms that may have a cause themselves, in another line."""


@dataclass(frozen=True)
class Read:
    """A remark as a finding of the doctor, with all lines that belong to it."""

    finding: Finding
    lines: frozenset[int]
    confirmed: frozenset[str]


def reading_of(path: str) -> list[Read]:
    """Return what is wrong with a script by its source; nothing if it cannot be read."""
    remarks = of_file(path, names())
    return [] if isinstance(remarks, Unreadable) else [_as_read(one) for one in remarks]


def _program(path: str) -> Program | None:
    script = read(path)
    return None if isinstance(script, Unreadable) else Program(script.tree)


def _as_read(one: Remark) -> Read:
    where = f"{one.file}:{one.line}"
    other = f" ({_OTHERS[one.title]} at {one.file}:{one.other})" if one.other and one.title in _OTHERS else ""
    finding = Finding(one.title, one.severity, f"{_READ}: {one.what}{other}", one.advice, where, remedy=one.remedy)
    said = words()[one.title]
    return Read(finding, frozenset({one.line, *one.also}), frozenset({one.title, *said.confirmed}))


def unconfirmed(read: Iterable[Read], findings: Sequence[Finding]) -> list[Finding]:
    """Return what was read and a run has not found by itself.

    A finding of a run says the same if it has the same name, or one listed as such, and names a line of the fault, or
    no line.

    Example:
        >>> found = Finding("zero_grad is missing", "error", "the backward pass at train.py:7 adds to ...", "")
        >>> one = Read(Finding("zero_grad is missing", "error", "", "", "train.py:7"), frozenset({7}), frozenset())
        >>> unconfirmed([Read(one.finding, one.lines, frozenset({"zero_grad is missing"}))], [found])
        []
    """
    return [one.finding for one in read if not any(_is_same(one, other) for other in findings)]


def _is_same(one: Read, other: Finding) -> bool:
    if other.rule not in one.confirmed:
        return False
    file = one.finding.where.rpartition(":")[0].replace("\\", "/").rpartition("/")[2]
    seen = {int(line) for line in re.findall(rf"{re.escape(file)}:(\d+)", f"{other.where} {other.what}")}
    return not seen or bool(seen & one.lines)


def joined(path: str, watched: Sequence[Watched]) -> tuple[list[Watched], list[Finding]]:
    """Return the trainings of a script, the worst first, and the findings of reading if there was no training.

    The findings of reading join those of the worst training, without those that the run has found itself. Causes come
    first, whether the run or the reading found them. Lines worth a look join: the heaviest always, the lighter ones if
    nothing names a cause.
    """
    program, file = _program(path), provenance.shorten(path)
    if program is not None:
        watched = [replace(one, findings=traced(program, file, one.findings, one.trails)) for one in watched]
    found = [finding for one in watched for finding in one.findings]
    rest = unconfirmed(reading_of(path), found)
    if not watched:
        return [], _with_suspects(program, file, ranked(rest))
    worst, *others = sorted(watched, key=_severity)
    merged = ranked(_merged(worst.findings, rest))
    return [replace(worst, findings=tuple(_with_suspects(program, file, merged))), *others], []


def _with_suspects(program: Program | None, file: str, findings: Sequence[Finding]) -> list[Finding]:
    """Return findings with the lines worth a look behind the first one that is no information."""
    if program is None:
        return list(findings)
    serious = [one for one in findings if one.severity != "info" and not one.because]
    causes = [one for one in serious if one.rule not in SYMPTOMS and one.rule not in UNCERTAIN]
    lightest = BESIDE if causes else 1 if serious else STRONG
    first = min(len(serious), 1)
    return [*findings[:first], *worth_a_look(program, file, findings, lightest), *findings[first:]]


def _merged(found: Sequence[Finding], rest: Sequence[Finding]) -> list[Finding]:
    """Return the findings of a run and of the reading; one finding if both have one with the same name.

    Example:
        >>> run = Finding("loss detached", "error", "the loss at train.py:9 has no history", "", "train.py:9")
        >>> read = Finding("loss detached", "error", "read in the source: y.detach() cuts it off", "", "train.py:5")
        >>> [one.what for one in _merged([run], [read])]
        ['the loss at train.py:9 has no history; read in the source at train.py:5: y.detach() cuts it off']
    """
    merged, left = list(found), list(rest)
    for at, one in enumerate(merged):
        same = [other for other in left if other.rule == one.rule]
        if len(same) == 1 and sum(other.rule == one.rule for other in merged) == 1:
            (other,) = same
            text = other.what.replace(_READ, f"{_READ} at {other.where}", 1)
            severity = (
                min(one.severity, other.severity, key=SEVERITIES.index) if one.severity == "info" else one.severity
            )
            what, remedy = f"{one.what}; {text}", other.remedy or one.remedy
            merged[at] = replace(one, what=what, where=other.where, remedy=remedy, severity=severity)
            left.remove(other)
    return [*merged, *left]


def _severity(one: Watched) -> int:
    """Return the index of a training's worst severity in `SEVERITIES`; their number if it has no findings."""
    return min((SEVERITIES.index(finding.severity) for finding in one.findings), default=len(SEVERITIES))
