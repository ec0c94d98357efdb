"""Show lessons and exercises in a terminal: lists, a lesson to read, and the result of a check."""

from __future__ import annotations

import shutil
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

from glassgrad import errors
from glassgrad.lessons.checking import LIMIT, NOT_YET, RIGHT, WRONG, LoadError, Outcome, is_loading, judge, load
from glassgrad.lessons.exercise import Exercise, Names, exercises
from glassgrad.lessons.program import PROSE, Cell, Program

__all__ = ["check", "judged", "listed", "markdown", "plain", "summary", "verdict", "width"]

_MARKS = {RIGHT: "right", WRONG: "WRONG", "error": "ERROR", NOT_YET: "open"}


def width() -> int:
    """Return the width of text in this terminal."""
    return min(max(shutil.get_terminal_size().columns, 40), 100)


def listed(programs: Iterable[Program], note: Callable[[Program], str] = lambda _: "") -> str:
    """Return a list of programs: number, title, and one line about each."""
    lines = []
    for program in programs:
        lines.append(f"{program.number:>3}  {program.title}{note(program)}")
        lines += textwrap.wrap(program.summary, width() - 5, initial_indent=" " * 5, subsequent_indent=" " * 5)
    return "\n".join(lines) + "\n"


def markdown(program: Program, cells: Iterable[Cell] | None = None) -> str:
    """Return a lesson, or some cells of it, as Markdown."""
    parts = [f"# {program.number}. {program.title}", program.summary] if cells is None else []
    shown = program.cells if cells is None else cells
    parts += [cell.text if cell.kind == PROSE else f"```python\n{cell.code}\n```" for cell in shown]
    return "\n\n".join(parts) + "\n"


def plain(program: Program, cells: Iterable[Cell] | None = None) -> str:
    """Return a lesson, or some cells of it, as text for a pipe or a terminal without colours."""
    parts = []
    if cells is None:
        title = f"{program.number}. {program.title}"
        parts = [f"{title}\n{'=' * len(title)}", program.summary]
    for cell in program.cells if cells is None else cells:
        parts.append(cell.text if cell.kind == PROSE else textwrap.indent(cell.code, "    "))
    return "\n\n".join(parts) + "\n"


def judged(exercise: Exercise, names: Names, write: Callable[[str], object], limit: float = LIMIT) -> list[Outcome]:
    """Judge an exercise and write a line for each step as soon as it is judged, and a summary."""
    write(f"Exercise {exercise.number}: {exercise.starter.title}\n\n")
    outcomes: list[Outcome] = []
    waiting: list[str] = []  # steps without a hint share a line
    for outcome in judge(exercise, names, limit):
        outcomes.append(outcome)
        if outcome.state == NOT_YET and not outcome.text:
            waiting.append(outcome.step)
            continue
        write(_open(waiting) + _line(outcome))
        waiting = []
    write(_open(waiting))
    write(f"\n{summary(exercise, outcomes)}\n")
    return outcomes


def _open(names: list[str]) -> str:
    if not names:
        return ""
    lines = textwrap.wrap(
        "; ".join(names), width(), initial_indent=f"  {_MARKS[NOT_YET]:<6} ", subsequent_indent=" " * 9
    )
    return "\n".join(lines) + "\n"


def _line(outcome: Outcome) -> str:
    lines = [f"  {_MARKS[outcome.state]:<6} {outcome.step}"]
    for text in outcome.text.splitlines():
        indent = " " * 9
        lines += textwrap.wrap(text, width(), initial_indent=indent, subsequent_indent=indent) or [""]
    return "\n".join(lines) + "\n"


def summary(exercise: Exercise, outcomes: list[Outcome]) -> str:
    """Return the progress of an exercise, and what to do next."""
    count = {state: sum(outcome.state == state for outcome in outcomes) for state in _MARKS}
    if count[RIGHT] == len(outcomes):
        return f"All {len(outcomes)} steps are right." if len(outcomes) > 1 else "It is right."
    wrong = count[WRONG] + count["error"]
    parts = [f"{count[RIGHT]} of {len(outcomes)} steps right"]
    parts += [f"{wrong} wrong"] if wrong else []
    parts += [f"{count[NOT_YET]} not done yet"] if count[NOT_YET] else []
    stuck = next((one for one in outcomes if one.state not in {RIGHT, NOT_YET}), None)
    ask = "" if stuck is None else f'glassgrad exercise {exercise.number} --answer "{stuck.step}"'
    read = f"\nStuck? This shows the part of the lesson that works it out:\n{ask}" if ask else ""
    return ", ".join(parts) + "." + read


def check(number: int, names: Names | None = None) -> bool:
    """Judge an exercise in the calling program or notebook; print the progress and return whether all is right.

    Args:
        number: the number of the exercise.
        names: the names to judge; those of the caller if not given.

    Example:
        >>> check(1, names=exercises()[0].given)
        Exercise 1: ...
        False
    """
    if is_loading():
        return False
    names = sys._getframe(1).f_globals if names is None else names
    found = [one for one in exercises() if one.number == number]
    if not found:
        raise errors.EXERCISE_UNKNOWN(given=number, known=", ".join(str(one.number) for one in exercises()))
    outcomes = judged(found[0], names, sys.stdout.write)
    return all(outcome.state == RIGHT for outcome in outcomes)


def verdict(number: int, text: str) -> dict[str, object]:
    """Judge a text as the answer to an exercise; return whether it passes, a message, and a hint for each open step.

    Example:
        >>> verdict(1, "")["passed"]
        False
    """
    chosen = next(one for one in exercises() if one.number == number)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"exercise_{number:02}.py"
        path.write_text(text, encoding="utf-8", newline="\n")
        try:
            outcomes = list(judge(chosen, load(path)))
        except LoadError as error:
            return {"passed": False, "message": str(error), "hints": []}
    left = [one for one in outcomes if one.state != RIGHT]
    hints = [f"{one.step}: {one.text or 'not done yet'}" for one in left]
    return {"passed": not left, "message": summary(chosen, outcomes), "hints": hints}
