"""The observer of our engine, which reports backward passes and optimizers' steps to `MODE.witness`, also in traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.graphs.graph import Graph
from glassgrad.doctor.graphs.tape_graph import Operands, graph_of
from glassgrad.doctor.library import Args, Handle, Kwargs, Optimizer
from glassgrad.doctor.observers.calls import helpers, scaling
from glassgrad.doctor.observers.events import Check, Listener, Sampling
from glassgrad.doctor.observers.programs import AGAIN, Programs
from glassgrad.engine.mode import ANOMALY, MODE, TRACING
from glassgrad.engine.tensor import Tensor
from glassgrad.nn.module import Module

_ndarray = np.ndarray
_UNUSUAL = TRACING | ANOMALY
_BLOCKS = 64
"""The number of blocks without gradients in which the model's calls are looked at."""


class OurObserver:
    """A connection to our engine, as its witness."""

    def __init__(
        self, model: Module, optimizers: tuple[Optimizer, ...], watch: Sampling, guard: Check | None = None
    ) -> None:
        self._watch, self._guard, self._model, self._optimizers = watch, guard, model, optimizers
        self._handle: Handle | None = None
        self._beside, self._blocks = False, 0  # whether the hook is there for a block without gradients; their number
        self._programs = Programs(model, watch, guard)
        self._operands = Operands()  # noted from the output of the model to its backward pass
        self._loss: float | None = None  # the loss of a quiet step
        self._only = optimizers[0] if len(optimizers) == 1 else None
        self._parameters = {id(parameter) for parameter in model.parameters()}

    # --- called by the engine ---

    def backward(self, roots: Any) -> bool:
        """Report a backward pass; return whether to keep the graph until `walked` has seen the gradients."""
        watch, guard = self._watch, self._guard
        self._operands.leave()
        if watch.quiet and type(roots) is Tensor and not (MODE.flags & _UNUSUAL or self._programs.aside):
            array = roots.array
            if type(array) is _ndarray and array.size == 1 and roots.node is not None:
                self._loss = array.item() / scaling.factor()
                watch.heard.backwards += 1
                return guard is not None and guard.backward(roots)
        root = roots[0] if isinstance(roots, tuple | list) and roots else roots
        if self._programs.aside:
            watch.beside_backward(root)
            return False
        traced = _tracing()
        watch.backward(root, traced)
        return guard is not None and guard.backward(root, traced)

    def walked(self, found: dict[Any, Any], again: Callable[[], Any]) -> None:
        """Report the gradients of a pass whose graph was kept."""
        if self._guard is not None:
            self._guard.walked(found, again)

    def left(self) -> None:
        """Report the end of a backward pass."""
        if self._watch.sampling and not _tracing():
            self._watch.left()

    def stepping(self, optimizer: Optimizer) -> None:
        """Report the beginning of an optimizer's step."""
        if optimizer is self._only or self._is_mine(optimizer):
            if self._programs.aside:
                self._watch.beside_step(optimizer)
                return
            if self._loss is None or not self._watch.quiet:
                self._watch.stepping(optimizer, _tracing())
            if self._guard is not None:
                self._guard.stepping(optimizer)

    def stepped(self, optimizer: Optimizer) -> None:
        """Report the end of an optimizer's step."""
        if (optimizer is self._only or self._is_mine(optimizer)) and not self._programs.aside:
            loss, self._loss = self._loss, None
            if loss is not None and self._watch.quiet and not MODE.flags & _UNUSUAL:
                self._watch.quiet_step(loss)
            else:
                tracing = _tracing()
                if tracing:
                    self._programs.step_traced()
                self._watch.stepped(optimizer, tracing)
            if self._guard is not None:
                self._guard.stepped(optimizer)

    def _is_mine(self, optimizer: Optimizer) -> bool:
        for one in self._optimizers:
            if one is optimizer:
                return True
        if self._optimizers:
            return False
        return any(id(parameter) in self._parameters for parameter in library.trained_by(optimizer))

    # --- called by the watch ---

    def connect(self) -> None:
        """Become the engine's witness, and forward events to the previous one."""
        self._before = MODE.witness
        MODE.witness = self if self._before is None else _Both(self._before, self)
        self._programs.connect()
        helpers.listen(self._switched)

    def sampled(self, wanted: bool) -> None:
        """Hook the model for the steps that are sampled."""
        AGAIN.clear()
        if wanted and self._handle is None:
            self._handle = self._hooked()
        elif not wanted:
            self._operands.leave()
            self._unhook()

    def _hooked(self) -> Handle:
        return self._model.register_forward_hook(library.hook_of(self._model, self._forward), with_kwargs=True)

    def _unhook(self) -> None:
        if self._handle is not None:
            library.remove_hooks(self._model, [self._handle])
            self._handle = None

    def _forward(self, _module: Module, args: Args, kwargs: Kwargs, output: Any) -> None:
        self._blocks += self._beside
        if _tracing():
            return
        self._watch.forward(args, kwargs, output)
        if self._watch.sampling and not self._programs.aside and library.is_recording(self._model):
            self._operands.enter()

    def _switched(self, letter: str) -> None:
        """Hook the model for passes without gradients between the sampled steps: validations."""
        if letter == "N" and self._handle is None and self._blocks < _BLOCKS and not _tracing():
            self._beside = self._watch.hooked = True
            self._handle = self._hooked()
        elif letter == "n" and self._beside:
            self._beside = False
            if not self._watch.sampling:
                self._unhook()

    def graph(self, loss: Any) -> Graph | None:
        """Return the graph of a loss."""
        return graph_of(loss, self._operands.known)

    def disconnect(self) -> None:
        """Stop listening."""
        helpers.leave(self._switched)
        self._operands.leave()
        self._unhook()
        MODE.witness = self._before
        self._programs.disconnect()


class _Both(Listener):
    """Forwards the engine's events to two witnesses."""

    def __init__(self, first: Any, second: Any) -> None:
        self._all = (first, second)

    def backward(self, loss: Any, traced: bool = False) -> bool:
        keep = [one.backward(loss) for one in self._all]
        return any(keep)

    def walked(self, found: dict[Any, Any], again: Callable[[], Any]) -> None:
        for one in self._all:
            one.walked(found, again)

    def left(self) -> None:
        for one in self._all:
            one.left()

    def stepping(self, optimizer: Optimizer, traced: bool = False, closure: bool = False) -> None:
        for one in self._all:
            one.stepping(optimizer)

    def stepped(self, optimizer: Optimizer, traced: bool = False) -> None:
        for one in self._all:
            one.stepped(optimizer)


def _tracing() -> bool:
    return bool(MODE.flags & TRACING)
