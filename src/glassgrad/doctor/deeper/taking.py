"""Take batches from a watched training: the first ones, with the weights that it begins with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.deeper.experiments import Bench, Start, groups_of
from glassgrad.doctor.deeper.taken import Call, Taken
from glassgrad.doctor.graphs.torch_graph import NOTHING, Calls
from glassgrad.doctor.library import Args, Kwargs, Module, Optimizer, Tensor
from glassgrad.doctor.watching import Watch
from glassgrad.engine.saved_tensors import Watcher, computed_by
from glassgrad.ops.core import Primitive

MOST = 8
"""The number of batches that are taken."""
_MOST_CALLS = 200


class DeepWatch(Watch):
    """A watch that keeps the first batches with the calls from the output of the model to the loss."""

    def __init__(self, model: Module, optimizer: Optimizer = None, **options: Any) -> None:
        super().__init__(model, optimizer, **options)
        self._start = Start(model)
        self._groups = groups_of(self.optimizers[0] if self.optimizers else None)
        self._batches: list[Taken] = []
        self._now: Taken | None = None
        self._open = False
        torch = library.is_torch(model)
        self._recorder: _Torch | _Ours = _Torch(self._note) if torch else _Ours(self._note)

    def bench(self) -> Bench:
        """Return what experiments need: the model, its first weights, the optimizer and the batches."""
        self._close()
        optimizer = self.optimizers[0] if self.optimizers else None
        return Bench(self.model, list(self._batches), optimizer, self._groups, self._start)

    def forward(self, args: Args, kwargs: Kwargs, output: Any) -> None:
        """Begin to note the calls behind a forward pass of the model."""
        super().forward(args, kwargs, output)
        if not self.sampling or not library.is_recording(self.model) or len(self._batches) >= MOST:
            return
        again = self._now is not None
        self._close()
        if again:  # the model is called several times before its loss
            self._now = None
            return
        self._now, self._open = Taken(self.model, args, kwargs, output), True
        self._recorder.enter()

    def backward(self, loss: Tensor, traced: bool = False) -> bool:
        """Keep the batch whose loss the backward pass begins at."""
        self._open = False
        taken, self._now = self._now, None
        if taken is not None and loss is not None and not traced and len(taken.calls) < _MOST_CALLS:
            taken.end = loss
            self._batches.append(taken)
        return super().backward(loss, traced)

    def stepping(self, optimizer: Optimizer, traced: bool = False, closure: bool = False) -> None:
        """Stop noting before the step."""
        self._close()
        super().stepping(optimizer, traced, closure)

    def _close(self) -> None:
        self._open = False
        self._recorder.leave()

    def _note(self, call: Call) -> None:
        if self._open and self._now is not None and len(self._now.calls) < _MOST_CALLS:
            self._now.calls.append(call)


class _Torch:
    """Notes the calls of PyTorch's functions."""

    def __init__(self, note: Callable[[Call], None]) -> None:
        self._note = note
        self._calls = Calls(self._called)

    def enter(self) -> None:
        self._calls.enter()

    def leave(self) -> None:
        self._calls.leave()

    def _called(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        name = getattr(function, "__name__", "")
        result = function(*args, **kwargs)
        if name not in NOTHING and name != "backward":
            self._note(Call(function, args, kwargs, result))
        return result


class _Ours(Watcher):
    """Notes the primitives of our engine, with the arrays that they get."""

    def __init__(self, note: Callable[[Call], None]) -> None:
        self._note = note
        self._on = False

    def enter(self) -> None:
        if not self._on:
            self._on = True
            self.__enter__()

    def leave(self) -> None:
        if self._on:
            self._on = False
            self.__exit__()

    def stand_in(self, prim: Primitive) -> Primitive:
        def evaluate(*arrays: Any, **params: Any) -> Any:
            y = _solid(prim.evaluate(*arrays, **params))
            self._note(Call(prim, arrays, params, _returned(prim, y)))
            return y

        return computed_by(prim, evaluate)


def _solid(y: Any) -> Any:
    """Return arrays for numbers of NumPy, so that the tensor holds the same object."""
    if isinstance(y, tuple):
        return tuple(_solid(part) for part in y)
    return np.asarray(y) if isinstance(y, np.generic) else y


def _returned(prim: Primitive, y: Any) -> Any:
    """Return what an op returns to its caller, without what it only saves."""
    if prim.decompose is not None:
        y = y[0]
        if prim.companions:
            y = y[: len(y) - prim.companions] if prim.multiple else y[0]
    return y
