"""`glassgrad train names`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import errors
from ..train.names import NamesConfig
from .options import with_options


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
    from ..train import names_run

    if resume is None:
        return names_run.start(options, config, run_dir)
    for option, value in (("--config", config), ("--run-dir", run_dir)):
        if value is not None:
            raise errors.OPTIONS_EXCLUDE(first="--resume", second=option, reason="a run keeps its own")
    return names_run.resume(options, resume)
