"""`glassgrad train text`."""

from __future__ import annotations

from typing import Any

from glassgrad.cli.options import Config, Resume, RunDir, train_or_resume, with_options
from glassgrad.tasks.text import TEXT, TextConfig


@with_options(TextConfig)
def text(options: dict[str, Any], config: Config = None, resume: Resume = None, run_dir: RunDir = None) -> int:
    """Train a GPT of characters on the text in --data, then print text of its own making.

    Everything about the run is kept in a directory. Ctrl-C saves and stops; --resume goes on as if nothing had been.
    """
    return train_or_resume(TEXT, options, config, resume, run_dir)
