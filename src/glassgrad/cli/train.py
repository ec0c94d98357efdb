"""`glassgrad train`: a command for each task of the folder `tasks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.cli.options import Config, Resume, RunDir, train_or_resume, with_options
from glassgrad.tasks.task import TaskKind


def command_of(kind: TaskKind) -> Callable[..., int]:
    """Return the command of a task, with an option for each field of its configuration."""

    def command(options: dict[str, Any], config: Config = None, resume: Resume = None, run_dir: RunDir = None) -> int:
        return train_or_resume(kind, options, config, resume, run_dir)

    command.__name__, command.__doc__ = kind.name, kind.about
    return with_options(kind.config)(command)


__all__ = ["command_of"]
