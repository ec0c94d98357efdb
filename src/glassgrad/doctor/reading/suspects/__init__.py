"""Lines worth a look: kinds of lines that are often a fault and often not, for a training whose cause no rule names.

A rule (`reading/about`) must be silent about sound scripts. A suspect need not: it is shown as information, beneath a
symptom without a cause. So its patterns are wider, and its words say when the line is right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.suspects import data, loops, losses, models, players, sequences
from glassgrad.doctor.reading.suspects.form import Suspect

TITLE = "worth a look"
SUSPECTS: tuple[Suspect, ...] = (
    *loops.SUSPECTS,
    *losses.SUSPECTS,
    *data.SUSPECTS,
    *models.SUSPECTS,
    *sequences.SUSPECTS,
    *players.SUSPECTS,
)
MOST = 2
STRONG = 5
"""The weight from which a suspect is shown for a training without any symptom."""
BESIDE = 7
"""The weight from which a suspect is shown beside a cause that a rule names."""


def places(program: Program) -> list[tuple[Suspect, tuple[int, ...], str]]:
    """Return the suspects of a program, the heaviest first, each with its lines and what it says of the first one."""
    found: list[tuple[Suspect, tuple[int, ...], str]] = []
    taken: set[int] = set()
    for one in sorted(SUSPECTS, key=lambda suspect: -suspect.words.weight):
        spots = [spot for spot in one.look(program) if spot.node.lineno not in taken]
        if spots:
            spots.sort(key=lambda spot: spot.node.lineno)
            lines = tuple(dict.fromkeys(spot.node.lineno for spot in spots))
            taken.update(lines)
            found.append((one, lines, one.words.what.format(**spots[0].facts)))
    return found


def worth_a_look(program: Program, file: str, findings: Sequence[Finding], lightest: int = 1) -> list[Finding]:
    """Return one finding with the heaviest suspects of a script, without those whose line a finding names already.

    Args:
        program: the script; `file` is its name in the findings.
        findings: what is known of it.
        lightest: the least weight.
    """
    known = f"{re.escape(file)}:(\\d+)"
    told = {int(line) for one in findings for line in re.findall(known, f"{one.where} {one.what}")}
    rows = [row for row in places(program) if row[0].words.weight >= lightest and row[1][0] not in told][:MOST]
    if not rows:
        return []
    what = "; ".join(f"{file}:{lines[0]}: {what}" for _, lines, what in rows)
    advice = " ".join(dict.fromkeys(one.words.advice for one, _, _ in rows))
    best, lines, _ = rows[0]
    return [Finding(TITLE, "info", what, advice, f"{file}:{lines[0]}", remedy=best.words.remedy)]
