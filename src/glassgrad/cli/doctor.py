"""`glassgrad doctor`."""

from __future__ import annotations

import time
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from glassgrad import errors

SHORT = 20.0
"""The most seconds of a script that is run again with changes unasked."""


class Preset(StrEnum):
    """How thorough an examination is."""

    economy = "economy"
    standard = "standard"
    full = "full"


def doctor(
    target: Annotated[Path, typer.Argument(metavar="RUN|SCRIPT.py", help="A run directory, or a script that trains.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS...", help="Arguments of the script.")
    ] = None,
    preset: Annotated[Preset, typer.Option("--preset", help="How thoroughly to examine a script's training.")] = (
        Preset.standard
    ),
    nan: Annotated[
        bool, typer.Option("--nan", help="Stop a script at the step that makes a NaN, and name the op that made it.")
    ] = False,
    deeper: Annotated[
        bool, typer.Option("--deeper", help="Make two experiments if a symptom of a script has no known cause.")
    ] = False,
    seconds: Annotated[
        float,
        typer.Option("--seconds", min=0, help="The time for trying changes of a short script, if no cause is known."),
    ] = 60.0,
) -> int:
    """Diagnose a training run: a run directory, or a glassgrad or PyTorch script while it runs.

    The doctor also reads a script, as `glassgrad lint` does. Put options of the script after "--".
    """
    if target.suffix != ".py":
        if nan:
            raise errors.DOCTOR_NAN_RUN(path=target)
        if deeper:
            raise errors.DOCTOR_DEEPER_RUN(path=target)
        from glassgrad.train.show.diagnosis import diagnosis

        print("\n".join(diagnosis(target)))
        return 0
    if not target.is_file():
        raise errors.DOCTOR_NO_SCRIPT(path=target)
    from glassgrad.doctor.deeper import choice
    from glassgrad.doctor.reading.beside import joined
    from glassgrad.doctor.repairs import report
    from glassgrad.doctor.reports.script_wording import lines
    from glassgrad.doctor.script import run_script

    begun = time.monotonic()
    watched, ended = run_script(target, arguments or [], preset.value, nan=nan, deeper=deeper)
    took = time.monotonic() - begun
    watched, read = joined(str(target), watched)
    outcomes = [None if one.bench is None else choice.run(one.bench, one.findings) for one in watched]
    found = None
    if ended and watched and seconds and (deeper or took <= SHORT):
        findings = [one for each in watched for one in each.findings]
        found = report.changes(target, arguments or [], findings, seconds, lambda text: typer.echo(text, err=True))
    if found is not None:
        watched[0] = replace(watched[0], findings=report.with_repairs(watched[0].findings, found, target))
    print("\n".join((*lines(watched, outcomes, read), *report.lines(found))))
    return 0 if ended else 1
