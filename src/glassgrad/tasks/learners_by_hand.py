"""Learners of `glassgrad.manual`: every gradient by a formula, without a tape and without loading the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad import manual
from glassgrad.manual import SGD, Embedding, Module, RMSprop, SGDMomentum
from glassgrad.manual.models import NamesMLP
from glassgrad.tasks.classify import image_layers, mlp
from glassgrad.train.learners.by_hand import HandLearner

if TYPE_CHECKING:
    from glassgrad.tasks.images import ImagesConfig
    from glassgrad.tasks.names import NamesConfig
    from glassgrad.tasks.plane import PlaneConfig

Array = Any  # np.ndarray


class Bigram(Module):
    """A table of logits for the next character, indexed by the last one: tokens (n, context) to logits (n, tokens)."""

    def __init__(self, tokens: int) -> None:
        self.logits = Embedding(tokens, tokens)
        self.logits.weight.data[...] = 0

    def forward(self, tokens: Array) -> Array:
        return self.logits(tokens[:, -1])

    def backward(self, dlogits: Array) -> None:
        self.logits.backward(dlogits)


def names_learner(config: NamesConfig, tokens: int, longest: int) -> HandLearner:
    """Return the model of a configuration with the same initial weights as with the other engines.

    None of these models depends on the length of the longest word.
    """
    model: Any
    if config.model == "bigram":
        model = Bigram(tokens)
    else:
        model = NamesMLP(tokens, config.context, config.embedding, config.hidden, config.norm_momentum)
        _draw_names_weights(model, config.seed)
    parameters = model.parameters()
    rate, momentum = config.rate, config.momentum
    optimizer = SGDMomentum(parameters, rate, momentum) if momentum else SGD(parameters, rate)
    return HandLearner(model, optimizer, weight_decay=config.weight_decay)


def _draw_names_weights(model: NamesMLP, seed: int) -> None:
    """Draw in the order and precision of `glassgrad.models.NamesMLP`, so that a seed gives the same model."""
    rng = np.random.Generator(np.random.PCG64(seed))
    spreads = ((model.embedding, 1.0), (model.hidden, 5 / 3 / model.hidden.weight.shape[1] ** 0.5), (model.output, 0.1))
    for layer, spread in spreads:
        layer.weight.data[...] = 0.0 + spread * rng.standard_normal(layer.weight.shape, dtype=np.float32)


def images_learner(config: ImagesConfig, size: tuple[int, int], classes: int) -> HandLearner:
    """Return the model of a configuration; the caller loads its weights."""
    model = manual.Net(*image_layers(manual, config, size, classes))
    return HandLearner(model, RMSprop(model.parameters(), config.rate, config.alpha, momentum=config.momentum))


def plane_learner(config: PlaneConfig, classes: int) -> HandLearner:
    """Return the model of a configuration for points in the plane; the caller loads its weights."""
    model = manual.Net(*mlp(manual, 2, config.hidden, config.layers, classes))
    return HandLearner(model, SGDMomentum(model.parameters(), config.rate, config.momentum))
