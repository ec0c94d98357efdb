"""Our engine tells by itself: `MODE.witness` hears of backward passes and of optimizers' steps, also while tracing.

A compiled step runs as one program, of which the engine hears nothing. The class of such programs is told, while
somebody watches, to say when one of them has run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from glassgrad.doctor.tape_graph import graph_of
from glassgrad.doctor.wires.listener import Listener
from glassgrad.engine.mode import MODE, TRACING

if TYPE_CHECKING:
    from glassgrad.doctor.nans.guard import Guard

_WATCHING: list[OurWire] = []
"""The wires that are connected, the last one innermost."""


class OurWire:
    """A connection to our engine."""

    def __init__(self, listener: Listener, model: Any, optimizers: tuple[Any, ...], guard: Guard | None = None) -> None:
        self._listener = listener
        self._guard = guard
        self._root: Any = None
        self._model = model
        self._optimizers = optimizers
        self._handle: Any = None
        self._trains: dict[int, bool] = {}
        self._running: list[int] = []
        self._aside = False
        self._parameters = {id(parameter) for parameter in model.parameters()}

    # --- what the engine calls ---

    def backward(self, roots: Any) -> None:
        """A backward pass begins."""
        root = roots[0] if isinstance(roots, tuple | list) and roots else roots
        if self._aside:
            self._listener.beside_backward(root)
            return
        self._root = root
        self._listener.before_backward(root, _tracing())
        if self._guard is not None:
            self._guard.backward(root)

    def holds(self) -> Callable[[Any], None] | None:
        """Return what is to be shown the gradients as they come, if the graph is to be kept until then."""
        return None if self._guard is None or self._aside else self._guard.holds()

    def walked(self, again: Callable[[], Any]) -> None:
        """A backward pass has ended whose graph was kept."""
        if self._guard is not None:
            self._guard.walked(again, self._root)

    def left(self) -> None:
        """A backward pass has ended."""
        self._root = None
        if not _tracing():
            self._listener.after_backward()

    def stepping(self, optimizer: Any) -> None:
        """An optimizer begins its step."""
        if self._is_mine(optimizer):
            if self._aside:
                self._listener.beside_step(optimizer)
            else:
                self._listener.before_step(optimizer, _tracing())
            if self._guard is not None and not self._aside:
                self._guard.stepping(optimizer)

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has made its step."""
        if self._is_mine(optimizer) and not self._aside:
            if _tracing() and self._running:
                self._trains[self._running[-1]] = True
            self._listener.after_step(optimizer, _tracing())
            if self._guard is not None:
                self._guard.stepped(optimizer)

    def _is_mine(self, optimizer: Any) -> bool:
        if any(optimizer is one for one in self._optimizers):
            return True
        if self._optimizers:
            return False
        return any(
            id(parameter) in self._parameters for group in optimizer.param_groups for parameter in group["params"]
        )

    # --- what the watch calls ---

    def connect(self) -> None:
        """Become the engine's witness; one that was there before goes on hearing."""
        self._before = MODE.witness
        MODE.witness = self if self._before is None else _Both(self._before, self)
        _WATCHING.append(self)
        _listen_to_programs()

    def sampled(self, wanted: bool) -> None:
        """Hook the model for the steps that are sampled."""
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
        """Cease to hear."""
        if self._handle is not None:
            self._unhook()
        MODE.witness = self._before
        if self in _WATCHING:
            _WATCHING.remove(self)
        if not _WATCHING:
            _leave_programs()

    # --- compiled programs ---

    def call(self, program: Any, run: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a compiled program, and tell if it trains the model."""
        known = self._trains.get(id(program))
        if known and not self._listener.sampling:  # as most steps are: nothing but the call and its result
            self._listener.hands_off(args)
            result = (
                run(program, *args, **kwargs) if self._guard is None else self._guard.call(program, run, args, kwargs)
            )
            self._listener.compiled(False, result)
            return result
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

    def _run_beside(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run the step as it was written, so that it can be looked into, and put back all that it changed."""
        from glassgrad.doctor.step_aside import StepAside, eagerly, written_as

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
        """Tell weights before a call from those after it; asked for a program's first calls alone."""
        return [parameter.array.tobytes() for parameter in self._model.parameters()]


class _Both:
    """Two witnesses."""

    def __init__(self, first: Any, second: Any) -> None:
        self._all = (first, second)

    def backward(self, roots: Any) -> None:
        for one in self._all:
            one.backward(roots)

    def holds(self) -> Callable[[Any], None] | None:
        looks = [look for one in self._all if (look := one.holds()) is not None]

        def look_all(g: Any) -> None:
            for look in looks:
                look(g)

        return look_all if looks else None

    def walked(self, again: Any) -> None:
        for one in self._all:
            one.walked(again)

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
    """Let every compiled program say that it was called."""
    global _UNTOLD
    from glassgrad.compile import api

    if _UNTOLD is not None:
        return
    run: Any = api.Compiled.__call__
    _UNTOLD = run

    @functools.wraps(run)
    def told(program: Any, *args: Any, **kwargs: Any) -> Any:
        if not _WATCHING or _tracing():
            return run(program, *args, **kwargs)
        return _WATCHING[-1].call(program, run, args, kwargs)

    api.Compiled.__call__ = told  # type: ignore[method-assign, assignment]  # for as long as somebody watches


def _leave_programs() -> None:
    global _UNTOLD
    from glassgrad.compile import api

    if _UNTOLD is not None:
        api.Compiled.__call__ = _UNTOLD  # type: ignore[method-assign]  # as it was
        _UNTOLD = None
