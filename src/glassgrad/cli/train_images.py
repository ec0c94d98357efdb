"""`glassgrad train digits` and `glassgrad train mnist`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..train.images import DIGITS, MNIST, ImagesConfig, MnistConfig
from .options import train_or_resume, with_options

_Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Read hyperparameters from a TOML file.")
]
_Resume = Annotated[Path | None, typer.Option("--resume", metavar="RUN", help="Go on with a run that was stopped.")]
_HELP = "Where to put the run; the next free number under runs/ if not given."
_RunDir = Annotated[Path | None, typer.Option("--run-dir", "--out", metavar="DIR", help=_HELP)]


@with_options(ImagesConfig)
def digits(options: dict[str, Any], config: _Config = None, resume: _Resume = None, run_dir: _RunDir = None) -> int:
    """Train a classifier on the 1,797 handwritten digits of 8 x 8 pixels that come with glassgrad.

    Everything about the run is kept in a directory. Ctrl-C saves and stops; --resume goes on as if nothing had been.
    """
    return train_or_resume(DIGITS, options, config, resume, run_dir)


@with_options(MnistConfig)
def mnist(options: dict[str, Any], config: _Config = None, resume: _Resume = None, run_dir: _RunDir = None) -> int:
    """Train a classifier on the handwritten digits of MNIST, 28 x 28 pixels, read from --data or fetched once.

    Everything about the run is kept in a directory. Ctrl-C saves and stops; --resume goes on as if nothing had been.
    """
    return train_or_resume(MNIST, options, config, resume, run_dir)
