"""Shared by the tasks with images and points: layers, initial weights and final measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.train.learners.learner import HasArrays, Learner, measure

if TYPE_CHECKING:
    from glassgrad.tasks.images import ImagesConfig

Array = np.ndarray


def mlp(layers: Any, inputs: int, hidden: int, count: int, outputs: int) -> list[Any]:
    """Return the layers of a network; `layers` is the module with their classes, `nn` or `manual`."""
    found = []
    for _ in range(count):
        found += [layers.Linear(inputs, hidden), layers.ReLU()]
        inputs = hidden
    return [*found, layers.Linear(inputs, outputs)]


def image_layers(layers: Any, config: ImagesConfig, size: tuple[int, int], classes: int) -> list[Any]:
    """Return the layers of a configuration, like `mlp`."""
    channels, hidden = config.channels, config.hidden
    if config.model == "mlp":
        return mlp(layers, size[0] * size[1], hidden, config.layers, classes)
    return [
        layers.Conv2d(1, channels, 3, padding=1),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Conv2d(channels, 2 * channels, 3, padding=1),
        layers.ReLU(),
        layers.MaxPool2d(2),
        layers.Flatten(),
        *mlp(layers, 2 * channels * (size[0] // 4) * (size[1] // 4), hidden, 1, classes),
    ]


def first_weights(weights: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """Kaiming He's initialisation for layers before a ReLU, the same for every engine; initial logits are small."""
    generator = np.random.Generator(np.random.PCG64([seed, 0]))
    last = [name for name, array in weights.items() if array.ndim > 1][-1]
    found: dict[str, Array] = {}
    for name, array in weights.items():
        if array.ndim == 1:
            found[name] = np.zeros_like(array)
            continue
        spread = math.sqrt((0.1 if name == last else 2.0) / math.prod(array.shape[1:]))
        found[name] = (spread * generator.standard_normal(array.shape)).astype(array.dtype)
    return found


def begun(learner: Learner, seed: int) -> Learner:
    """Load the initial weights into a learner and return it; they depend only on the seed."""
    learner.load_weights(first_weights(learner.weights(), seed))
    return learner


def loss_and_accuracy(logits: Callable[[Array], Array], examples: HasArrays, chunk: int) -> dict[str, float]:
    """Return loss and accuracy."""
    found = measure(logits, examples, chunk)
    return {"loss": found.loss, "accuracy": found.accuracy}


def final_measures(train: Mapping[str, float], test: Mapping[str, float]) -> dict[str, float]:
    """Return the measures of both parts under their names in the last record of metrics.jsonl."""
    parts = {"train": train, "test": test}
    return {f"{part}_{key}": value for part, values in parts.items() for key, value in values.items()}


def final_lines(final: Mapping[str, float]) -> Iterator[str]:
    """Yield the final losses and accuracies."""
    yield f"train loss {final['train_loss']:.4f}   test loss {final['test_loss']:.4f}"
    yield f"train accuracy {final['train_accuracy']:.2%}   test accuracy {final['test_accuracy']:.2%}"
