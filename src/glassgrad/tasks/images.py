"""The tasks digits and mnist: their hyperparameters, models, data and schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.data.batches import EpochBatches, shifted
from glassgrad.data.download import fetch_mnist
from glassgrad.data.images import CLASSES, ImageData, read_mnist, shipped_digits
from glassgrad.data.names import Examples
from glassgrad.data.own_digits import brightest_of, read_digits
from glassgrad.data.pictures import as_characters, read_digit
from glassgrad.tasks import options as shared
from glassgrad.tasks.classify import begun, final_lines, final_measures, loss_and_accuracy
from glassgrad.tasks.task import (
    KEPT,
    CommandTask,
    Example,
    ModelKind,
    Prediction,
    TaskKind,
    learners_of,
    likeliest,
    resolve_for_model,
    with_absolute_data,
)
from glassgrad.train.config import option
from glassgrad.train.kept.samples import softmax, wrong_images
from glassgrad.train.learners.learner import Learner

Array = np.ndarray

_CHUNK = 1_000
"""Images evaluated at once; more would only need more memory."""


@dataclass(frozen=True)
class ImagesConfig:
    """Every hyperparameter of `glassgrad train digits`, with its defaults."""

    model: str = option("mlp", "which model to train", choices=("mlp", "cnn"))
    engine: str = shared.engine()
    dtype: str = shared.dtype()
    hidden: int = option(128, "units of each hidden layer", low=1, high=1_000_000)
    layers: int = option(2, "hidden layers of the mlp", low=1, high=100)
    channels: int = option(
        16, "channels of the cnn's first convolution; the second has twice as many", low=1, high=10_000
    )
    epochs: int = option(20, "passes over the training images", low=1, high=1e6, grows=True)
    batch: int = option(64, "images per step", low=1, high=1_000_000)
    rate: float = option(0.0005, "highest learning rate of RMSprop", above=0, high=1e6)
    final_rate: float = option(0.00001, "learning rate at the end", above=0, high=1e6)
    warm_up: float = option(0.05, "share of the steps for the warm-up of the rate", low=0, high=1)
    alpha: float = option(0.99, "decay of RMSprop's mean square", low=0, high=1)
    momentum: float = option(0.9, "momentum of RMSprop", low=0, high=1)
    shift: int = option(1, "largest random shift of a training image, in pixels", low=0, high=100)
    seed: int = shared.seed()
    device: str = shared.device()
    data: str = option(
        "", "own digits: folder with subfolders 0 to 9 of pictures, or .npz file; empty for glassgrad's", resumable=True
    )
    log_every: int = shared.log_every(10)
    eval_every: int = option(0, "steps between tests; 0 for once per epoch", low=0, high=1e12, resumable=True)
    save_every: float = shared.save_every()


@dataclass(frozen=True)
class MnistConfig(ImagesConfig):
    """Every hyperparameter of `glassgrad train mnist`, with its defaults."""

    hidden: int = option(1024, "units of each hidden layer (128 for the cnn)", low=1, high=1_000_000)
    layers: int = option(3, "hidden layers of the mlp", low=1, high=100)
    epochs: int = option(20, "passes over the training images (10 for the cnn)", low=1, high=1e6, grows=True)
    batch: int = option(512, "images per step (128 for the cnn)", low=1, high=1_000_000)
    rate: float = option(0.0001, "highest learning rate of RMSprop (0.0005 for the cnn)", above=0, high=1e6)
    data: str = option("", "folder with idx files, gzipped or not; empty to fetch MNIST into a cache", resumable=True)


_MODELS = {"mlp": ModelKind(without=("channels",)), "cnn": ModelKind(without=("layers",))}
_MNIST_MODELS = _MODELS | {
    "cnn": ModelKind(without=("layers",), defaults={"hidden": 128, "batch": 128, "epochs": 10, "rate": 0.0005})
}


def build_learner(config: ImagesConfig, size: tuple[int, int]) -> Learner:
    """Build the model of a configuration with its initial weights, which depend only on the seed."""
    return begun(learners_of(config.engine).images_learner(config, size, CLASSES), config.seed)


class ImagesTask(CommandTask):
    """Data, model and optimizer of one configuration, with the functions that a training loop needs."""

    held_out = "test"
    what = "images"

    def __init__(self, kind: str, config: ImagesConfig, data: ImageData) -> None:
        if config.batch > len(data.train_labels):
            raise errors.IMAGES_BATCH(name="batch", count=len(data.train_labels), given=config.batch)
        if config.model == "cnn" and min(data.size) < 4:
            raise errors.IMAGES_SMALL(size=" x ".join(map(str, data.size)))
        super().__init__(config, build_learner(config, data.size))
        self.kind, self.data = kind, data
        self.given = data
        self._mean, self._spread = float(data.train_images.mean()), max(float(data.train_images.std()), 1e-6)
        self.batches = EpochBatches(data.train_images, data.train_labels, config.batch, config.seed, self._prepare)
        self.batch_at = self.batches.at
        self.epoch_steps = self.batches.per_epoch
        self.steps = config.epochs * self.epoch_steps
        self.eval_every = config.eval_every or self.epoch_steps
        self._test = Examples(self._inputs(data.test_images), data.test_labels)

    def _inputs(self, images: Array) -> Array:
        """Scale to mean 0 and standard deviation 1 over the training images, in the model's input shape."""
        return _scaled(images, self._mean, self._spread, self.config.model)

    def _prepare(self, images: Array, generator: np.random.Generator) -> Array:
        return self._inputs(shifted(images, self.config.shift, generator))

    def evaluate(self) -> dict[str, float]:
        """Return loss and accuracy on the test images."""
        return loss_and_accuracy(self.learner.logits, self._test, _CHUNK)

    def description(self) -> dict[str, Any]:
        size = list(self.data.size)
        return {**super().description(), "size": size, "mean": self._mean, "spread": self._spread}

    def check_data(self, facts: Mapping[str, Any]) -> None:
        """Raise `errors.InputError` unless the run was started with these images."""
        if facts["images"] != self.given.digest:
            raise errors.RUN_OTHER_IMAGES(path=self.data.source)

    def introduction(self) -> Iterator[str]:
        data, size = self.data, " x ".join(map(str, self.data.size))
        yield f"images     {size}: {data.source}"
        yield f"examples   {len(data.train_labels):,} training / {len(data.test_labels):,} test"
        yield f"model      {self.config.model}, {self.learner.parameters:,} parameters, {self.config.epochs} epochs"

    def adopt(self, description: Mapping[str, Any]) -> None:
        """Scale images as for the trained model. Raises `errors.InputError` if they have another size."""
        if list(self.data.size) != list(description["size"]):
            raise errors.DATA_OTHER_SIZE(
                path=self.data.source, given=self.data.size, expected=tuple(description["size"])
            )
        self._mean, self._spread = float(description["mean"]), float(description["spread"])
        self._test = Examples(self._inputs(self.data.test_images), self.data.test_labels)

    def assess(self) -> dict[str, float]:
        """Return losses and accuracies; the training images are evaluated without shifts."""
        images, labels = self.data.train_images, self.data.train_labels
        train = loss_and_accuracy(
            lambda part: self.learner.logits(self._inputs(part)), Examples(images, labels), _CHUNK
        )
        return final_measures(train, self.evaluate())

    def samples(self) -> dict[str, Any]:
        """Return the misclassified test images."""
        inputs = self._test.inputs
        logits = [self.learner.logits(inputs[at : at + _CHUNK]) for at in range(0, len(inputs), _CHUNK)]
        return wrong_images(np.concatenate(logits), self.data.test_images, self.data.test_labels)

    def results(self, final: Mapping[str, float], run: Path) -> Iterator[str]:
        """Yield the final losses and accuracies."""
        yield from final_lines(final)


