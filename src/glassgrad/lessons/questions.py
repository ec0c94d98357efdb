"""The questions of the quiz, read from `questions.toml`, in the order of their lessons."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["QUESTIONS", "Question"]


@dataclass(frozen=True)
class Question:
    """One question: its lesson, its text, the choices, the right choice, and the reason."""

    lesson: int
    text: str
    choices: tuple[str, ...]
    right: int
    why: str


def _read(path: Path) -> tuple[Question, ...]:
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["question"]
    return tuple(Question(**{**entry, "choices": tuple(entry["choices"])}) for entry in entries)


QUESTIONS = _read(Path(__file__).with_suffix(".toml"))
