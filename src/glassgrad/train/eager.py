"""Learners on the engine: models of `glassgrad.nn`, step by step or compiled."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import nn, optim, public  # noqa: F401 - importing public completes Tensor
from ..creation import from_numpy, tensor
from ..models import GPT, Bigram, CharRNN, NamesMLP
from ..nn import functional as F
from ..random import Generator, default_generator, get_states, manual_seed, set_states
from ..tape import MUTATIONS, no_grad
from .calibrate import calibrate_batch_norm
from .checkpoint import Stateful

if TYPE_CHECKING:
    from .images import ImagesConfig
    from .names import NamesConfig
    from .plane import PlaneConfig
    from .text import TextConfig

Array = Any


class EngineLearner:
    """A module and an optimizer of ours, trained on cross entropy.

    Arguments: `compiled` makes the step one program; the gradient's norm is clipped to `largest_norm` unless that is 0;
    `random` says that training draws random numbers, which a checkpoint then has to go on with.
    """

    def __init__(
        self, model: nn.Module, optimizer: Any, compiled: bool = False, largest_norm: float = 0.0, random: bool = False
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.parts: Mapping[str, Stateful] = {
            "model": _AsArrays(model),
            "optimizer": _AsArrays(optimizer),
            **({"random": _RandomState()} if random else {}),
        }
        self._largest_norm = largest_norm
        self.step: Callable[[Array, Array], Any] = self._compiled() if compiled else self._step

    def _step(self, inputs: Array, targets: Array) -> Any:
        loss = _loss(self.model(from_numpy(inputs)), from_numpy(targets))
        self.optimizer.zero_grad()
        loss.backward()
        self.clip()
        self.optimizer.step()
        return loss

    def clip(self) -> Any:
        """Scale the gradients down to the largest norm there is to be; return their norm before, None without one."""
        if not self._largest_norm:
            return None
        return nn.utils.clip_grad_norm_(self.model.parameters(), self._largest_norm)

    def _compiled(self) -> Callable[[Array, Array], Any]:
        from ..compile import compile as compiled

        model, optimizer = self.model, self.optimizer

        def step(inputs: Any, targets: Any) -> Any:
            loss = _loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            self.clip()
            optimizer.step()
            return loss

        program = compiled(step, keep_grads=False)
        return lambda inputs, targets: program(from_numpy(inputs), from_numpy(targets))

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the steps to come."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def logits(self, inputs: Array) -> Array:
        """Return the outputs for inputs as in evaluation; the model stays in training mode."""
        self.model.eval()
        try:
            with no_grad():
                return self.model(from_numpy(np.ascontiguousarray(inputs))).numpy()
        finally:
            self.model.train()

    def calibrate(self, inputs: Array) -> None:
        """Set the statistics of batch normalisation to those of all inputs."""
        calibrate_batch_norm(self.model, inputs)

    @contextmanager
    def gradients(self, inputs: Array, targets: Array) -> Iterator[float]:
        """Within the block every parameter has the gradient of a batch, whose loss is the value; nothing stays of it.

        Random numbers, buffers and gradients are put back, so that the step to come is the one it would have been.
        """
        model, kept = self.model, get_states()
        buffers = [(buffer, buffer.numpy().copy()) for buffer in model.buffers()]
        before = [(parameter, parameter._grad) for parameter in model.parameters()]
        try:
            for parameter, _ in before:
                parameter._grad = None
            loss = _loss(model(from_numpy(inputs)), from_numpy(targets))
            loss.backward()
            yield float(loss)
        finally:
            set_states(kept)
            for parameter, g in before:
                parameter._grad = g
            for buffer, array in buffers:
                buffer.array[...] = array
                MUTATIONS.record(buffer.array)

    def weights(self) -> dict[str, Array]:
        """Return every parameter and buffer under PyTorch's name for it."""
        state: dict[str, Array] = _arrays(self.model.state_dict())
        return state

    def load_weights(self, weights: Mapping[str, Array]) -> None:
        """Take over what `weights` returned."""
        self.model.load_state_dict(_tensors(dict(weights)))

    @property
    def parameters(self) -> int:
        """The number of trained numbers."""
        return sum(parameter.numel() for parameter in self.model.parameters())


def _loss(logits: Any, targets: Any) -> Any:
    """Mean cross entropy; of whole sequences over all their places, those with the target -100 left out."""
    if logits.ndim > 2:
        logits, targets = logits.flatten(0, 1), targets.flatten()
    return F.cross_entropy(logits, targets)


class _RandomState:
    """The stream of random numbers that dropout draws from, as a part of a checkpoint."""

    def state_dict(self) -> dict[str, Any]:
        return default_generator.get_state()

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        default_generator.set_state(state)


