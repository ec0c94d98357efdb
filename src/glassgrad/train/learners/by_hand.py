"""A learner of hand-written layers: every gradient by a formula, without a tape and without loading the engine."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from glassgrad.manual import clipping
from glassgrad.manual.losses import CrossEntropyLoss
from glassgrad.manual.norm import BatchNorm1d
from glassgrad.train.calibrate import calibrate_layers
from glassgrad.train.kept.checkpoint import Stateful
from glassgrad.train.learners.learner import CountedSteps, Learner, StepOptions
from glassgrad.train.ranks import Ranks

Array = Any  # np.ndarray


class HandLearner(CountedSteps, Learner):
    """A model with `forward` and `backward`, its optimizer from `glassgrad.manual`, and a hand-written loss.

    Weight decay adds the gradient of weight_decay / 2 · |p|² to that of the loss.
    """

    averages = scaler = None

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        *,
        loss_fn: Any = None,
        options: StepOptions | None = None,
        weight_decay: float = 0.0,
    ) -> None:
        CountedSteps.__init__(self, options or StepOptions())
        self.model, self.optimizer = model, optimizer
        self.loss_fn = CrossEntropyLoss() if loss_fn is None else loss_fn
        self._weight_decay = weight_decay
        parts: dict[str, Stateful] = {"model": model, "optimizer": optimizer}
        if not self.options.plain:
            parts["step"] = self
        if _generators(model):
            parts["generators"] = _Generators(model)
        self.parts: Mapping[str, Stateful] = parts

    # --- the step ---

    def step(self, *batch: Array) -> float:
        """Make one training step from a batch, or from several if `accumulate`; return the mean loss."""
        batches = [_arrays(one) for one in batch] if self.options.accumulate > 1 else [_arrays(batch)]
        before = self._buffers() if self.options.skip_nonfinite else {}
        self.optimizer.zero_grad()
        loss = self._add_gradients(batches)
        if self.options.plain:
            self.optimizer.step()
            return loss
        norm, made = clipping.update(
            self.optimizer,
            max_norm=self.options.max_norm,
            clip_value=self.options.clip_value,
            skip_nonfinite=self.options.skip_nonfinite,
        )
        self.norms.add(norm)
        if not made:
            self._put_back(before)
        self._count(made)
        return loss

    def _add_gradients(self, batches: list[tuple[Array, ...]]) -> float:
        """Add the gradient of the mean over all examples to every parameter, batch by batch; return that mean."""
        loss = 0.0
        for (*inputs, target), share in self._weighted(batches):
            loss += share * self.loss_fn(self.model(*inputs), target)
            dout = self.loss_fn.backward()
            self.model.backward(dout if share == 1 else dout * dout.dtype.type(share))
        if self._ranks is not None:
            grads = [parameter.grad for parameter in self.optimizer.parameters]
            self._ranks.add(grads)
            for grad in grads:
                grad /= self._ranks.count
        if self._weight_decay:
            for parameter in self.optimizer.parameters:
                parameter.accumulate(self._weight_decay * parameter.data)
        return loss

    def share(self, ranks: Ranks) -> None:
        """From now on, compute a part of every batch; gradients are averaged over the ranks."""
        self._ranks = ranks

    def set_rate(self, rate: float) -> None:
        self.optimizer.lr = rate

    # --- without a step ---

    def program(self, function: Callable[..., Array]) -> Callable[..., Array]:
        """Return the function: there is nothing to compile."""
        return function

    def outputs_and_loss(self, *batch: Array) -> tuple[Array, float]:
        """Return the model's outputs for a batch, and the loss."""
        *inputs, target = _arrays(batch)
        outputs = self.model(*inputs)
        return outputs, self.loss_fn(outputs, target)

    def target(self, target: Array) -> Array:
        """Return targets for metrics: an array, like the outputs."""
        return _arrays([target])[0]

    def check(self, *batch: Array) -> None:
        """Do nothing: every step runs line by line."""

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Set evaluation mode for the block; afterwards restore everything."""
        modes = [(module, module.training) for module in self.model.modules()]
        before = self._buffers()
        self.model.eval()
        try:
            yield
        finally:
            for module, training in modes:
                module.training = training
            self._put_back(before)

    def logits(self, inputs: Array) -> Array:
        """Return the outputs in evaluation mode; every layer keeps its own mode afterwards."""
        with self.validating():
            return self.model(inputs)

    def calibrate(self, inputs: Array) -> None:
        norms = [module for module in self.model.modules() if isinstance(module, BatchNorm1d)]
        calibrate_layers(norms, self.model, inputs)

    @contextmanager
    def gradients(self, *batch: Array) -> Iterator[float]:
        """Give every parameter the gradient of a batch within the block; yield the loss; then restore all state."""
        batches = [_arrays(one) for one in batch] if self.options.accumulate > 1 else [_arrays(batch)]
        kept, generators = self._buffers(), _Generators(self.model)
        before = [(parameter, parameter.grad) for parameter in self.optimizer.parameters]
        drawn = generators.state_dict()
        try:
            self.optimizer.zero_grad()
            yield float(self._add_gradients(batches))
        finally:
            for parameter, g in before:
                parameter.grad = g
            self._put_back(kept)
            generators.load_state_dict(drawn)

    def clip(self) -> float | None:
        """Clip the current gradients like a step; return the norm before, or None if steps do not clip."""
        max_norm, clip_value = self.options.max_norm, self.options.clip_value
        if max_norm is None and clip_value is None:
            return None
        norm = clipping.total_norm(self.optimizer.parameters)
        if max_norm is not None:
            clipping.clip_grad_norm_(self.optimizer.parameters, max_norm)
        if clip_value is not None:
            clipping.clip_grad_value_(self.optimizer.parameters, clip_value)
        return norm

    def _buffers(self) -> dict[str, Array]:
        return {name: array.copy() for name, array in self.model.named_buffers()}

    def _put_back(self, before: Mapping[str, Array]) -> None:
        for name, array in self.model.named_buffers():
            if name in before:
                array[...] = before[name]

    # --- weights and state ---

    def weights(self) -> dict[str, Array]:
        state: dict[str, Array] = self.model.state_dict()
        return state

    best_weights = weights

    def load_weights(self, weights: Mapping[str, Array]) -> None:
        """Load what `weights` returned."""
        self.model.load_state_dict(weights)

    @property
    def parameters(self) -> int:
        return sum(parameter.data.size for parameter in self.model.parameters())


class _Generators:
    """The random generators of a model's layers, for checkpoints."""

    def __init__(self, model: Any) -> None:
        self._found = _generators(model)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of each generator."""
        return {"states": [copy.deepcopy(generator.bit_generator.state) for generator in self._found]}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Load a state from `state_dict`."""
        for generator, one in zip(self._found, state["states"], strict=True):
            generator.bit_generator.state = one


def _generators(model: Any) -> list[np.random.Generator]:
    held = [value for module in model.modules() for value in vars(module).values()]
    return list({id(one): one for one in held if isinstance(one, np.random.Generator)}.values())


def _arrays(batch: Sequence[Array]) -> tuple[Array, ...]:
    """Return the parts of a batch as arrays; a Trainer's loader makes tensors."""
    return tuple(part.detach().numpy() if hasattr(part, "detach") else np.asarray(part) for part in batch)
