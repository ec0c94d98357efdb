"""`glassgrad report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
) -> int:
    """Write one HTML file about runs, to look at in a browser without a network: findings, curves, layers, settings."""
    from glassgrad.train.show.run_page import write_report

    print(write_report(*runs, path=out))
    return 0
