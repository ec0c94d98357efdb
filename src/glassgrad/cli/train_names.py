"""`glassgrad train names`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..train.names import NAMES, NamesConfig
from .options import train_or_resume, with_options


@with_options(NamesConfig)
def names(
    options: dict[str, Any],
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Read hyperparameters from a TOML file.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="RUN", help="Go on with a run that was stopped.")
    ] = None,
    run_dir: Annotated[
        Path | None,
        typer.Option("--run-dir", "--out", metavar="DIR", help="Where to put the run; runs/names-NNN if not given."),
    ] = None,
) -> int:
    """Train a character model on names, then print names of its own making.

    Everything about the run is kept in a directory. Ctrl-C saves and stops; --resume goes on as if nothing had been.
    """
    return train_or_resume(NAMES, options, config, resume, run_dir)
