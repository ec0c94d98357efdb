"""`glassgrad sample`: words and texts from the model in a run directory or a model file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.tasks import names, text
from glassgrad.tasks.drawing import SampleOptions, prompted, sample_texts, sample_words
from glassgrad.train.config import command_line, flag, resolve
from glassgrad.train.kept.checkpoint import load_checkpoint
from glassgrad.train.kept.rundir import MODEL
from glassgrad.train.learner import Learner


def sample_options(given: Mapping[str, Any]) -> SampleOptions:
    """Return the options with defaults for those given as None. Raises `errors.InputError` naming a wrong one."""
    return resolve(SampleOptions, [command_line(given)])


def load_model(path: Path) -> tuple[Learner, dict[str, Any]]:
    """Return the model in a run directory or a model file, and the description stored with it.

    Raises `errors.InputError` if there is none, if it is damaged, or if it is not a character model.
    """
    if not path.exists():
        raise errors.RUN_MISSING(path=path, reason="there is no such file or directory")
    file = path / MODEL if path.is_dir() else path
    if not file.is_file():
        raise errors.RUN_MISSING(path=path, reason=f"the directory has no {MODEL}")
    arrays, description = load_checkpoint(file)
    if str(description.get("task")) not in _BUILDERS:
        raise errors.SAMPLE_OTHER_MODEL(path=file, what=_what(description), known=" and ".join(_BUILDERS))
    try:
        learner = _BUILDERS[description["task"]](description)
        learner.load_weights(arrays)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, OverflowError, MemoryError) as error:
        raise errors.SAMPLE_CANNOT_BUILD(path=file, reason=" ".join(str(error).split())) from None
    return learner, description


def _what(description: Mapping[str, Any]) -> str:
    """Name the content of an intact file that holds no character model."""
    task = description.get("task")
    if isinstance(task, str):
        return f"a model of the task {task!r}"
    return "a checkpoint to go on from" if "parts" in description else "weights of a model of your own"


def _names_learner(description: Mapping[str, Any]) -> Learner:
    config = names.NamesConfig(**description["config"])
    return names.build_learner(config, len(description["alphabet"]) + 1, description["longest"])


def _text_learner(description: Mapping[str, Any]) -> Learner:
    return text.build_learner(text.TextConfig(**description["config"]), len(description["alphabet"]))


_BUILDERS: dict[str, Callable[[Mapping[str, Any]], Learner]] = {names.TASK: _names_learner, text.TASK: _text_learner}


def sample(learner: Learner, description: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the output of `glassgrad sample` by lines. Raises `errors.InputError` before anything is drawn."""
    options = sample_options(given)
    prompted(description, options, words=description["task"] == names.TASK)
    if description["task"] == names.TASK:
        if given.get("length") is not None:
            raise errors.SAMPLE_NO_EFFECT(name=flag("length"), task="names, whose words end by themselves")
        yield from sample_words(learner, description, options)
        return
    for place, one in enumerate(sample_texts(learner, description, options)):
        if place:
            yield f"{'':-<40}"
        yield one
