"""The wire to our engine, which reports backward passes and optimizers' steps to `MODE.witness`, also while tracing.

A compiled step runs as one program, of which the engine reports nothing. While a watch is active, the class of compiled
programs reports each call.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.compile.front.calls.fast_call import MISS
from glassgrad.doctor.graphs.tape_graph import graph_of
from glassgrad.doctor.nans.compiled_steps import AGAIN
from glassgrad.engine.mode import ANOMALY, MODE, TRACING
from glassgrad.engine.tensor import Tensor

if TYPE_CHECKING:
    from glassgrad.doctor.nans.guard import Guard
    from glassgrad.doctor.watching import Watch

_ndarray = np.ndarray
_UNUSUAL = TRACING | ANOMALY
_WATCHING: list[OurWire] = []
"""The wires that are connected, the last one innermost."""


class OurWire:
    """A connection to our engine."""

    def __init__(self, listener: Watch, model: Any, optimizers: tuple[Any, ...], guard: Guard | None = None) -> None:
        self._listener = listener
        self._guard = guard
        if guard is not None:
            self.walked = guard.walked  # called by the engine with the gradients of a pass whose graph was kept
        self._model = model
        self._optimizers = optimizers
        self._handle: Any = None
        self._trains: dict[int, bool] = {}
        self._running: list[int] = []
        self._aside = False
        self._loss: float | None = None  # of a quiet step
        self._only = optimizers[0] if len(optimizers) == 1 else None
        self._parameters = {id(parameter) for parameter in model.parameters()}

    # --- called by the engine ---

    def backward(self, roots: Any) -> bool:
        """Report a backward pass; return whether to keep the graph until `walked` has seen the gradients."""
        listener, guard = self._listener, self._guard
        if listener.quiet and type(roots) is Tensor and not (MODE.flags & _UNUSUAL or self._aside):
            array = roots.array
            if type(array) is _ndarray and array.size == 1 and roots.node is not None:
                loss = self._loss = array.item()
                listener.heard.backwards += 1
                if guard is None:
                    return False
                if loss - loss != 0 or guard.busy:
                    return guard.backward(roots)
                guard.root = roots
                return True
        root = roots[0] if isinstance(roots, tuple | list) and roots else roots
        if self._aside:
            self._listener.beside_backward(root)
            return False
        listener.before_backward(root, bool(MODE.flags & TRACING))
        return guard is not None and guard.backward(root)

    def left(self) -> None:
        """Report the end of a backward pass."""
        if self._listener.sampling and not _tracing():
            self._listener.after_backward()

    def stepping(self, optimizer: Any) -> None:
        """Report the beginning of an optimizer's step."""
        if optimizer is self._only or self._is_mine(optimizer):
            if self._aside:
                self._listener.beside_step(optimizer)
                return
            if self._loss is None or not self._listener.quiet:
                self._listener.before_step(optimizer, bool(MODE.flags & TRACING))
            if self._guard is not None:
                self._guard.stepping(optimizer)

    def stepped(self, optimizer: Any) -> None:
        """Report the end of an optimizer's step."""
        if (optimizer is self._only or self._is_mine(optimizer)) and not self._aside:
            loss, self._loss = self._loss, None
            if loss is not None and self._listener.quiet and not MODE.flags & _UNUSUAL:
                self._listener.quiet_step(loss)
            else:
                tracing = bool(MODE.flags & TRACING)
                if tracing and self._running:
                    self._trains[self._running[-1]] = True
                self._listener.after_step(optimizer, tracing)
            if self._guard is not None:
                self._guard.stepped(optimizer)

    def _is_mine(self, optimizer: Any) -> bool:
        for one in self._optimizers:
            if one is optimizer:
                return True
        if self._optimizers:
            return False
        return any(
            id(parameter) in self._parameters for group in optimizer.param_groups for parameter in group["params"]
        )

    # --- called by the watch ---

    def connect(self) -> None:
        """Become the engine's witness, and forward events to the previous one."""
        AGAIN.clear()
        self._before = MODE.witness
        MODE.witness = self if self._before is None else _Both(self._before, self)
        _WATCHING.append(self)
        _listen_to_programs()

    def sampled(self, wanted: bool) -> None:
        """Hook the model for the steps that are sampled."""
        AGAIN.clear()
        if wanted and self._handle is None:
            self._handle = self._model.register_forward_hook(self._forward)
        elif not wanted and self._handle is not None:
            self._unhook()

    def _unhook(self) -> None:
        from glassgrad.doctor import library

        self._handle.remove()
        self._handle = None
        library.drop_empty_hooks(self._model)

    def _forward(self, _module: Any, args: Any, output: Any) -> None:
        if not _tracing():
            self._listener.forward(output, args)

    def graph(self, loss: Any) -> Any:
        """Return the graph of a loss."""
        return graph_of(loss)

    def disconnect(self) -> None:
        """Stop listening."""
        AGAIN.clear()
        if self._handle is not None:
            self._unhook()
        MODE.witness = self._before
        if self in _WATCHING:
            _WATCHING.remove(self)
        if not _WATCHING:
            _leave_programs()

    # --- compiled programs ---

    def call(self, program: Any, run: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a compiled program, and report it if it trains the model."""
        known = self._trains.get(id(program))
        before = self._fingerprint() if known is None else None
        if known:
            if self._listener.wants_beside:
                self._run_beside(program, args, kwargs)
            self._listener.compiled(True, None)
        self._listener.hands_off(args)  # hooks would be part of the program
        self._running.append(id(program))
        try:
            if self._guard is None:
                result = run(program, *args, **kwargs)
            elif known is False:
                result = self._guard.call_beside(program, run, args, kwargs)
            else:
                result = self._guard.call(program, run, args, kwargs)
        finally:
            self._running.pop()
        if known is None and id(program) not in self._trains:
            if self._fingerprint() != before:
                self._trains[id(program)] = True
            elif program.traces:
                self._trains[id(program)] = False
        if self._trains.get(id(program)):
            self._listener.compiled(False, result)
        return result

    def quiet_call(self, program: Any, run: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a compiled program that trains the model, in a step that is not sampled; report only its loss."""
        listener, guard = self._listener, self._guard
        if listener.hooked:
            listener.hands_off(args)
        if guard is None or guard.busy:
            result, loss = run(program, *args, **kwargs), None
            array = getattr(result, "array", None)
            if type(array) is _ndarray and array.size == 1:
                loss = array.item()
        else:
            result, loss = guard.compiled.loss_of(program, run, args, kwargs)
        if loss is None:
            listener.compiled(False, result)
        else:
            listener.quiet_step(loss, compiled=True)
            if guard is not None and not (kwargs or guard.busy or listener.sampling):
                guard.compiled.follow(program, run, args, listener)
        return result

    def _run_beside(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run the step eagerly, so that its inside can be inspected, and undo its effects."""
        from glassgrad.doctor.restoring.step_aside import StepAside, eagerly, written_as

        self._aside = True
        try:
            with self._listener.beside():
                aside = StepAside(program, (*args, *kwargs.values()))
                try:
                    with eagerly(None):
                        written_as(program)(*args, **kwargs)
                finally:
                    aside.restore()
        except Exception as error:  # noqa: BLE001 - the program, which runs next, raises what is the user's to see
            self._listener.unseen(f"the inside of the compiled step: run eagerly, it raised {type(error).__name__}")
        finally:
            self._aside = False

    def _fingerprint(self) -> list[bytes]:
        """Return the weights as bytes, for a comparison before and after; used only in a program's first calls."""
        return [parameter.array.tobytes() for parameter in self._model.parameters()]


class _Both:
    """Forwards events to two witnesses."""

    def __init__(self, first: Any, second: Any) -> None:
        self._all = (first, second)

    def backward(self, roots: Any) -> bool:
        keep = [one.backward(roots) for one in self._all]
        return any(keep)

    def walked(self, found: dict[Any, Any], again: Any) -> None:
        for one in self._all:
            one.walked(found, again)

    def left(self) -> None:
        for one in self._all:
            one.left()

    def stepping(self, optimizer: Any) -> None:
        for one in self._all:
            one.stepping(optimizer)

    def stepped(self, optimizer: Any) -> None:
        for one in self._all:
            one.stepped(optimizer)


def _tracing() -> bool:
    return bool(MODE.flags & TRACING)


_UNTOLD: Any = None


def _listen_to_programs() -> None:
    """Make every compiled program report its calls."""
    global _UNTOLD
    from glassgrad.compile import api

    if _UNTOLD is not None:
        return
    run: Any = api.Compiled.__call__
    _UNTOLD = run

    @functools.wraps(run)
    def told(program: Any, *args: Any, **kwargs: Any) -> Any:
        quick = AGAIN.get(program)
        if quick is not None:  # as in most steps
            result = quick(args, kwargs)
            if result is not MISS:
                return result
        if MODE.flags & _UNUSUAL or not _WATCHING:  # traced, or run as it is written: the engine reports it
            return run(program, *args, **kwargs)
        wire = _WATCHING[-1]
        if not wire._listener.sampling and wire._trains.get(id(program)):  # as in most steps
            return wire.quiet_call(program, run, args, kwargs)
        return wire.call(program, run, args, kwargs)

    api.Compiled.__call__ = told  # type: ignore[method-assign, assignment]  # for as long as somebody watches


def _leave_programs() -> None:
    global _UNTOLD
    from glassgrad.compile import api

    if _UNTOLD is not None:
        api.Compiled.__call__ = _UNTOLD  # type: ignore[method-assign]  # as it was
        _UNTOLD = None
