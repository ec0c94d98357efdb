"""An exercise: a starter with gaps, and named steps that judge what was filled in.

The starter is a program in `starters/`, with its title, text and gaps. The judge is the module of the same name in
`judges/`, whose `STEPS` holds the steps. A solution is in neither.
"""

from __future__ import annotations

import importlib
import inspect
import linecache
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from glassgrad.lessons.program import Program, execute, programs

__all__ = ["OPEN", "Answer", "Exercise", "Names", "Step", "Steps", "Verdict", "exercises"]

Names = dict[str, Any]
Answer = Callable[..., Any]  # a function that the learner has written
Verdict = str | None  # a hint, or None for a right answer
Judge = Callable[..., Verdict | Iterator[Verdict]]  # if it yields several, the first hint counts
OPEN = "not done yet"  # the hint of a judge that finds nothing to judge


@dataclass(frozen=True)
class Step:
    """One thing to do.

    Attributes:
        name: its name, which learners see and give after `--answer`.
        judge: a function of the learner's names and of `given`. It returns a hint, or None if all is right; or it
            yields several of these, of which the first hint counts.
        takes: the names that the judge is called with.
        gaps: the names that must have been changed before there is something to judge, as `f` or `Class.method`.
        section: the heading of the lesson below which the answer is.
    """

    name: str
    judge: Judge
    takes: tuple[str, ...]
    gaps: tuple[str, ...]
    section: str


class Steps:
    """The steps of an exercise, in order; calling it makes a decorator for the judge of one step.

    The parameters of a judge are names of the learner's program; `given` is the untouched starter, as a dictionary.

        >>> steps = Steps()
        >>> @steps("the square", section="Squares")
        ... def _square(square):
        ...     return None if square(3) == 9 else "multiply x with itself"
        >>> [step.name for step in steps], next(iter(steps)).gaps
        (['the square'], ('square',))
    """

    def __init__(self) -> None:
        self._all: list[Step] = []

    def __call__(self, name: str, *, section: str, gaps: Sequence[str] | None = None) -> Callable[[Judge], Judge]:
        def added(judge: Judge) -> Judge:
            takes = tuple(inspect.signature(judge).parameters)
            own = tuple(one for one in takes if one != "given") if gaps is None else tuple(gaps)
            self.add(Step(name, judge, takes, own, section))
            return judge

        return added

    def add(self, step: Step) -> None:
        """Append a step."""
        self._all.append(step)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._all)


def first_hint(said: Verdict | Iterator[Verdict]) -> Verdict:
    """Return what a judge has returned, or the first hint that it yields."""
    if said is None or isinstance(said, str):
        return said
    return next((hint for hint in said if hint is not None), None)


@dataclass(frozen=True)
class Exercise:
    """The exercise to a lesson.

    Example:
        >>> from glassgrad.lessons import exercises
        >>> exercises()[0].number
        1
    """

    starter: Program

    @property
    def number(self) -> int:
        """The number of the lesson."""
        return self.starter.number

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the judge, which is loaded on first use."""
        judge = importlib.import_module(f"glassgrad.lessons.judges.{self.starter.path.stem}")
        return tuple(judge.STEPS)

    @cached_property
    def given(self) -> Names:
        """The names of the untouched starter."""
        text, file = self.starter.text, f"exercise {self.number} as given"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # the file is shorter
        names: Names = {"__name__": "exercise", "__file__": str(self.starter.path)}
        execute(compile(text, file, "exec"), names)
        return names


def exercises() -> list[Exercise]:
    """Return the exercises, in the order of their lessons.

    Example:
        >>> from glassgrad.lessons import exercises
        >>> exercises()[0].number
        1
    """
    return [Exercise(starter) for starter in programs("starters")]
