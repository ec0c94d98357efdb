"""`glassgrad train xor` and `glassgrad train moons`."""

from __future__ import annotations

from typing import Any

from glassgrad.cli.options import Config, Resume, RunDir, train_or_resume, with_options
from glassgrad.tasks.plane import MOONS, XOR, MoonsConfig, PlaneConfig


@with_options(PlaneConfig)
def xor(options: dict[str, Any], config: Config = None, resume: Resume = None, run_dir: RunDir = None) -> int:
    """Train a classifier on points around the corners of a square, where opposite corners belong together.

    The run directory holds a picture of the boundary it draws between the two classes.
    """
    return train_or_resume(XOR, options, config, resume, run_dir)


@with_options(MoonsConfig)
def moons(options: dict[str, Any], config: Config = None, resume: Resume = None, run_dir: RunDir = None) -> int:
    """Train a classifier on points along two half circles that reach into each other.

    The run directory holds a picture of the boundary it draws between the two classes.
    """
    return train_or_resume(MOONS, options, config, resume, run_dir)
