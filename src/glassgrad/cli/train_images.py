"""`glassgrad train digits` and `glassgrad train mnist`."""

from __future__ import annotations

from typing import Any

from glassgrad.cli.options import Config, Resume, RunDir, train_or_resume, with_options
from glassgrad.tasks.images import DIGITS, MNIST, ImagesConfig, MnistConfig


@with_options(ImagesConfig)
def digits(options: dict[str, Any], config: Config = None, resume: Resume = None, run_dir: RunDir = None) -> int:
    """Train a classifier on the 1,797 handwritten digits of 8 x 8 pixels that come with glassgrad.

    Everything about the run is kept in a directory. Ctrl-C saves and stops; --resume goes on as if nothing had been.
    """
    return train_or_resume(DIGITS, options, config, resume, run_dir)


@with_options(MnistConfig)
def mnist(options: dict[str, Any], config: Config = None, resume: Resume = None, run_dir: RunDir = None) -> int:
    """Train a classifier on the handwritten digits of MNIST, 28 x 28 pixels, read from --data or fetched once.

    Everything about the run is kept in a directory. Ctrl-C saves and stops; --resume goes on as if nothing had been.
    """
    return train_or_resume(MNIST, options, config, resume, run_dir)
