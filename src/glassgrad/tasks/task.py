"""What `glassgrad train` needs to know of a task. A file of this folder that assigns `KINDS` has some."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.train.config import Layer, resolve, rules
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.kept.weights import write_weights
from glassgrad.train.learner import Learner
from glassgrad.train.task import Task
from glassgrad.train.transaction import named_as_damaged

KEPT = (
    "Everything about the run is kept in a directory. Ctrl-C saves and stops; --resume goes on as if nothing had been."
)


class CommandTask(Task, ABC):
    """Data and learner of one configuration, and what a run does and says around the training steps."""

    learner: Learner

    def __init__(self, config: Any, learner: Learner) -> None:
        self.config, self.learner = config, learner
        self.parts, self.step, self.set_rate = learner.parts, learner.step, learner.set_rate

    @abstractmethod
    def evaluate(self) -> Mapping[str, float]:
        """Measure on the examples set aside: "loss", and what else there is to say."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Return what has to stand beside the weights to use them."""

    def facts(self) -> dict[str, Any]:
        """Return what must be the same for a resumed run to be the same run; "config" is one of the keys."""
        return {"config": settled(self.config)}

    def check(self, facts: Mapping[str, Any], run: RunDirectory) -> None:
        """Raise `errors.InputError` unless a checkpoint is of this configuration and of these data."""
        with named_as_damaged(run.state):
            before = dict(facts["config"])
        for key, value in settled(self.config).items():
            if before.get(key) != value:
                raise errors.RUN_CHANGED(name=f"{key} in {run.config}", before=before.get(key), after=value)
        with named_as_damaged(run.state):
            self.check_data(facts)

    def check_data(self, facts: Mapping[str, Any]) -> None:
        """Raise `errors.InputError` unless the data are those that `facts` tells of, where it tells of any."""

    def save_model(self, run: RunDirectory) -> None:
        """Write the weights under their PyTorch names, with what is needed to use them. Raises `OSError`."""
        write_weights(run.model, self.learner.weights(), self.description())

    @abstractmethod
    def introduction(self) -> Iterator[str]:
        """Yield the lines that say what is trained on what."""

    @abstractmethod
    def settle(self) -> dict[str, float]:
        """Make the trained model ready for use and return "train_loss", that of the examples set aside, and others."""

    @abstractmethod
    def results(self, final: Mapping[str, float], run: Path) -> Iterator[str]:
        """Yield the lines that say what came out."""

    def farewell(self, run: Path) -> Iterator[str]:
        """Yield the lines that say what can be done with the run."""
        yield from ()


@dataclass(frozen=True)
class ModelKind:
    """A model on offer: the hyperparameters that it does not have, and defaults that suit it better."""

    without: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskKind:
    """One command of `glassgrad train`.

    Args:
        name: what stands behind `glassgrad train`.
        about: the text above the options in its help.
        config: the class of its configuration.
        configure: puts layers of configuration together.
        build: reads the data.
        models: what is special about models that its configurations can name.
        axis: the axis of the picture.
    """

    name: str
    about: str
    config: type[Any]
    configure: Callable[[list[Layer]], Any]
    build: Callable[[Any], CommandTask]
    models: Mapping[str, ModelKind] = field(default_factory=dict)
    axis: str = "cross entropy, nats"


def resolve_for_model(cls: type[Any], layers: list[Layer], models: Mapping[str, ModelKind]) -> Any:
    """Put layers of configuration together, over the defaults of the model that they choose.

    Raises `errors.InputError` naming the option or the key and file of a value that cannot be used.
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
    return config


def learners_of(engine: str) -> Any:
    """Return the module with the learners of an engine; that of `manual` loads no automatic differentiation."""
    if engine == "manual":
        from glassgrad.tasks import learners_by_hand

        return learners_by_hand
    from glassgrad.tasks import learners

    return learners


def settled(config: Any) -> dict[str, Any]:
    """Return the hyperparameters that decide what comes out; where the data lie and how often to save do not."""
    return {key: getattr(config, key) for key, (_, rule) in rules(type(config)).items() if not rule.resumable}


def with_data_in(layer: Layer, folder: Path) -> Layer:
    """Return a configuration file's layer with a relative `data` made relative to the folder of the file."""
    data = layer.values.get("data")
    if not isinstance(data, str) or not data:
        return layer
    return Layer({**layer.values, "data": str(folder / data)}, layer.name)
