"""The interface between tasks and `glassgrad train`. A file of this folder that assigns `KINDS` defines tasks."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from glassgrad import errors
from glassgrad.tasks.options import check_dtype
from glassgrad.tasks.rates import warm_up_and_cosine
from glassgrad.train.config import Layer, resolve, rules
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.kept.weights import write_weights
from glassgrad.train.learners.learner import Learner
from glassgrad.train.ranks import Ranks
from glassgrad.train.task import Task
from glassgrad.train.transaction import named_as_damaged

KEPT = "The run directory keeps everything about the run. Ctrl-C saves and stops; --resume continues the run exactly."


class CommandTask(Task, ABC):
    """Data and learner of one configuration, and the work and output of a run around its training steps.

    Attributes:
        kind: the name of the task.
        what: the name of the data in `given`, which a resumed run must have; "" if there are none.
        given: the data's `digest`, and their `source` for messages.
    """

    kind: str
    what = ""
    given: Any = None
    learner: Learner
    hopeless = 10.0  # a cross entropy, which starts at the value of guessing

    def __init__(self, config: Any, learner: Learner) -> None:
        self.config, self.learner = config, learner
        self.parts, self.step, self.set_rate = learner.parts, learner.step, learner.set_rate

    def share(self, ranks: Ranks) -> None:
        """Train together with other ranks."""
        self.learner.share(ranks)
        self.step, self.ranks = self.learner.step, ranks

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0: linear warm-up, then cosine decay."""
        config = self.config
        return warm_up_and_cosine(step, self.steps, config.rate, config.final_rate, config.warm_up)

    @abstractmethod
    def evaluate(self) -> Mapping[str, float]:
        """Evaluate on the validation examples: "loss" and any other measures."""

    def description(self) -> dict[str, Any]:
        """Return the description for using the weights."""
        return {"task": self.kind, "config": settled(self.config)}

    def facts(self) -> dict[str, Any]:
        """Return the facts that a resumed run must match; "config" is one of the keys."""
        found = {"config": settled(self.config)}
        return {**found, self.what: self.given.digest} if self.what else found

    def check(self, facts: Mapping[str, Any], run: RunDirectory) -> None:
        """Raise `errors.InputError` unless a checkpoint belongs to this configuration and these data."""
        with named_as_damaged(run.state):
            before = dict(facts["config"])
        defaults = {entry.name: entry.default for entry in fields(self.config)}
        for key, value in settled(self.config).items():
            then = before.get(key, defaults[key])  # a newer option: the run counts as if it had its default
            if not rules(type(self.config))[key][1].allows(then, value):
                raise errors.RUN_CHANGED(name=f"{key} in {run.config}", before=then, after=value)
        with named_as_damaged(run.state):
            self.check_data(facts)

    def check_data(self, facts: Mapping[str, Any]) -> None:
        """Raise `errors.InputError` unless the run was started with these data."""
        if self.what and facts[self.what] != self.given.digest:
            raise errors.RUN_OTHER_DATA(what=self.what, path=self.given.source)

    def save_model(self, run: RunDirectory) -> None:
        """Write the weights under their PyTorch names, with a description for using them. Raises `OSError`."""
        write_weights(run.model, self.learner.weights(), self.description())

    @abstractmethod
    def introduction(self) -> Iterator[str]:
        """Yield the lines that describe the model and its data."""

    @abstractmethod
    def assess(self) -> dict[str, float]:
        """Return the model's current losses on each part of the data: "train_loss" and others."""

    def settle(self) -> dict[str, float]:
        """Make the trained model ready for use and assess it."""
        return self.assess()

    def adopt(self, description: Mapping[str, Any]) -> None:
        """Prepare the data as for a trained model. Raises `errors.InputError` if its description does not fit them."""

    @abstractmethod
    def results(self, final: Mapping[str, float], run: Path) -> Iterator[str]:
        """Yield the lines with the results."""

    def samples(self) -> dict[str, Any] | None:
        """Return the content of samples.json: outputs of the model, or its mistakes; None for no file."""
        return None

    def farewell(self, run: Path) -> Iterator[str]:
        """Yield the lines with commands for the finished run."""
        yield from ()