def _scaled(images: Array, mean: float, spread: float, model: str) -> Array:
    scaled = (images.astype(np.float32) - np.float32(mean)) * np.float32(1 / spread)
    return scaled[:, None] if model == "cnn" else scaled.reshape(len(scaled), -1)


def _restore(config: type[ImagesConfig]) -> Callable[[Mapping[str, Any]], Learner]:
    return lambda description: build_learner(config(**description["config"]), tuple(description["size"]))


def predict(learner: Learner, description: Mapping[str, Any], files: Sequence[str]) -> Iterator[Prediction]:
    """Yield the digit that the model sees in each picture. Raises `errors.InputError` before it reads any."""
    size, model = tuple(description["size"]), description["config"]["model"]
    brightest = brightest_of(size)
    images = [read_digit(Path(file), size, brightest) for file in files]
    for file, image in zip(files, images, strict=True):
        logits = learner.logits(_scaled(image[None], description["mean"], description["spread"], model))[0]
        likely = likeliest(softmax(logits), [str(digit) for digit in range(CLASSES)])
        yield Prediction(file, likely[0][0], likely, seen=tuple(as_characters(image / brightest)))


def example(description: Mapping[str, Any]) -> Example:
    """Return black images, scaled."""
    images = np.zeros((4, *description["size"]))
    return Example(
        _scaled(images, description["mean"], description["spread"], description["config"]["model"]), {0: "batch"}
    )


def _build_digits(config: ImagesConfig) -> ImagesTask:
    data = read_digits(config.data) if config.data else shipped_digits()
    return ImagesTask("digits", with_absolute_data(config), data)


def _build_mnist(config: MnistConfig) -> ImagesTask:
    return ImagesTask("mnist", with_absolute_data(config), read_mnist(config.data or fetch_mnist()))


DIGITS = TaskKind(
    "digits",
    "Train a classifier on the 1,797 handwritten digits of 8 x 8 pixels that come with glassgrad, or on digits of your "
    f"own (--data).\n\n{KEPT}",
    ImagesConfig,
    lambda layers: resolve_for_model(ImagesConfig, layers, _MODELS),
    _build_digits,
    _MODELS,
    restore=_restore(ImagesConfig),
    inputs="one or more pictures of a digit",
    predict=predict,
    example=example,
)
MNIST = TaskKind(
    "mnist",
    "Train a classifier on the handwritten digits of MNIST, 28 x 28 pixels, read from --data or fetched once."
    f"\n\n{KEPT}",
    MnistConfig,
    lambda layers: resolve_for_model(MnistConfig, layers, _MNIST_MODELS),
    _build_mnist,
    _MNIST_MODELS,
    restore=_restore(MnistConfig),
    inputs="one or more pictures of a digit",
    predict=predict,
    example=example,
)
KINDS = (DIGITS, MNIST)
