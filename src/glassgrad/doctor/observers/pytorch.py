"""The observer of PyTorch, through its own hooks: of the model, of its output and of the optimizers.

The ops behind a loss are recorded in sampled steps only, by a mode of `torch.overrides`. Its value is read in every
step, where the engine begins a backward pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from glassgrad.base.provenance import pytorch
from glassgrad.doctor import library
from glassgrad.doctor.graphs.graph import Graph
from glassgrad.doctor.graphs.torch_graph import Recorder
from glassgrad.doctor.library import Args, Handle, Kwargs, Module, Optimizer, Tensor
from glassgrad.doctor.observers.events import Check, Listener, Sampling
from glassgrad.doctor.restoring.set_aside import aside

_hearing: list[Hears] = []
_replaced: list[Callable[..., object]] = []


class TorchObserver:
    """A connection to a module and optimizers of PyTorch's."""

    def __init__(
        self, model: Module, optimizers: tuple[Optimizer, ...], watch: Sampling, guard: Check | None = None
    ) -> None:
        self._watch = watch
        self._listeners: tuple[Listener, ...] = (watch,) if guard is None else (watch, guard)
        self._model, self._inner = model, library.uncompiled(model)
        self._optimizers = optimizers
        self._handles: list[Handle] = []
        self._recorder = Recorder(self._backward)
        self._told = False

    def connect(self) -> None:
        """Register the hooks."""
        untraced = library.untraced
        self._handles.append(
            self._model.register_forward_pre_hook(untraced(library.hook_of(self._model, self._entered)))
        )
        forward = untraced(library.hook_of(self._model, self._forward))
        self._handles.append(self._model.register_forward_hook(forward, with_kwargs=True))
        for optimizer in self._optimizers:
            self._handles.append(optimizer.register_step_pre_hook(untraced(self._stepping)))
            self._handles.append(optimizer.register_step_post_hook(untraced(self._stepped)))
        hear(self)

    def sampled(self, wanted: bool) -> None:
        """Record the functions that are called in a sampled step."""
        if wanted:
            self._recorder.start()
        else:
            self._recorder.stop()

    def graph(self, loss: Tensor) -> Graph | None:
        """Return the graph of a loss, if the step was sampled."""
        return self._recorder.graph(loss)

    def disconnect(self) -> None:
        """Remove the hooks."""
        leave(self)
        for one in self._listeners:
            one.disconnect()
        self._recorder.stop()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    # --- the hooks ---

    def _entered(self, _module: Module, _args: Args) -> None:
        for one in self._listeners:
            one.entered()
        if self._inner is not self._model:
            self._recorder.stop()  # `torch.compile` would compile an active mode into the model

    def _forward(self, _module: Module, args: Args, kwargs: Kwargs, output: Any) -> None:
        if any(one.busy for one in self._listeners):
            return
        if self._inner is not self._model and self._watch.sampling:
            with aside(self._inner):
                self._inner(*args, **kwargs)  # runs the inner hooks, which a compiled module does not call
            self._recorder.start()
        for one in self._listeners:
            one.forward(args, kwargs, output)
        result = library.first_tensor(output)
        if self._watch.sampling and result is not None and result.requires_grad:
            result.register_hook(self._arrived)

    def _arrived(self, _gradient: Any) -> None:
        """Report a backward pass from a loss that the mode has not recorded."""
        if not self._told:
            self._watch.backward(None)

    def _backward(self, loss: Tensor) -> None:
        """Report the beginning of a backward pass, or with None its end."""
        self._told = loss is not None
        if self._told:
            self._watch.backward(loss)
        else:
            self._watch.left()

    def _stepping(self, optimizer: Optimizer, args: Args, kwargs: Any) -> None:
        # A closure runs its forward and backward pass between this hook and the update, before which no hook runs.
        closure = bool(len(args) > 1 or kwargs.get("closure"))
        for one in self._listeners:
            one.stepping(optimizer, closure=closure)

    def _stepped(self, optimizer: Optimizer, _args: Args, _kwargs: Any) -> None:
        for one in self._listeners:
            one.stepped(optimizer)

    def begins(self, loss: Tensor) -> bool:
        """Note that a backward pass begins; return whether its end is to be reported."""
        if self._told or any(one.busy for one in self._listeners):
            return False
        if self._watch.sampling:
            self._backward(loss)
            return True
        known = library.is_torch(loss) and loss.numel() == 1 and loss.device.type == "cpu"  # others would have to wait
        self._watch.passed(loss.item() if known else None)
        return False

    def ends(self) -> None:
        """Report the end of a backward pass."""
        self._backward(None)


class Hears(Protocol):
    """Receives the start and the end of PyTorch's backward passes."""

    def begins(self, loss: Tensor) -> bool:
        """Handle the start of a pass; return whether to report its end."""

    def ends(self) -> None:
        """Handle the end of a pass."""


def hear(observer: Hears) -> None:
    """Report backward passes to an observer, by a function in front of the engine's."""
    if not _hearing:
        autograd = pytorch().autograd
        _replaced.append(autograd.backward)
        autograd.backward = _told_of(autograd.backward)
    _hearing.append(observer)


def leave(observer: Hears) -> None:
    """Stop reporting to an observer."""
    if observer in _hearing:
        _hearing.remove(observer)
    if _replaced and not _hearing:
        pytorch().autograd.backward = _replaced.pop()


def _told_of(run: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(run)
    def backward(tensors: Tensor, *args: object, **kwargs: object) -> object:
        loss = tensors[0] if isinstance(tensors, tuple | list) and tensors else tensors
        waiting = [one for one in tuple(_hearing) if one.begins(loss)]
        result = run(tensors, *args, **kwargs)
        for one in waiting:
            one.ends()
        return result

    return backward
