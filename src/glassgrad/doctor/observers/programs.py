"""Calls of compiled programs: a compiled step runs as one program, and the engine reports no events inside it.

While a watch is active, the class of compiled programs reports each call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad.compile import api
from glassgrad.compile.front.calls.fast_call import MISS
from glassgrad.doctor.library import Args, Kwargs, Module
from glassgrad.doctor.observers.events import Check, Program, Run, Sampling
from glassgrad.doctor.restoring.step_aside import StepAside, eagerly, written_as
from glassgrad.engine.mode import ANOMALY, MODE, TRACING

AGAIN: dict[Any, Callable[[tuple[Any, ...], dict[str, Any]], Any]] = {}
"""By program: its fast path for a call like the previous one. See `CompiledSteps.follow`."""
_ndarray = np.ndarray
_UNUSUAL = TRACING | ANOMALY
_WATCHED: list[Programs] = []
"""The connected observers, the last one innermost."""


class Programs:
    """The compiled programs of a loop, and which of them train the model.

    Args:
        model: a program that changes its weights trains it.
        watch: receives the steps.
        guard: runs the programs, to check their results.

    Attributes:
        aside: whether a compiled step is running eagerly, outside the training.
    """

    def __init__(self, model: Module, watch: Sampling, guard: Check | None) -> None:
        self._model, self._watch, self._guard = model, watch, guard
        self._trains: dict[int, bool] = {}
        self._running: list[int] = []
        self.aside = False

    def connect(self) -> None:
        """Make every compiled program report its calls."""
        AGAIN.clear()
        _WATCHED.append(self)
        if _UNTOLD is None:
            _listen()

    def disconnect(self) -> None:
        """Stop listening."""
        AGAIN.clear()
        if self in _WATCHED:
            _WATCHED.remove(self)
        if not _WATCHED:
            _leave()

    def step_traced(self) -> None:
        """Record that the program that is being traced takes an optimizer step."""
        if self._running:
            self._trains[self._running[-1]] = True

    def run(self, program: Program, run: Run, args: Args, kwargs: Kwargs) -> Any:
        """Run a compiled program, and report it if it trains the model."""
        known = self._trains.get(id(program))
        before = self._fingerprint() if known is None else None
        if known:
            if self._watch.wants_beside:
                self._run_beside(program, args, kwargs)
            self._watch.program_begins()
        self._watch.hands_off(args)  # hooks would be part of the program
        self._running.append(id(program))
        try:
            if self._guard is None or self._guard.busy:
                result = run(program, *args, **kwargs)
            elif known is False:
                result = self._guard.run_beside(program, run, args, kwargs)
            else:
                result, _ = self._guard.run_step(program, run, args, kwargs)
        finally:
            self._running.pop()
        if known is None and id(program) not in self._trains:
            if self._fingerprint() != before:
                self._trains[id(program)] = True
            elif program.traces:
                self._trains[id(program)] = False
        if self._trains.get(id(program)):
            self._watch.program_ended(result)
        return result

    def quiet(self, program: Program, run: Run, args: Args, kwargs: Kwargs) -> Any:
        """Run a compiled program that trains the model, in a step that is not sampled; report only its loss."""
        watch, guard = self._watch, self._guard
        if watch.hooked:
            watch.hands_off(args)
        if guard is None or guard.busy:
            result, loss = run(program, *args, **kwargs), None
            array = getattr(result, "array", None)
            if type(array) is _ndarray and array.size == 1:
                loss = array.item()
        else:
            result, loss = guard.run_step(program, run, args, kwargs)
        if loss is None:
            watch.program_ended(result)
        else:
            watch.quiet_step(loss, compiled=True)
            if guard is not None and not (kwargs or guard.busy or watch.sampling):
                guard.follow(program, run, args, watch)
        return result

    def _run_beside(self, program: Program, args: Args, kwargs: Kwargs) -> None:
        """Run the step eagerly, so that its ops can be inspected, and undo its effects."""
        self.aside = True
        try:
            with self._watch.beside():
                aside = StepAside(program, (*args, *kwargs.values()))
                try:
                    with eagerly(None):
                        written_as(program)(*args, **kwargs)
                finally:
                    aside.restore()
        except Exception as error:  # noqa: BLE001 - the program, which runs next, raises what is the user's to see
            self._watch.unseen(f"the inside of the compiled step: run eagerly, it raised {type(error).__name__}")
        finally:
            self.aside = False

    def _fingerprint(self) -> list[bytes]:
        """Return the weights as bytes, for a comparison before and after; used only in a program's first calls."""
        return [parameter.array.tobytes() for parameter in self._model.parameters()]


_COMPILED: Any = api.Compiled
_UNTOLD: Any = None


def _listen() -> None:
    global _UNTOLD
    run = _COMPILED.__call__
    _UNTOLD = run

    @functools.wraps(run)
    def told(program: Program, *args: Any, **kwargs: Any) -> Any:
        quick = AGAIN.get(program)
        if quick is not None:  # the case of most steps
            result = quick(args, kwargs)
            if result is not MISS:
                return result
        if MODE.flags & _UNUSUAL or not _WATCHED:  # traced, or run eagerly: the engine reports it
            return run(program, *args, **kwargs)
        programs = _WATCHED[-1]
        if not programs._watch.sampling and programs._trains.get(id(program)):  # the case of most steps
            return programs.quiet(program, run, args, kwargs)
        return programs.run(program, run, args, kwargs)

    _COMPILED.__call__ = told


def _leave() -> None:
    global _UNTOLD
    if _UNTOLD is not None:
        _COMPILED.__call__ = _UNTOLD
        _UNTOLD = None