@dataclass(frozen=True)
class Prediction:
    """A model's answer for one input, and the likeliest answers with their probabilities.

    Args:
        source: the input as the user named it.
        answer: the class, or a sentence for models that generate.
        likely: (label, probability), the likeliest first.
        about: the subject of `likely`, if it is not the answer.
        seen: lines that show the input as the model sees it.
    """

    source: str
    answer: str
    likely: tuple[tuple[str, float], ...] = ()
    about: str = ""
    seen: tuple[str, ...] = ()


def likeliest(probabilities: Any, labels: Sequence[str], count: int = 3) -> tuple[tuple[str, float], ...]:
    """Return the most probable labels with their probabilities, the likeliest first.

    Example:
        >>> likeliest([0.2, 0.5, 0.3], "abc", 2)
        (('b', 0.5), ('c', 0.3))
    """
    order = sorted(range(len(labels)), key=lambda place: -probabilities[place])[:count]
    return tuple((labels[place], float(probabilities[place])) for place in order)


@dataclass(frozen=True)
class ModelKind:
    """One model of a task: the hyperparameters that it does not use, and its own defaults."""

    without: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


class Example(NamedTuple):
    """Example inputs of a model with arbitrary numbers, and their axes of variable size."""

    inputs: Any
    axes: dict[int, str]


@dataclass(frozen=True)
class TaskKind:
    """One command of `glassgrad train`.

    Args:
        name: the word after `glassgrad train`.
        about: the text above the options in its help.
        config: the class of its configuration.
        configure: merges layers of configuration.
        build: reads the data.
        models: the `ModelKind` of each model that has one.
        axis: the label of the loss axis in the picture.
        restore: builds the learner of a trained model from its description.
        inputs: the arguments of `predict`, for the message if none is given.
        predict: yields a trained model's answers for a user's inputs; None if there are none.
        example: returns example inputs for a trained model, from its description.
    """

    name: str
    about: str
    config: type[Any]
    configure: Callable[[list[Layer]], Any]
    build: Callable[[Any], CommandTask]
    models: Mapping[str, ModelKind] = field(default_factory=dict)
    axis: str = "cross entropy, nats"
    restore: Callable[[Mapping[str, Any]], Learner] | None = None
    inputs: str = "one or more words or texts"
    predict: Callable[[Learner, Mapping[str, Any], Sequence[str]], Iterator[Prediction]] | None = None
    example: Callable[[Mapping[str, Any]], Example] | None = None


def resolve_for_model(cls: type[Any], layers: list[Layer], models: Mapping[str, ModelKind]) -> Any:
    """Merge layers of configuration over the defaults of the model that they choose.

    Raises `errors.InputError` naming the option, or the key and file, of an invalid value.
    """
    chosen = [
        Layer({key: layer.values[key] for key in ("model",) if key in layer.values}, layer.name) for layer in layers
    ]
    model = resolve(cls, chosen).model
    config = resolve(cls, [Layer(models[model].defaults, str), *layers])
    for layer in layers:
        for key in layer.values:
            if key in models[model].without:
                raise errors.CONFIG_NO_EFFECT(name=layer.name(key), model=model)
    check_dtype(config, layers)
    return config


def learners_of(engine: str) -> Any:
    """Return the module with the learners of an engine; for `manual` this does not load the autograd engine."""
    if engine == "manual":
        from glassgrad.tasks import learners_by_hand

        return learners_by_hand
    from glassgrad.tasks import learners

    return learners


def settled(config: Any) -> dict[str, Any]:
    """Return the hyperparameters that affect the result, unlike the data's path and the interval of saves."""
    return {key: getattr(config, key) for key, (_, rule) in rules(type(config)).items() if not rule.resumable}


def no_picture(error: Exception) -> str:
    """Return why there is no picture, aligned with the list of written files."""
    return f"no picture: {error}".replace("\n", f"\n{'':11}")


def with_data_in(layer: Layer, folder: Path) -> Layer:
    """Return a configuration file's layer with a relative `data` made relative to the folder of the file."""
    data = layer.values.get("data")
    if not isinstance(data, str) or not data:
        return layer
    return Layer({**layer.values, "data": str(folder / data)}, layer.name)


def with_absolute_data(config: Any) -> Any:
    """Return a configuration with the absolute path of its data: a run can be resumed from any directory."""
    return dataclasses.replace(config, data=str(Path(config.data).resolve())) if config.data else config
