"""Lessons on backpropagation that run, and exercises that judge what was filled in.

`glassgrad lesson` and `glassgrad exercise` are the way to them. A lesson is a program in `programs/`, an exercise a
program with gaps in `starters/` and the judge of its steps in `judges/`. Lessons use `figure` and `chart`; `check`
judges an exercise from within.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from glassgrad.errors.missing import lister, missing
from glassgrad.lessons.figures import chart, figure
from glassgrad.lessons.program import Program, programs

if TYPE_CHECKING:
    from glassgrad.lessons.exercise import Exercise, exercises
    from glassgrad.lessons.showing import check

__all__ = ["Exercise", "Program", "chart", "check", "exercises", "figure", "programs"]

__dir__ = lister(__name__)


def __getattr__(name: str) -> Any:
    """Load what judges when it is asked for: a lesson needs none of it."""
    import importlib

    homes = {"check": "showing", "Exercise": "exercise", "exercises": "exercise"}
    if name not in homes:
        raise missing(__name__, name, __all__)
    return getattr(importlib.import_module(f"{__name__}.{homes[name]}"), name)
