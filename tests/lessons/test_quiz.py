"""The quiz: its questions, and the order of its output."""

from __future__ import annotations

import random
import re

import pytest

from glassgrad.errors import InputError
from glassgrad.lessons import programs
from glassgrad.lessons.questions import QUESTIONS
from glassgrad.lessons.quiz import LETTERS, ask, chosen


class Person:
    """Answers by a plan, and keeps what was on the screen before each answer and after it."""

    def __init__(self, plan):
        self.plan, self.shown, self.screens = iter(plan), "", []

    def write(self, text):
        self.shown += text

    def read(self, prompt):
        self.screens.append(self.shown + prompt)
        self.shown = ""
        return next(self.plan, None)


def letter_of(question, screen):
    """The letter under which the right choice stands on a screen."""
    (letter,) = re.findall(rf"^ +([a-h])\) {re.escape(question.choices[question.right])}$", screen, re.MULTILINE)
    return letter


def test_questions_are_complete():
    assert len(QUESTIONS) >= 20
    assert {question.lesson for question in QUESTIONS} == {program.number for program in programs()}
    assert [question.lesson for question in QUESTIONS] == sorted(question.lesson for question in QUESTIONS)
    for question in QUESTIONS:
        assert 0 <= question.right < len(question.choices) == len(set(question.choices)) <= len(LETTERS)
        assert question.text[-1] in "?."
        assert question.why.endswith(".")
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS)


def test_numbers_in_the_answers_are_right():
    by_text = {question.text[:24]: question.choices[question.right] for question in QUESTIONS}
    a, h = 3.0, 1e-6
    assert float(by_text["y = a * a + a at a = 3. "]) == round(((a + h) ** 2 + a + h - a * a - a) / h)
    x, rate = 1.0, float(by_text["Gradient descent on a bo"])
    for _ in range(9):
        x -= rate * 10 * x
    assert abs(x) == 1.0  # neither falls nor grows
    assert float(by_text["With which standard devi"]) == (2 / 200) ** 0.5
    assert 0.5e-6 < 0.25**10 < 2e-6
    assert by_text["The largest slope of a s"] == "a millionth"


def test_an_answer_is_shown_after_it_was_given_and_not_before():
    person = Person([])
    position = iter(QUESTIONS)

    def right(prompt):
        person.read(prompt)
        return letter_of(next(position), person.screens[-1])

    score = ask(QUESTIONS, right, person.write, random.Random(1), width=10_000)
    assert (score.right, score.asked, score.again) == (len(QUESTIONS), len(QUESTIONS), ())
    screens = [*person.screens, person.shown]
    for number, question in enumerate(QUESTIONS):
        assert question.text in screens[number]
        assert question.why not in "".join(screens[: number + 1])
        assert f"Right. {question.why}" in screens[number + 1]


def test_wrong_answers_are_explained_and_name_the_lesson():
    questions = chosen(3, 0, random.Random(0)) + chosen(10, 0, random.Random(0))
    person = Person([])
    position = iter(questions)

    def wrong(prompt):
        person.read(prompt)
        return "b)" if letter_of(next(position), person.screens[-1]) == "a" else " A \n"

    score = ask(questions, wrong, person.write, random.Random(2), width=10_000)
    assert (score.right, score.asked, score.again) == (0, 4, (3, 10))
    assert str(score) == "0 of 4 right; to read again: lessons 3 and 10."
    assert re.search(
        r"No, it is [a-d]\) neither|No, it is [a-d]\) the length only\. All entries", "".join(person.screens)
    )


@pytest.mark.parametrize("plan", [["x", "", "ab", "q"], ["5"], []], ids=["q", "no letter", "end"])
def test_it_ends_when_asked_to_or_when_the_input_does(plan):
    person = Person(plan)
    score = ask(QUESTIONS[:2], person.read, person.write, random.Random(0))
    assert (score.asked, str(score)) == (0, "Nothing was answered.")
    assert "".join([*person.screens, person.shown]).count("One letter, a, b, c or d; q stops.") == len(plan) - (
        "q" in plan
    )
    assert not any(question.why[:30] in "".join(person.screens) + person.shown for question in QUESTIONS[:2])


def test_questions_are_drawn_or_those_of_a_lesson():
    drawn = chosen(None, 10, random.Random(0))
    assert len(drawn) == len(set(drawn)) == 10
    assert drawn != chosen(None, 10, random.Random(1))
    assert [question.lesson for question in drawn] == sorted(question.lesson for question in drawn)
    assert chosen(None, 0, random.Random(0)) == list(QUESTIONS)
    assert {question.lesson for question in chosen(12, 10, random.Random(0))} == {12}
    with pytest.raises(InputError, match="no questions on lesson 99; it has some on 1, 2, 3"):
        chosen(99, 0, random.Random(0))
