"""Learners of `glassgrad.manual`: every gradient by a formula, without a tape and without loading the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad import manual
from glassgrad.manual import SGD, BatchNorm1d, CrossEntropyLoss, Embedding, Module, RMSprop, SGDMomentum
from glassgrad.manual.models import NamesMLP
from glassgrad.tasks.classify import image_layers, mlp
from glassgrad.train.calibrate import calibrate_layers
from glassgrad.train.kept.checkpoint import Stateful
from glassgrad.train.learner import Learner

if TYPE_CHECKING:
    from glassgrad.tasks.images import ImagesConfig
    from glassgrad.tasks.names import NamesConfig
    from glassgrad.tasks.plane import PlaneConfig

Array = Any


class Bigram(Module):
    """Looks up the logits of the next character by the last one: tokens (n, context) to logits (n, tokens)."""

    def __init__(self, tokens: int) -> None:
        self.logits = Embedding(tokens, tokens)
        self.logits.weight.data[...] = 0

    def forward(self, tokens: Array) -> Array:
        return self.logits(tokens[:, -1])

    def backward(self, dlogits: Array) -> None:
        self.logits.backward(dlogits)


class ManualLearner(Learner):
    """A hand-written model and optimizer, trained on cross entropy.

    Weight decay is the gradient of weight_decay / 2 · |p|², added to that of the loss.
    """

    def __init__(self, model: Any, optimizer: Any, weight_decay: float = 0.0) -> None:
        self.model = model
        self.optimizer = optimizer
        self.parts: Mapping[str, Stateful] = {"model": model, "optimizer": _OptimizerState(optimizer)}
        self._weight_decay = weight_decay
        self._loss = CrossEntropyLoss()

    def step(self, inputs: Array, targets: Array) -> float:
        self.optimizer.zero_grad()
        loss = self._loss(self.model(inputs), targets)
        self.model.backward(self._loss.backward())
        if self._weight_decay:
            for parameter in self.optimizer.parameters:
                parameter.accumulate(self._weight_decay * parameter.data)
        self.optimizer.step()
        return loss

    def set_rate(self, rate: float) -> None:
        self.optimizer.lr = rate

    def logits(self, inputs: Array) -> Array:
        self.model.eval()
        try:
            return self.model(inputs)
        finally:
            self.model.train()

    def calibrate(self, inputs: Array) -> None:
        calibrate_layers(_batch_norms(self.model), self.model, inputs)

    def weights(self) -> dict[str, Array]:
        state: dict[str, Array] = self.model.state_dict()
        return state

    def load_weights(self, weights: Mapping[str, Array]) -> None:
        self.model.load_state_dict(weights)

    @contextmanager
    def gradients(self, inputs: Array, targets: Array) -> Iterator[float]:
        kept = {name: array.copy() for name, array in self.model.state_dict().items()}
        before = [(parameter, parameter.grad) for parameter in self.optimizer.parameters]
        try:
            self.optimizer.zero_grad()
            loss = self._loss(self.model(inputs), targets)
            self.model.backward(self._loss.backward())
            yield float(loss)
        finally:
            for parameter, g in before:
                parameter.grad = g
            for name, array in self.model.state_dict().items():
                array[...] = kept[name]

    @property
    def parameters(self) -> int:
        return sum(parameter.data.size for parameter in self.model.parameters())


class _OptimizerState:
    """The state of a hand-written optimizer in PyTorch's layout, so that another engine can continue with it."""

    _SLOTS = (("square", "square_avg"), ("velocity", "momentum_buffer"))

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    def _slots(self) -> dict[str, list[Array]]:
        held = {name: getattr(self._optimizer, attribute, None) for attribute, name in self._SLOTS}
        return {name: arrays for name, arrays in held.items() if arrays}

    def state_dict(self) -> dict[str, Any]:
        """Return the arrays of every parameter by its position, and the rate."""
        places = range(len(self._optimizer.parameters))
        state = {place: {name: arrays[place] for name, arrays in self._slots().items()} for place in places}
        return {"state": state, "param_groups": [{"lr": self._optimizer.lr, "params": list(places)}]}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Load a state; a parameter without one starts with zeros, as in PyTorch."""
        for name, arrays in self._slots().items():
            for place, array in enumerate(arrays):
                stored = state["state"].get(place, {}).get(name)
                if stored is not None and np.shape(stored) != array.shape:
                    raise ValueError(f"{name} of parameter {place} has shape {np.shape(stored)}, not {array.shape}")
                array[...] = 0 if stored is None else stored
        self._optimizer.lr = state["param_groups"][0]["lr"]


def _batch_norms(model: Any) -> list[BatchNorm1d]:
    found = [model] if isinstance(model, BatchNorm1d) else []
    for _, part in model.parts():
        found += _batch_norms(part)
    return found


def names_learner(config: NamesConfig, tokens: int, longest: int) -> ManualLearner:
    """Return the model of a configuration with the same initial weights as on the other engines.

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
    return ManualLearner(model, optimizer, config.weight_decay)


def _draw_names_weights(model: NamesMLP, seed: int) -> None:
    """Draw in the order and precision of `glassgrad.models.NamesMLP`, so that a seed gives the same model."""
    rng = np.random.Generator(np.random.PCG64(seed))
    spreads = ((model.embedding, 1.0), (model.hidden, 5 / 3 / model.hidden.weight.shape[1] ** 0.5), (model.output, 0.1))
    for layer, spread in spreads:
        layer.weight.data[...] = 0.0 + spread * rng.standard_normal(layer.weight.shape, dtype=np.float32)


def images_learner(config: ImagesConfig, size: tuple[int, int], classes: int) -> ManualLearner:
    """Return the model of a configuration; its weights are still to be loaded."""
    model = manual.Net(*image_layers(manual, config, size, classes))
    return ManualLearner(model, RMSprop(model.parameters(), config.rate, config.alpha, momentum=config.momentum))


def plane_learner(config: PlaneConfig, classes: int) -> ManualLearner:
    """Return the model of a configuration for points in the plane; its weights are still to be loaded."""
    model = manual.Net(*mlp(manual, 2, config.hidden, config.layers, classes))
    return ManualLearner(model, SGDMomentum(model.parameters(), config.rate, config.momentum))
