"""The tasks xor and moons: two classes of points in the plane, and a small network's decision boundary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.data import RandomBatches
from glassgrad.data.names import Examples
from glassgrad.data.plane import plane_data, read_points
from glassgrad.tasks import options as shared
from glassgrad.tasks.classify import begun, final_lines, final_measures, loss_and_accuracy
from glassgrad.tasks.task import CommandTask, Example, Prediction, TaskKind, learners_of, likeliest, no_picture
from glassgrad.train.config import Layer, option, resolve
from glassgrad.train.kept.samples import mistakes, softmax
from glassgrad.train.learners.learner import Learner

Array = np.ndarray

CLASSES = 2
BOUNDARY = "boundary.png"

_CHUNK = 8_192


@dataclass(frozen=True)
class PlaneConfig:
    """Every hyperparameter of `glassgrad train xor`, with its defaults."""

    model: str = option("mlp", "which model to train", choices=("mlp",))
    engine: str = shared.engine()
    dtype: str = shared.dtype()
    points: int = option(200, "training points; there are a quarter as many test points", low=4, high=1_000_000)
    noise: float = option(0.3, "standard deviation of the points around where they belong", low=0, high=1e6)
    hidden: int = option(8, "units of each hidden layer", low=1, high=1_000_000)
    layers: int = option(1, "hidden layers", low=1, high=100)
    steps: int = option(1_000, "training steps", low=1, high=1e12, grows=True)
    batch: int = option(32, "points per step", low=1, high=1_000_000)
    rate: float = option(0.02, "learning rate of SGD", above=0, high=1e6)
    momentum: float = option(0.9, "momentum of SGD", low=0, high=1)
    seed: int = shared.seed("the points, of the initial weights and of the batches")
    device: str = shared.device()
    log_every: int = shared.log_every(10)
    eval_every: int = option(100, "steps between tests", low=1, high=1e12, resumable=True)
    save_every: float = shared.save_every()


@dataclass(frozen=True)
class MoonsConfig(PlaneConfig):
    """Every hyperparameter of `glassgrad train moons`, with its defaults."""

    noise: float = option(0.12, "standard deviation of the points around where they belong", low=0, high=1e6)
    hidden: int = option(16, "units of each hidden layer", low=1, high=1_000_000)
    layers: int = option(2, "hidden layers", low=1, high=100)


class PlaneTask(CommandTask):
    """Points, model and optimizer of one configuration, with the functions that a training loop needs."""

    config: PlaneConfig
    held_out = "test"

    def __init__(self, shape: str, config: PlaneConfig) -> None:
        super().__init__(config, begun(learners_of(config.engine).plane_learner(config, CLASSES), config.seed))
        self.kind = shape
        self.data = plane_data(shape, config.points, config.noise, config.seed)
        self.steps, self.eval_every = config.steps, config.eval_every
        self._train = Examples(self.data.train_points, self.data.train_labels)
        self._test = Examples(self.data.test_points, self.data.test_labels)
        self.batch_at = RandomBatches(self._train.inputs, self._train.targets, config.batch, config.seed).at

    def rate_at(self, step: int) -> float:
        """Return the learning rate, which is constant."""
        return self.config.rate

    def evaluate(self) -> dict[str, float]:
        """Return loss and accuracy on the test points."""
        return loss_and_accuracy(self.learner.logits, self._test, _CHUNK)

    def introduction(self) -> Iterator[str]:
        yield f"points     {len(self._train):,} training / {len(self._test):,} test"
        yield f"model      {self.config.model}, {self.learner.parameters:,} parameters"

    def assess(self) -> dict[str, float]:
        """Return losses and accuracies on the training and the test points."""
        return final_measures(loss_and_accuracy(self.learner.logits, self._train, _CHUNK), self.evaluate())

    def samples(self) -> dict[str, Any]:
        """Return the misclassified test points."""
        points = self._test.inputs
        logits = [self.learner.logits(points[at : at + _CHUNK]) for at in range(0, len(points), _CHUNK)]
        return mistakes(np.concatenate(logits), points, self._test.targets)

    def probability(self, points: Array) -> Array:
        """Return the probability (n,) that the model gives class 1 at points (n, 2)."""
        logits = np.asarray(self.learner.logits(points.astype(np.float32)), dtype=np.float64)
        return 1 / (1 + np.exp(np.clip(logits[:, 0] - logits[:, 1], -500, 500)))

    def results(self, final: Mapping[str, float], run: Path) -> Iterator[str]:
        """Yield the final losses and accuracies, and the path of the picture of the decision boundary."""
        yield from final_lines(final)
        picture = run / BOUNDARY
        try:
            from glassgrad.tasks.boundary_picture import draw_boundary

            title = f"{self.kind}: test accuracy {final['test_accuracy']:.1%}"
            draw_boundary(picture, self.probability, self.data, title)
            yield f"\nboundary   {picture}"
        except (ImportError, OSError) as error:
            yield f"\nboundary   {no_picture(error)}"


def predict(learner: Learner, description: Mapping[str, Any], points: Sequence[str]) -> Iterator[Prediction]:
    """Yield the class of points, given as "x,y" or as text files with one per line. Raises `errors.InputError`."""
    found = [point for given in points for point in read_points(given)]
    for point in found:
        logits = learner.logits(np.array([point], dtype=np.float32))[0]
        likely = likeliest(softmax(logits), [str(one) for one in range(CLASSES)])
        yield Prediction(f"{point[0]:g},{point[1]:g}", likely[0][0], likely)


def _kind(shape: str, about: str, config: type[Any]) -> TaskKind:
    def configure(layers: list[Layer]) -> Any:
        found = resolve(config, layers)
        shared.check_dtype(found, layers)
        return found

    about += "\n\nThe run directory holds a picture of the boundary it draws between the two classes."

    def restore(description: Mapping[str, Any]) -> Learner:
        chosen = config(**description["config"])
        learner: Learner = learners_of(chosen.engine).plane_learner(chosen, CLASSES)
        return learner

    return TaskKind(
        shape,
        about,
        config,
        configure,
        lambda chosen: PlaneTask(shape, chosen),
        restore=restore,
        inputs="points such as 0.5,-1, or a file with one point per line",
        predict=predict,
        example=lambda _: Example(np.zeros((4, 2), np.float32), {0: "batch"}),
    )


_XOR = "Train a classifier on points around the corners of a square, where opposite corners have the same class."
_MOONS = "Train a classifier on points along two interleaving half circles."
XOR = _kind("xor", _XOR, PlaneConfig)
MOONS = _kind("moons", _MOONS, MoonsConfig)
KINDS = (XOR, MOONS)
