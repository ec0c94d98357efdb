"""Faults of the kinds that public questions are full of: short scripts, each with its healthy twin.

`python -m tests.doctor.world [WORDS]` prints what the doctor says to them.
"""

from __future__ import annotations

import re
from pathlib import Path

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading import suspects
from glassgrad.doctor.reading.beside import joined
from glassgrad.doctor.repairs.report import TITLE, changes, with_repairs
from glassgrad.doctor.script import run_script
from tests.doctor.world import fitting, known, missed, terms, variants
from tests.doctor.world.program import Program

FAULTS = (*known.PROGRAMS, *missed.PROGRAMS)
PROGRAMS = (*FAULTS, *variants.PROGRAMS, *fitting.PROGRAMS, *terms.PROGRAMS)


def found_in(text: str, folder: Path, seconds: float = 0) -> list[Finding]:
    """Run and read a script as `glassgrad doctor` does; return what it says first.

    With `seconds` changes of the script are tried for that time if no finding names a cause, as with `--deeper`.
    """
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    watched, ended = run_script(path)
    assert ended
    assert watched
    watched, read = joined(str(path), watched)
    found = [*(finding for one in watched for finding in one.findings), *read]
    tried = changes(path, (), found, seconds) if seconds else None
    return found if tried is None else list(with_repairs(found, tried, path))


def names_cause(program: Program, found: list[Finding], lines: set[int]) -> bool:
    """Tell whether one of the first two findings names the cause and its line."""
    return any(_names(one, program) and lines & _lines_of(one) for one in found[:2])


def _names(one: Finding, program: Program) -> bool:
    if one.rule in {TITLE, suspects.TITLE}:
        return True  # a change that helps and a line worth a look are judged by their lines
    return one.rule in program.rules and program.says in f"{one.what} {one.advice} {one.remedy}"


def _lines_of(one: Finding) -> set[int]:
    return {int(line) for line in re.findall(r"script\.py:(\d+)", f"{one.where} {one.what}")}


def judged(
    program: Program, library: str, folder: Path, seconds: float = 0
) -> tuple[list[Finding], bool, list[Finding]]:
    """Return the findings of a program, whether they name its cause, and the alarms about its twin."""
    text, lines = program.faulty(library)
    found = found_in(text, folder, seconds)
    beside = folder / "twin"  # a file of its own, since lines of a file are read once
    beside.mkdir()
    alarms = [one for one in found_in(program.healthy(library), beside, seconds) if one.severity != "info"]
    return found, names_cause(program, found, lines), alarms
