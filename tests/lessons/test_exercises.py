"""A hidden solution solves every exercise; typical mistakes are refused, each with the right hint."""

from __future__ import annotations

import importlib.util
import linecache
from functools import cache
from pathlib import Path

import pytest

from glassgrad.lessons import exercises, programs
from glassgrad.lessons.checking import LIMIT, NOT_YET, RIGHT, judge
from glassgrad.lessons.exercise import Exercise

HERE = Path(__file__).parent
EXERCISES = {exercise.starter.path.stem: exercise for exercise in exercises()}
LEAST = 6


def solution(stem: str) -> str:
    return (HERE / "solutions" / f"{stem}.py").read_text(encoding="utf-8")


@cache
def mistakes(stem: str) -> list[tuple[str, str, str, str]]:
    spec = importlib.util.spec_from_file_location(f"mistakes_{stem}", HERE / "mistakes" / f"{stem}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MISTAKES


def handed_in(exercise: Exercise, filled: str, name: str) -> dict:
    """Return the names of a program in which the gaps are filled in: what is defined again counts."""
    text = f"{exercise.starter.text}\n\n{filled}"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"__name__": "exercise", "__file__": name}
    exec(compile(text, name, "exec"), names)  # noqa: S102 - what a learner would have written
    return names


CASES = [(stem, number) for stem in EXERCISES for number in range(len(mistakes(stem)))]


@pytest.mark.parametrize("stem", EXERCISES)
def test_the_solution_is_right(stem):
    exercise = EXERCISES[stem]
    outcomes = list(judge(exercise, handed_in(exercise, solution(stem), f"{stem}-solved.py")))
    assert [(one.step, one.text) for one in outcomes if one.state != RIGHT] == []


@pytest.mark.parametrize("stem", EXERCISES)
def test_nothing_is_right_or_wrong_before_it_is_filled_in(stem):
    exercise = EXERCISES[stem]
    assert {outcome.state for outcome in judge(exercise, exercise.given)} == {NOT_YET}


@pytest.mark.parametrize(("stem", "number"), CASES)
def test_a_mistake_gets_its_hint(stem, number):
    exercise = EXERCISES[stem]
    right, wrong, name, words = mistakes(stem)[number]
    assert right in solution(stem), "the solution has changed: adapt the table"
    names = handed_in(exercise, solution(stem).replace(right, wrong), f"{stem}-{number}.py")
    (step,) = [one for one in exercise.steps if one.name == name]
    limit = 0.5 if "come to an end" in words else LIMIT
    (outcome,) = judge(exercise, names, limit, only=step)
    assert outcome.state not in {RIGHT, NOT_YET}
    assert words in outcome.text.replace("\n", " ")


@pytest.mark.parametrize("stem", EXERCISES)
def test_there_are_enough_mistakes_and_the_lesson_answers_every_step(stem):
    exercise = EXERCISES[stem]
    assert len({(right, wrong) for right, wrong, _, _ in mistakes(stem)}) >= LEAST
    (lesson,) = [one for one in programs() if one.number == exercise.number]
    assert lesson.path.stem == stem
    for step in exercise.steps:
        assert lesson.section(step.section), f"lesson {exercise.number} has no part {step.section!r}"
    assert len({step.name for step in exercise.steps}) == len(exercise.steps)
    assert exercise.starter.summary.endswith(".")


def test_a_starter_takes_definitions_from_its_lesson_with_the_prose_above_them():
    text = EXERCISES["15_find_the_bug"].starter.text
    assert "From the lesson" not in text
    assert "tell(" not in text
    assert "    return ended(model)\n\n\n# ## Loop 2\n\n\ndef loop_2(watch=watched):\n" in text
