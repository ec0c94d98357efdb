"""Runnable lessons on backpropagation, and exercises with automatic checks.

`glassgrad lesson` and `glassgrad exercise` show them. A lesson is a program in `programs/`; an exercise is a program
with gaps in `starters/` and the judge of its steps in `judges/`. Lessons use `figure` and `chart`; a program calls
`check` to judge its own exercise. `program.py` cuts programs into cells, `checking.py` runs and judges, `showing.py`
prints, `writing.py` and `notebook.py` write files; `quiz.py` asks the questions of `questions.py`.
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
    """Load the judging functions on first use: a lesson does not need them."""
    import importlib

    homes = {"check": "showing", "Exercise": "exercise", "exercises": "exercise"}
    if name not in homes:
        raise missing(__name__, name, __all__)
    return getattr(importlib.import_module(f"{__name__}.{homes[name]}"), name)
