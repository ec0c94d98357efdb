"""A trained model from its run directory or its model file, for the commands that use one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.tasks import task_kinds
from glassgrad.tasks.task import Prediction, TaskKind, with_data_in
from glassgrad.train.config import Layer, flag, read_toml, rules
from glassgrad.train.kept.checkpoint import load_checkpoint
from glassgrad.train.kept.rundir import MODEL, RunDirectory
from glassgrad.train.learners.learner import Learner


@dataclass(frozen=True)
class Trained:
    """A task's model with its weights, its description, and its file."""

    kind: TaskKind
    learner: Learner
    description: Mapping[str, Any]
    file: Path


def open_trained(path: Path, tasks: Sequence[str] = (), refusal: errors.Message = errors.MODEL_OF_NO_TASK) -> Trained:
    """Return the model in a run directory or a model file; `tasks` are the accepted ones, by default all.

    Raises `errors.InputError` if there is none or if it is damaged, and `refusal` if it is not from an accepted task.
    """
    if not path.exists():
        raise errors.RUN_MISSING(path=path, reason="there is no such file or directory")
    file = path / MODEL if path.is_dir() else path
    if not file.is_file():
        raise errors.RUN_MISSING(path=path, reason=f"the directory has no {MODEL}")
    arrays, description = load_checkpoint(file)
    kinds = {kind.name: kind for kind in task_kinds() if kind.restore and kind.name in (tasks or (kind.name,))}
    kind = kinds.get(str(description.get("task")))
    if kind is None or kind.restore is None:
        raise refusal(path=file, what=content(description), known=" and ".join(kinds))
    try:
        learner = kind.restore(description)
        learner.load_weights(arrays)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, OverflowError, MemoryError) as error:
        raise errors.SAMPLE_CANNOT_BUILD(path=file, reason=" ".join(str(error).split())) from None
    return Trained(kind, learner, description, file)


def content(description: Mapping[str, Any]) -> str:
    """Return what an intact file contains, from its description."""
    task = description.get("task")
    if isinstance(task, str):
        return f"a model of the task {task!r}"
    return "a checkpoint to resume from" if "parts" in description else "weights of a model of your own"


def predictions(trained: Trained, given: Sequence[str]) -> Iterator[Prediction]:
    """Yield a model's answers for inputs. Raises `errors.InputError` before it reads any."""
    predict = trained.kind.predict
    if predict is None:
        known = ", ".join(kind.name for kind in task_kinds() if kind.predict is not None)
        raise errors.MODEL_OF_NO_TASK(path=trained.file, what=content(trained.description), known=known)
    if not given:
        raise errors.PREDICT_NOTHING(expected=trained.kind.inputs)
    return predict(trained.learner, trained.description, given)


def assessed(path: Path, data: Path | None) -> dict[str, float]:
    """Return losses and accuracies of a finished run's model on the parts of its data, or on other data.

    Raises `errors.InputError` if there is no finished run at `path`, or if the data cannot be read or do not fit.
    """
    trained = open_trained(path)
    if path.is_file():
        raise errors.EVAL_FILE(path=path)
    kind, run = trained.kind, RunDirectory.existing(path)
    layers = [with_data_in(read_toml(run.config, kind.config, kind.name), run.path)]
    if data is not None:
        if "data" not in rules(kind.config):
            raise errors.EVAL_NO_DATA(task=kind.name)
        layers.append(Layer({"data": str(data)}, flag))
    task = kind.build(kind.configure(layers))
    task.adopt(trained.description)
    task.learner.load_weights(trained.learner.weights())
    return task.assess()


__all__ = ["Trained", "assessed", "content", "open_trained", "predictions"]
