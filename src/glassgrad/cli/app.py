"""The typer application with its commands."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from glassgrad.cli import (
    doctor,
    explain,
    export,
    info,
    launch,
    lesson,
    lint,
    live,
    playground,
    predict,
    report,
    runs,
    sample,
)

COMMANDS: dict[str, Callable[..., int]] = {
    "launch": launch.launch,
    "sample": sample.sample,
    "predict": predict.predict,
    "eval": predict.evaluate,
    "export": export.export,
    "explain": explain.explain,
    "lesson": lesson.lesson,
    "exercise": lesson.exercise,
    "playground": playground.playground,
    "doctor": doctor.doctor,
    "lint": lint.lint,
    "report": report.report,
    "runs": runs.runs,
    "live": live.live,
    "info": info.info,
}
"""The commands by name, apart from `train`, which has one for each task."""
_SETTINGS = {"launch": {"allow_interspersed_args": False}}  # arguments after the script belong to the script


class _Commands(TyperGroup):
    """The commands; prints a line for an uncaught interrupt, which typer would pass over in silence."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 128 + signal.SIGINT


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print("glassgrad", version("glassgrad"))
        raise typer.Exit


def _top(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def _train() -> typer.Typer:
    from glassgrad.cli.train import command_of
    from glassgrad.tasks import task_kinds

    train = typer.Typer(help="Train a model.", no_args_is_help=True)
    for kind in task_kinds():
        train.command(kind.name)(command_of(kind))
    return train


@functools.cache
def command(name: str = "") -> Any:
    """Return the application as a click command; if a command is named, with that one alone.

    The options of the others take a quarter of a second to read: those of `train` are in the tasks.
    """
    app = typer.Typer(
        cls=_Commands,
        help="Train small networks and look at their gradients.",
        no_args_is_help=True,
        add_completion=True,  # --install-completion, --show-completion
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_top)
    if name not in COMMANDS:
        app.add_typer(_train(), name="train")
    for one in [name] if name in COMMANDS else COMMANDS:
        app.command(one, context_settings=_SETTINGS.get(one))(COMMANDS[one])
    return typer.main.get_command(app)
