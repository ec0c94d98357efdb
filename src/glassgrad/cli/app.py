"""The typer application with its commands."""

from __future__ import annotations

import functools
import signal
import sys
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
from glassgrad.cli.train import command_of
from glassgrad.tasks import task_kinds


class _Commands(TyperGroup):
    """The commands; prints a line for an uncaught interrupt, which typer would pass over in silence."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 128 + signal.SIGINT


app = typer.Typer(
    cls=_Commands,
    help="Train small networks and look at their gradients.",
    no_args_is_help=True,
    add_completion=True,  # --install-completion, --show-completion
    context_settings={"help_option_names": ["-h", "--help"]},
)
train = typer.Typer(help="Train a model.", no_args_is_help=True)
app.add_typer(train, name="train")
for _kind in task_kinds():
    train.command(_kind.name)(command_of(_kind))
# Arguments after the script belong to the script.
app.command("launch", context_settings={"allow_interspersed_args": False})(launch.launch)
app.command("sample")(sample.sample)
app.command("predict")(predict.predict)
app.command("eval")(predict.evaluate)
app.command("export")(export.export)
app.command("explain")(explain.explain)
app.command("lesson")(lesson.lesson)
app.command("exercise")(lesson.exercise)
app.command("playground")(playground.playground)
app.command("doctor")(doctor.doctor)
app.command("lint")(lint.lint)
app.command("report")(report.report)
app.command("runs")(runs.runs)
app.command("live")(live.live)
app.command("info")(info.info)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print("glassgrad", version("glassgrad"))
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@functools.cache
def command() -> Any:
    """Return the application as a click command; reading the options of all commands takes 50 ms."""
    return typer.main.get_command(app)
