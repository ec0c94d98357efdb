"""`glassgrad report`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Kind(StrEnum):
    """How figures are written."""

    png = "png"
    svg = "svg"
    pdf = "pdf"


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="Where to write it (default: report.html in the run, or here for several).",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write figures for a paper into this folder, and no page."),
    ] = None,
    graph: Annotated[
        bool | None,
        typer.Option(
            "--graph/--no-graph",
            help="Draw the graph of the run's next step into step.html beside the page (default: for one run).",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[Kind, typer.Option("--format", help="The format of the figures.")] = Kind.png,
) -> int:
    """Write one HTML file about runs for a browser without a network: findings, curves, layers, settings."""
    from glassgrad.train.show.run_page import write_report

    if figures is not None:
        from glassgrad.train.show.figures import write_figures

        for run in runs:
            for path in write_figures(run, figures / run.resolve().name if len(runs) > 1 else figures, format=kind):
                print(path)
        return 0
    drawn = None
    if graph if graph is not None else len(runs) == 1:
        for run in runs:
            drawn = _drawn(run, told=graph is not None)
            if drawn is not None:
                print(drawn)
    print(write_report(*runs, path=out))
    return 0


def _drawn(run: Path, *, told: bool) -> Path | None:
    """Draw the graph of a step and return its path. On failure raise if it was requested (`told`), else print why."""
    from glassgrad.errors import InputError
    from glassgrad.tasks.run_graph import rebuild_graph
    from glassgrad.train.kept.rundir import METRICS

    try:
        return rebuild_graph(run)
    except InputError as error:
        if told:
            raise
        if (run / METRICS).is_file():  # else the page says so
            print(error, file=sys.stderr)
    return None
