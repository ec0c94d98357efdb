"""What can be opened: examples, the programs of the lessons, and the exercises with their judges."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from glassgrad import errors
from glassgrad.lessons.program import Program, for_readers, programs

if TYPE_CHECKING:
    from glassgrad.lessons.playground.runner import Runner

Data = dict[str, object]
FOLDER = Path(__file__).parent / "examples"


@cache
def _examples() -> dict[str, Program]:
    """Return the examples by name, then lessons and exercises by their numbers."""
    own = [Program(path) for path in sorted(FOLDER.glob("[0-9][0-9]_*.py"))]
    found = {one.path.stem[3:]: one for one in own}
    found |= {f"lesson-{one.number:02}": one for one in programs()}
    return found | {f"exercise-{one.number:02}": one for one in programs("starters")}


def listed() -> list[Data]:
    """Return the names, titles and descriptions of all that can be opened.

    Example:
        >>> listed()[0]["name"]
        'product_and_sine'
    """
    return [
        {"name": name, "title": one.title, "about": one.summary, "lesson": name.startswith("lesson-")}
        for name, one in _examples().items()
    ]


def _found(name: str) -> Program:
    found = _examples().get(name)
    if found is None:
        raise errors.PLAYGROUND_EXAMPLE(given=name, known=", ".join(_examples()))
    return found


def text_of(name: str) -> str:
    """Return the program of an example, without comments for the linter.

    Raises:
        InputError: there is no such example.
    """
    return for_readers(_found(name).text)


def example(name: str) -> Data:
    """Return an example with its title, its program, and the questions of the quiz about a lesson.

    Raises:
        InputError: there is no such example.
    """
    found = _found(name)
    return {"name": name, "title": found.title, "text": text_of(name), "questions": _questions(name, found.number)}


def _questions(name: str, number: int) -> list[Data]:
    if not name.startswith("lesson-"):
        return []
    from glassgrad.lessons.questions import QUESTIONS

    return [
        {"question": one.text, "answer": f"{one.choices[one.right]}. {one.why}"}
        for one in QUESTIONS
        if one.lesson == number
    ]


def judged(runner: Runner, name: str, text: str) -> Data:
    """Judge the text of an exercise in a process with limits.

    Raises:
        InputError: there is no such exercise.
    """
    if not name.startswith("exercise-"):
        raise errors.PLAYGROUND_EXAMPLE(given=name, known=", ".join(one for one in _examples() if "exercise" in one))
    said: dict[object, str] = {}
    for event in runner.run(_JUDGE.format(_found(name).number, text), [], 0):
        said[event.get("stream", event["event"])] = str(event.get("text", event.get("message")))
    stopped = said.get("stopped", said.get("error"))
    if stopped is not None:
        return {"passed": False, "message": stopped, "hints": []}
    verdict: Data = json.loads(said["stdout"])
    return verdict


_JUDGE = """\
import contextlib, io, json, sys
from glassgrad.lessons.showing import verdict
with contextlib.redirect_stdout(io.StringIO()): found = verdict({}, {!r})
sys.stdout.write(json.dumps(found))
"""
