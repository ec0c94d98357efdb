"""Batches whose loss can be computed again: given to `examine`, or taken from a training of a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.checkup import Batch, loss_of
from glassgrad.doctor.library import Args, Array, Kwargs, LossFunction, Module, Tensor

Value = Any
"""An argument or a result: a tensor, an array, a number, or containers of them."""


class Again(Protocol):
    """A batch whose loss can be computed again."""

    def rows(self) -> int:
        """Return the number of examples; 0 if it is unknown."""

    def loss(self, order: Array | None = None) -> Tensor:
        """Compute the loss, with the labels in another order if one is given."""


@dataclass(frozen=True)
class Given:
    """A batch given as inputs and targets, with the loss function."""

    model: Module
    batch: Batch
    loss_fn: LossFunction | None

    def rows(self) -> int:
        """Return the number of examples; 0 if it is unknown."""
        targets = self.batch.targets
        known = library.is_tensor(targets) and len(targets.shape) and not self.batch.keywords
        return len(targets) if known else 0

    def loss(self, order: Array | None = None) -> Tensor:
        """Compute the loss, with the labels in another order if one is given."""
        given = self.batch
        if order is not None and self.rows():
            given = given.rows(slice(None))
            given.targets = given.targets[_index(order, given.targets)]
        return loss_of(self.model(*given.inputs, **given.keywords), given, self.loss_fn)

    def parts(self, count: int) -> list[Given]:
        """Return the batch in parts of equal size; itself if it is too small."""
        size = self.rows() // count
        if size < 2:
            return [self]
        slices = (slice(at * size, at * size + size) for at in range(count))
        return [Given(self.model, self.batch.rows(rows), self.loss_fn) for rows in slices]


@dataclass(frozen=True)
class Call:
    """A call between the output of the model and the loss."""

    function: Callable[..., Any]
    args: Args
    kwargs: Kwargs
    result: Value


@dataclass
class Taken:
    """A batch of a script: the call of its model, and the calls from its output to the loss."""

    model: Module
    args: Args
    kwargs: Kwargs
    output: Value
    calls: list[Call] = field(default_factory=list)
    end: Tensor = None

    def rows(self) -> int:
        """Return the number of examples; 0 if it is unknown."""
        sizes = [len(one) for one in leaves((self.args, self.kwargs)) if len(one.shape)]
        return sizes[0] if sizes else 0

    def loss(self, order: Array | None = None) -> Tensor:
        """Compute the loss, with the labels in another order if one is given."""
        made: dict[int, Value] = {key(one): one for one in self.model.parameters()}
        _link(made, self.output, self.model(*self.args, **self.kwargs))
        for call, alive in self._calls():
            labels = {} if order is None else {key(one): one for one in self._labels(call, alive)}

            def now(value: Value, labels: dict[int, Value] = labels) -> Value:
                found: Value = made.get(key(value), value)
                return found[_index(order, found)] if key(value) in labels and order is not None else found

            _link(made, call.result, call.function(*library.mapped(call.args, now), **library.mapped(call.kwargs, now)))
        return made[key(self.end)]

    def labels(self) -> list[Value]:
        """Return what meets the output or what is computed from it, with a row for each example."""
        return [one for call, alive in self._calls() for one in self._labels(call, alive)]

    def _calls(self) -> Iterator[tuple[Call, set[int]]]:
        """Yield the calls, with the keys of what is computed from the output before each."""
        alive = {key(one) for one in leaves(self.output)}
        for call in self.calls:
            yield call, alive
            if any(key(one) in alive for one in leaves((call.args, call.kwargs))):
                alive |= {key(one) for one in leaves(call.result)}

    def _labels(self, call: Call, alive: set[int]) -> list[Value]:
        given = list(leaves((call.args, call.kwargs)))
        meets = any(key(one) in alive for one in given)
        return [one for one in given if meets and key(one) not in alive and self._is_label(one)]

    def _is_label(self, one: Value) -> bool:
        """Tell whether a tensor has a value for each example; 0, 1, 2 and so on are their places."""
        if not len(one.shape) or len(one) != self.rows() or (library.is_tensor(one) and one.requires_grad):
            return False
        numbers = library.numbers(one)
        return numbers is not None and not (numbers.ndim == 1 and np.array_equal(numbers, np.arange(len(numbers))))


def _index(order: Array, value: Value) -> Value:
    return library.tensor_of(order, True) if library.is_torch(value) else order


def _is_array(value: Value) -> bool:
    return isinstance(value, np.ndarray) or library.is_tensor(value)


def leaves(value: Value) -> Iterator[Value]:
    """Yield the tensors and arrays in arguments or results."""
    if _is_array(value):
        yield value
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))
    elif isinstance(value, tuple | list):
        for part in value:
            yield from leaves(part)
    elif hasattr(value, "logits"):
        yield from leaves(value.logits)


def key(value: Value) -> int:
    """Return the number of a tensor: that of its array in glassgrad, whose ops take arrays."""
    return id(value.array if hasattr(value, "array") and not library.is_torch(value) else value)


def _link(made: dict[int, Value], before: Value, now: Value) -> None:
    for one, other in zip(leaves(before), leaves(now), strict=False):
        made[key(one)] = other
