"""Check compiled steps for NaN: a log of the calls since a known good state, to be replayed.

While a loop is guarded its steps are compiled with one number more, which is NaN where a new weight is not finite (see
`compile.front.finite`); it and the loss that a call returns are looked at each time. When one is bad, a copy of the
state is put back and the calls since then are made again, the last one as it was written, op by op. The state is copied
as often as the time allows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glassgrad._undo import put_back
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.nans.again import Again
from glassgrad.doctor.step_aside import StepAside, arrays_in, written_as
from glassgrad.engine import tree
from glassgrad.engine.mode import FINITE, MODE
from glassgrad.engine.nonfinite import has_bad
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.writes import MUTATIONS

if TYPE_CHECKING:
    from glassgrad.doctor.nans.guard import Guard

SHARE = 0.002
"""Part of the time that copies of the state may take, here and before harmless eager steps."""
_values = dict.values
_BETWEEN = 8
"""So many calls lie between two questions whether it is time for a copy."""
_SMALL = 16
_MOST_CALLS = 2048
_MOST_BYTES = 1 << 28
"""Calls and bytes of arguments that the log holds before the state is copied in any case."""


def run_checked(program: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a compiled function that tells, in `MODE.finite`, whether what it writes into weights is finite."""
    flags, MODE.finite = MODE.flags, None
    MODE.flags = flags | FINITE
    try:
        return run(program, *args, **kwargs)
    finally:
        MODE.flags = flags


class _Call(NamedTuple):
    """A call of a compiled function: what it was given, which options optimizers had, which numbers it returned."""

    program: Any
    run: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    options: list[tuple[Any, ...]]
    result: Any

    def make(self) -> list[Any]:
        return tree.every_leaf(run_checked(self.program, self.run, self.args, self.kwargs))


class CompiledSteps:
    """The log of calls, and its replay.

    Args:
        guard: owns the model, the options and the findings.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._log: list[tuple[Any, ...]] = []  # each entry holds the fields of a `_Call`
        self._taken: dict[Any, StepAside] = {}  # by program
        self._groups: list[dict[str, Any]] = []  # of the optimizers, as they were when the log began
        self._since = 0
        self._given: list[tuple[Any, Any]] = []
        self._began, self._spent = time.perf_counter(), 0.0

    def call(self, program: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a compiled function and check what it returns."""
        return self.loss_of(program, run, args, kwargs)[0]

    def loss_of(
        self, program: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, float | None]:
        """Do the same, and return the result with the number in it, None if it is not one number.

        What happens here in every step is all that a check costs, since a small step leaves no room for more: the
        caches are cold after each.
        """
        if program not in self._taken:
            self._take(program, (*args, *kwargs.values()))
        options = [*map(tuple, map(_values, self._groups))]
        flags = MODE.flags
        MODE.flags = flags | FINITE
        try:  # `run_checked`, inlined; what an earlier step has told was no NaN
            result = run(program, *args, **kwargs)
        finally:
            MODE.flags = flags
        log = self._log
        if type(result) is Tensor and result.array.size == 1:  # a loss, as a rule
            number = result.array.item()
            log.append((program, run, args, kwargs, options, number))
            bad = number - number != 0 and (self._guard.inf or math.isnan(number))
        else:
            leaves, number = tree.every_leaf(result), None
            log.append((program, run, args, kwargs, options, _numbers(leaves)))
            bad = any(has_bad(leaf, self._guard.inf) for leaf in leaves)
        if bad or (MODE.finite and not self._is_good()):
            self._look()
        elif not len(log) % _BETWEEN and self._is_due(args):
            self._forget()
        return result, number

    def _take(self, program: Any, args: tuple[Any, ...]) -> None:
        """Copy what a program reaches, before its first call in this log."""
        began = time.perf_counter()
        if not self._taken:
            self._groups = [group for one in self._guard.optimizers for group in one.param_groups]
        self._taken[program] = StepAside(program, args)
        self._spent += time.perf_counter() - began

    def _is_good(self) -> bool:
        """Look at the weights themselves, after a step has told that something in it is not finite."""
        MODE.finite = None
        return self._guard.is_good()

    def _is_due(self, args: tuple[Any, ...]) -> bool:
        """Return whether it is time to copy the state."""
        count = len(self._log)
        held = count * sum(arg.nbytes for arg in args if isinstance(arg, Tensor | np.ndarray))
        if count >= _MOST_CALLS or held > _MOST_BYTES:
            return True
        return self._spent <= SHARE * (time.perf_counter() - self._began)

    def _forget(self) -> None:
        """Start a new log with the next call: the present state is good."""
        self._since += len(self._log)
        self._log, self._taken, self._given = [], {}, []

    # --- after a failed check ---

    def _look(self) -> None:
        guard, witness = self._guard, MODE.witness
        bad = _Call(*self._log[-1])
        self._given = [(array, array.copy()) for array in arrays_in((*bad.args, *bad.kwargs.values()))]
        guard.busy, MODE.witness = True, None
        try:
            found, kept = self._found(self._repeats())
        finally:
            guard.busy, MODE.witness = False, witness
        step = self._since + len(self._log) - 1
        self._forget()
        guard.report(found, step, kept)

    def _restore(self) -> None:
        for taken in reversed(self._taken.values()):
            taken.restore()

    def _prepare(self, call: _Call) -> None:
        for group, values in zip(self._groups, call.options, strict=True):
            group.update(zip(group, values, strict=True))

    def _repeats(self) -> bool:
        """Replay up to the state before the last call; return whether the calls gave the same results as before."""
        self._restore()
        for call in starmap(_Call, self._log[:-1]):
            self._prepare(call)
            if not _same(call.make(), call.result):
                return False
        return True

    def _found(self, repeats: bool) -> tuple[Finding, str]:
        """Run the last call eagerly from the state before it, or from the last copy if that state is lost."""
        if not repeats:
            self._restore()
        bad = _Call(*self._log[-1])
        self._prepare(bad)
        for array, content in self._given:
            put_back(array, content, MUTATIONS.record)  # the copy of the state has earlier contents
        before = StepAside(bad.program, (*bad.args, *bad.kwargs.values()))
        function = written_as(bad.program)
        again = Again(self._guard.model, inf=self._guard.inf, allow=self._guard.allow)
        found = again.run(lambda: function(*bad.args, **bad.kwargs))
        before.restore()
        if repeats:
            kept = "Weights, optimizer, running statistics and random numbers are as they were before the step."
            what = "the compiled program makes a NaN that the function as it was written does not make"
            advice = "Compile it with verify=True to see where."
        else:
            kept = (
                f"The {len(self._log) - 1} calls before it came to something else when they were made again: their "
                f"arguments, or what else they read, were overwritten. Everything is as before step {self._since}."
            )
            what = "a call made a NaN that it does not make from the state that is left"
            advice = "Give each call arrays of its own, or call the step as it was written for a while."
        return found or Finding("NaN in a compiled step", "error", what, advice), kept


def _numbers(leaves: list[Any]) -> str:
    """Return the small floating-point results of a call as text."""
    arrays = [leaf.array if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return repr([a.tolist() for a in arrays if isinstance(a, np.ndarray) and a.dtype.kind == "f" and a.size <= _SMALL])


def _same(leaves: list[Any], result: Any) -> bool:
    """Return whether a call gave the same result as before."""
    return _numbers(leaves) == result if isinstance(result, str) else repr(leaves[0].array.item()) == repr(result)


__all__ = ["SHARE", "CompiledSteps"]
