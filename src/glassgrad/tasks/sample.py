"""`glassgrad sample`: words and texts from the model in a run directory or a model file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.tasks import names, text
from glassgrad.tasks.drawing import SampleOptions, prompted, sample_pieces, sample_words
from glassgrad.tasks.trained import open_trained
from glassgrad.train.config import command_line, flag, resolve
from glassgrad.train.learners.learner import Learner


def sample_options(given: Mapping[str, Any]) -> SampleOptions:
    """Return the options, with defaults for None. Raises `errors.InputError` naming an invalid one."""
    return resolve(SampleOptions, [command_line(given)])


GENERATING = (names.TASK, text.TASK)
"""The tasks whose models generate text."""


def load_model(path: Path) -> tuple[Learner, Mapping[str, Any]]:
    """Return the model in a run directory or a model file, and the description stored with it.

    Raises `errors.InputError` if there is none, if it is damaged, or if it is not a character model.
    """
    trained = open_trained(path, GENERATING, errors.SAMPLE_OTHER_MODEL)
    return trained.learner, trained.description


def sample(learner: Learner, description: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the output of `glassgrad sample` in pieces as they are drawn; raise `errors.InputError` before that."""
    options = sample_options(given)
    prompted(description, options, words=description["task"] == names.TASK)
    if description["task"] == names.TASK:
        if given.get("length") is not None:
            raise errors.SAMPLE_NO_EFFECT(name=flag("length"), task="names, whose words end by themselves")
        yield from (f"{word}\n" for word in sample_words(learner, description, options))
        return
    for place, pieces in enumerate(sample_pieces(learner, description, options)):
        if place:
            yield f"{'':-<40}\n"
        yield from pieces
        yield "\n"