class _AsArrays:
    """A part of a checkpoint with arrays in place of tensors, which is how every engine stores it."""

    def __init__(self, part: Any) -> None:
        self._part = part

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = _arrays(self._part.state_dict())
        return state

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        state = _tensors(state)
        if "param_groups" in state:  # another engine may store fewer options than this optimizer has
            own = self._part.state_dict()["param_groups"]
            groups = state["param_groups"]
            state["param_groups"] = [{**mine, **stored} for mine, stored in zip(own, groups, strict=True)]
        self._part.load_state_dict(state)


def _arrays(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _arrays(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_arrays(value) for value in tree]
    return np.asarray(tree.detach().numpy()) if hasattr(tree, "detach") else tree


def _tensors(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _tensors(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_tensors(value) for value in tree]
    return tensor(tree) if isinstance(tree, np.ndarray) else tree


def can_compile() -> bool:
    """Whether native code can be made here; without it the compiled engine is the eager one."""
    return importlib.util.find_spec("llvmlite") is not None


def _learner(model: nn.Module, optimizer: Any, config: Any, clip: float = 0.0, dropout: float = 0.0) -> EngineLearner:
    """Put a learner together as a configuration says; dropout begins with the random numbers of the seed."""
    if dropout:
        manual_seed(config.seed)
    return EngineLearner(model, optimizer, config.engine == "compiled" and can_compile(), clip, random=dropout > 0)


def names_learner(config: NamesConfig, tokens: int, longest: int) -> EngineLearner:
    """Return the model of a configuration with its initial weights, which depend on the seed alone.

    `longest` is the length of the longest word: what a GPT looks back at.
    """
    model = _names_model(config, tokens, longest, Generator().manual_seed(config.seed))
    if config.model in {"mlp", "bigram"}:
        descent = optim.SGD(
            model.parameters(), lr=config.rate, momentum=config.momentum, weight_decay=config.weight_decay
        )
        return _learner(model, descent, config)
    optimizer = optim.AdamW(model.parameters(), lr=config.rate, weight_decay=config.weight_decay)
    return _learner(model, optimizer, config, config.clip, config.dropout)


def _names_model(config: NamesConfig, tokens: int, longest: int, generator: Generator) -> nn.Module:
    if config.model == "bigram":
        return Bigram(tokens, generator)
    if config.model == "mlp":
        return NamesMLP(tokens, config.context, config.embedding, config.hidden, config.norm_momentum, generator)
    if config.model == "gpt":
        return GPT(tokens, longest + 1, config.embedding, config.heads, config.layers, config.dropout, generator)
    return CharRNN(tokens, config.model, config.embedding, config.hidden, config.layers, config.dropout, generator)


def text_learner(config: TextConfig, tokens: int) -> EngineLearner:
    """Return the GPT of a configuration with its initial weights, which depend on the seed alone."""
    generator = Generator().manual_seed(config.seed)
    model = GPT(tokens, config.context, config.width, config.heads, config.layers, config.dropout, generator)
    optimizer = optim.AdamW(
        model.parameters(), lr=config.rate, betas=(config.beta1, config.beta2), weight_decay=config.weight_decay
    )
    return _learner(model, optimizer, config, config.clip, config.dropout)


def plane_learner(config: PlaneConfig, classes: int) -> EngineLearner:
    """Return the model of a configuration for points in the plane; its weights are still to be loaded."""
    model = _mlp(2, config.hidden, config.layers, classes)
    return _learner(model, optim.SGD(model.parameters(), lr=config.rate, momentum=config.momentum), config)


def images_learner(config: ImagesConfig, size: tuple[int, int], classes: int) -> EngineLearner:
    """Return the model of a configuration; its weights are still to be loaded."""
    if config.model == "cnn":
        model = _cnn(config, size, classes)
    else:
        model = _mlp(size[0] * size[1], config.hidden, config.layers, classes)
    optimizer = optim.RMSprop(model.parameters(), lr=config.rate, alpha=config.alpha, momentum=config.momentum)
    return _learner(model, optimizer, config)


def _mlp(inputs: int, hidden: int, count: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(count):
        layers += [nn.Linear(inputs, hidden), nn.ReLU()]
        inputs = hidden
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


def _cnn(config: ImagesConfig, size: tuple[int, int], classes: int) -> nn.Sequential:
    channels, hidden = config.channels, config.hidden
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * channels * (size[0] // 4) * (size[1] // 4), hidden), nn.ReLU(),
        nn.Linear(hidden, classes),
    )  # fmt: skip
