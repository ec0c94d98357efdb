"""The quiz: ask questions one by one, and explain each after its answer."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glassgrad import errors
from glassgrad.lessons.questions import QUESTIONS, Question

__all__ = ["Score", "ask", "chosen"]

LETTERS = "abcdefgh"
STOP = {"q", "quit", "exit"}


@dataclass(frozen=True)
class Score:
    """How many answers were right, how many questions were answered, and the lessons of those answered wrongly."""

    right: int
    asked: int
    again: tuple[int, ...]

    def __str__(self) -> str:
        if not self.asked:
            return "Nothing was answered."
        lessons = "" if not self.again else f"; to read again: {_listed(self.again)}"
        return f"{self.right} of {self.asked} right{lessons}."


def chosen(lesson: int | None, count: int, rng: random.Random) -> list[Question]:
    """Return the questions on a lesson in order, or some on all lessons, drawn by a generator.

    Args:
        lesson: its number; None for all.
        count: the number of questions; 0 for all.
        rng: the generator that draws when there are more than `count`.

    Raises:
        errors.InputError: there are none on this lesson.

    Example:
        >>> [question.lesson for question in chosen(7, 0, random.Random(0))]
        [7, 7]
    """
    found = [question for question in QUESTIONS if lesson in {None, question.lesson}]
    if not found:
        known = sorted({question.lesson for question in QUESTIONS})
        raise errors.QUIZ_EMPTY(given=lesson, known=", ".join(map(str, known)))
    if 0 < count < len(found):
        places = sorted(rng.sample(range(len(found)), count))
        found = [found[place] for place in places]
    return found


def ask(
    questions: Sequence[Question],
    read: Callable[[str], str | None],
    write: Callable[[str], object],
    rng: random.Random,
    width: int = 100,
) -> Score:
    """Ask questions, and explain each after its answer.

    Args:
        questions: the questions to ask.
        read: shows a prompt and returns a line; None at the end of input, which ends the quiz.
        write: takes text.
        rng: shuffles the choices.
        width: the width of the text.
    """
    right, asked = 0, 0
    again: list[int] = []
    for number, question in enumerate(questions, start=1):
        order = rng.sample(range(len(question.choices)), len(question.choices))
        write(f"\n{_wrapped(f'{number}. ', f'{question.text} (lesson {question.lesson})', width)}\n")
        for letter, place in zip(LETTERS, order, strict=False):
            write(_wrapped(f"   {letter}) ", question.choices[place], width))
        answer = _answer(LETTERS[: len(order)], read, write)
        if answer is None:
            break
        asked += 1
        correct = LETTERS[order.index(question.right)]
        if answer == correct:
            right += 1
            verdict = "Right. "
        else:
            again.append(question.lesson)
            verdict = f"No, it is {correct}) {question.choices[question.right]}. "
        write("\n" + _wrapped("   ", verdict.replace("?. ", "? ") + question.why, width))
    return Score(right, asked, tuple(sorted(set(again))))


def _answer(letters: str, read: Callable[[str], str | None], write: Callable[[str], object]) -> str | None:
    """Read lines until one is a valid letter; return None to stop."""
    while (line := read(f"\nYour answer ({letters[0]}-{letters[-1]}, q to stop): ")) is not None:
        word = line.strip().lower().rstrip(").")
        if word in STOP:
            return None
        if len(word) == 1 and word in letters:
            return word
        write(f"One letter, {', '.join(letters[:-1])} or {letters[-1]}; q stops.\n")
    return None


def _wrapped(first: str, text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=" " * len(first)) + "\n"


def _listed(lessons: Sequence[int]) -> str:
    numbers = [str(number) for number in lessons]
    if len(numbers) == 1:
        return f"lesson {numbers[0]}"
    return f"lessons {', '.join(numbers[:-1])} and {numbers[-1]}"
