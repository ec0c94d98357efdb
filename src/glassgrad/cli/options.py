"""Command-line options from a configuration's dataclass."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from glassgrad import errors
from glassgrad.tasks.task import TaskKind
from glassgrad.train.config import Rule, flag, rules
from glassgrad.train.ranks import joined
from glassgrad.train.show.monitoring import RECORD, Monitoring, draw

_METAVARS = {int: "N", float: "X", str: "TEXT", bool: ""}  # short, so that the help fits 80 columns


Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Read hyperparameters from a TOML file.")]
Resume = Annotated[Path | None, typer.Option("--resume", metavar="RUN", help="Continue a run that was stopped.")]
RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run-dir", "--out", metavar="DIR", help="Where to put the run; the next free number under runs/ if not given."
    ),
]


def with_options(config: type[Any]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command one option per field of `config`.

    The command takes them as its first argument, a dictionary in which None means that an option was not given; this
    distinguishes an option on the command line from a default, which a configuration file may override. Options of
    every run, such as --monitor, are included, and `train_or_resume` takes them out.
    """

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        keys = [*rules(config), *(entry.name for entry in _WATCHING)]

        def command(**arguments: Any) -> int:
            return function({key: arguments.pop(key) for key in keys}, **arguments)

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        generated = [_parameter(entry, *rules(config)[entry.name]) for entry in dataclasses.fields(config)]
        parameters = [entry.replace(kind=inspect.Parameter.KEYWORD_ONLY) for entry in (*own, *_WATCHING, *generated)]
        # typer reads the signature and the annotations, which have to agree.
        vars(command)["__signature__"] = inspect.Signature(parameters)  # typer reads it
        command.__annotations__ = {entry.name: entry.annotation for entry in parameters}
        command.__doc__ = function.__doc__
        command.__name__ = function.__name__
        return command

    return decorate


def _parameter(entry: dataclasses.Field[Any], kind: Any, rule: Rule) -> inspect.Parameter:
    words = f"{rule.help}; {rule.describe(kind)}" if len(rule.choices) > 1 else rule.help
    shown = "" if entry.default == "" or kind is bool else f" (default: {entry.default})"
    names = [f"{flag(entry.name)}/--no-{flag(entry.name)[2:]}"] if kind is bool else [flag(entry.name)]
    option = typer.Option(
        *names,
        help=words[0].upper() + words[1:] + shown,
        show_default=False,
        metavar="NAME" if rule.choices else _METAVARS[kind],
        rich_help_panel="Hyperparameters",
    )
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(entry.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _watching(flags: str, kind: Any, metavar: str, help: str, **options: Any) -> inspect.Parameter:
    """Declare the option of a parameter that is named as the first flag."""
    name = flags.removeprefix("--").partition("/")[0].replace("-", "_")
    annotation = Annotated[kind | None, typer.Option(flags, metavar=metavar, help=help, show_default=False, **options)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_TAG = "Words by which `glassgrad runs --tag` finds the run, separated by commas."
_QUIET = "Print only the run directory, at the end; errors still go to standard error."
_MONITOR = "Watch the gradients: a record and four pictures in the run directory; the run stays the same, bit for bit."
_DOCTOR = "Diagnose the run at the end, from the record of --monitor."
_EVERY = "Watch every K-th step (default: so that there are 200 samples)."
_WATCHING = (
    _watching("--tag", str, "TEXT", _TAG),
    _watching("--quiet/--no-quiet", bool, "", _QUIET),
    _watching("--monitor/--no-monitor", bool, "", _MONITOR),
    _watching("--doctor/--no-doctor", bool, "", _DOCTOR),
    _watching("--monitor-every", int, "K", _EVERY, min=1),
)


def _monitoring(options: dict[str, Any], resume: Path | None) -> Monitoring | None:
    """Separate the monitoring options from the others; a resumed run keeps its monitoring."""
    wanted, every = options.pop("monitor", None), options.pop("monitor_every", None)
    if options.pop("doctor", None):
        wanted = True
    if wanted is None:
        wanted = every is not None or (resume is not None and (resume / RECORD).exists())
    elif every is not None and not wanted:
        raise errors.OPTIONS_EXCLUDE(first="--no-monitor", second="--monitor-every", reason="nothing is watched")
    return Monitoring(every or 0) if wanted else None


@contextmanager
def _watched(watching: Monitoring | None, doctor: bool, quiet: bool) -> Iterator[list[int]]:
    """Write the record, however the run ends; draw and diagnose it when the run is done or has failed."""
    codes: list[int] = []
    try:
        yield codes
    except errors.RunError:
        codes.append(0)
        raise
    finally:
        if watching is not None and watching.directory is not None:
            with suppress(OSError):  # a full disk was already reported
                watching.close()
                if codes == [0]:
                    _tell_of_pictures(watching.directory, quiet)
                    if doctor:
                        from glassgrad.train.show.diagnosis import diagnosis

                        print("\n".join(diagnosis(watching.directory)))


def _tell_of_pictures(directory: Path, quiet: bool) -> None:
    try:
        pictures = draw(directory)
    except (ImportError, OSError) as error:
        print(f"gradients  no pictures: {error}", file=sys.stderr)
        return
    if quiet:
        return
    for place, path in enumerate([directory / RECORD, *pictures]):
        print("gradients " if place == 0 else "          ", path)


def train_or_resume(
    kind: TaskKind,
    options: dict[str, Any],
    config: Path | None,
    resume: Path | None,
    run_dir: Path | None,
) -> int:
    """Start a run of a task, or resume the one that `resume` names; return the exit code."""
    from glassgrad.tasks import runner

    doctor, tag = bool(options.get("doctor")), options.pop("tag", None) or ""
    quiet = bool(options.pop("quiet", None))
    ranks = joined()
    if ranks is not None and not ranks.first:  # rank 0 shows and records for all
        doctor, quiet = False, True
        for entry in _WATCHING:
            options.pop(entry.name, None)
    watching = _monitoring(options, resume) if ranks is None or ranks.first else None
    callbacks = [] if watching is None else [watching]
    with _watched(watching, doctor, quiet) as codes:
        if resume is None:
            codes.append(runner.start(kind, options, config, run_dir, callbacks, tag, quiet))
        else:
            for option, value in (("--config", config), ("--run-dir", run_dir)):
                if value is not None:
                    raise errors.OPTIONS_EXCLUDE(first="--resume", second=option, reason="a run keeps its own")
            codes.append(runner.resume(kind, options, resume, callbacks, tag, quiet))
    return codes[0]
