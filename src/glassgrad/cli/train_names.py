"""`glassgrad train names`."""

from __future__ import annotations

from typing import Any

from glassgrad.cli.options import Config, Resume, RunDir, train_or_resume, with_options
from glassgrad.tasks.names import NAMES, NamesConfig


@with_options(NamesConfig)
def names(options: dict[str, Any], config: Config = None, resume: Resume = None, run_dir: RunDir = None) -> int:
    """Train a character model on names, then print names of its own making.

    Everything about the run is kept in a directory. Ctrl-C saves and stops; --resume goes on as if nothing had been.
    """
    return train_or_resume(NAMES, options, config, resume, run_dir)
