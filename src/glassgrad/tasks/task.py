"""What `glassgrad train` needs to know of a task. A file of this folder that assigns `KINDS` has some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from glassgrad.train.config import Layer, rules
from glassgrad.train.learner import Learner

Array = Any

KEPT = (
    "Everything about the run is kept in a directory. Ctrl-C saves and stops; --resume goes on as if nothing had been."
)


class Task(Protocol):
    """Data and learner of one configuration, and what a run does and says around the training steps."""

    config: Any
    learner: Learner
    steps: int
    eval_every: int
    epoch_steps: int
    """Steps to an epoch; 0 for a task without epochs."""

    def batch_at(self, step: int) -> tuple[Array, Array]:
        """Return the batch of a step, counted from 0, which depends on the seed and the step alone."""

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step."""

    def evaluate(self) -> Mapping[str, float]:
        """Measure on the examples set aside: "loss", and what else there is to say."""

    def description(self) -> dict[str, Any]:
        """Return what has to stand beside the weights to use them."""

    def facts(self) -> dict[str, Any]:
        """Return what must be the same for a resumed run to be the same run; "config" is one of the keys."""

    def check_data(self, facts: Mapping[str, Any]) -> None:
        """Raise `errors.InputError` unless the data are those that `facts` tells of."""

    def introduction(self) -> Iterator[str]:
        """Yield the lines that say what is trained on what."""

    def settle(self) -> dict[str, float]:
        """Make the trained model ready for use and return "train_loss", that of the examples set aside, and others."""

    def results(self, final: Mapping[str, float], run: Path) -> Iterator[str]:
        """Yield the lines that say what came out."""

    def farewell(self, run: Path) -> Iterator[str]:
        """Yield the lines that say what can be done with the run."""


@dataclass(frozen=True)
class TaskKind:
    """One command of `glassgrad train`.

    Args:
        name: what stands behind `glassgrad train`.
        about: the text above the options in its help.
        config: the class of its configuration.
        configure: puts layers of configuration together.
        build: reads the data.
        without: the hyperparameters that a configuration lacks.
        held_out: what the examples set aside are called.
        axis: the axis of the picture.
    """

    name: str
    about: str
    config: type[Any]
    configure: Callable[[list[Layer]], Any]
    build: Callable[[Any], Task]
    without: Callable[[Any], Sequence[str]] = lambda config: ()
    held_out: str = "validation"
    axis: str = "cross entropy, nats"


def settled(config: Any) -> dict[str, Any]:
    """Return the hyperparameters that decide what comes out; where the data lie and how often to save do not."""
    return {key: getattr(config, key) for key, (_, rule) in rules(type(config)).items() if not rule.resumable}


def with_data_in(layer: Layer, folder: Path) -> Layer:
    """Return a configuration file's layer with a relative `data` made relative to the folder of the file."""
    data = layer.values.get("data")
    if not isinstance(data, str) or not data:
        return layer
    return Layer({**layer.values, "data": str(folder / data)}, layer.name)
