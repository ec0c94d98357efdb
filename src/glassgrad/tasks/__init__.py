"""The tasks of `glassgrad train`: names, digits, text, points in the plane, and any task file added here.

A file that assigns `KINDS` defines tasks; `glassgrad train` has a command for each. It takes options and produces a run
directory. `task.py` is the interface, `runner.py` makes and resumes runs, `learners.py` and `learners_by_hand.py` build
models; `trained.py`, `sample.py` and `exported.py` use a trained one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.base.families import modules_with

if TYPE_CHECKING:
    from glassgrad.tasks.task import TaskKind


def task_kinds() -> list[TaskKind]:
    """Return the tasks of every file in this folder."""
    return [kind for module in modules_with(__name__, "KINDS") for kind in module.KINDS]


__all__ = ["task_kinds"]
