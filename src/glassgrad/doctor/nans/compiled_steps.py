"""Check compiled steps for NaN: a log of the calls since a known good state, to be replayed.

Steps of a guarded loop are compiled with one more result, which is NaN if a new weight is not finite (see
`compile.front.finite`); each call checks it and the returned loss. If one is bad, a copy of the state is restored and
the calls since that copy are repeated, the last one eagerly, op by op. The state is copied as often as time allows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from glassgrad.base.undo import put_back
from glassgrad.compile.repeating import recorded
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.library import Args, Kwargs
from glassgrad.doctor.nans.again import Again
from glassgrad.doctor.nans.step_check import ALL_BACK, SHARE, StepCheck
from glassgrad.doctor.observers.events import Program, Run, Sampling
from glassgrad.doctor.observers.programs import AGAIN
from glassgrad.doctor.restoring.step_aside import StepAside, arrays_in, written_as
from glassgrad.engine import tree
from glassgrad.engine.mode import FINITE, MODE
from glassgrad.engine.reports.nonfinite import has_bad, is_scaled
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.writes import MUTATIONS

_FEWEST, _MOST, _SECONDS = 8, 256, 0.05
"""The least and the most calls, and the time, between two decisions on copying the state."""
_FIELDS = 4
"""The number of fields of each call in the log."""
_SMALL = 16
_MOST_CALLS = 2048
_MOST_BYTES = 1 << 28
"""The largest number of calls and of bytes of arguments in the log; beyond them the state is always copied."""
ONLY_COMPILED = Finding(
    "NaN in a compiled step",
    "error",
    "the compiled program makes a NaN that the function as it was written does not make",
    "Compile it with verify=True to see where.",
)


def run_checked(program: Program, run: Run, args: Args, kwargs: Kwargs) -> Any:
    """Run a compiled function that reports in `MODE.finite` whether it writes only finite weights."""
    flags, MODE.finite = MODE.flags, None
    MODE.flags = flags | FINITE
    try:
        return run(program, *args, **kwargs)
    finally:
        MODE.flags = flags


class _Way(NamedTuple):
    """How a compiled function is called."""

    program: Program
    run: Run
    kwargs: Kwargs


class _Call(NamedTuple):
    """A call: its way, its arguments, the optimizers' options, and the numbers that it returned."""

    way: _Way
    args: Args
    options: tuple[Any, ...]
    result: Any

    def make(self) -> list[Any]:
        program, run, kwargs = self.way
        return tree.every_leaf(run_checked(program, run, self.args, kwargs))

    def is_infinite(self) -> bool:
        """Return whether it returned one number, an infinite one."""
        return isinstance(self.result, float) and math.isinf(self.result)

    def given(self) -> tuple[Any, ...]:
        """Return all arguments."""
        return *self.args, *self.way.kwargs.values()


class CompiledSteps:
    """The log of calls, and its replay.

    Args:
        guard: owns the model, the options and the findings.
    """

    def __init__(self, guard: StepCheck) -> None:
        self._guard = guard
        self._log: list[Any] = []  # the fields of a `_Call` for each call, one after the other
        self._taken: dict[Any, StepAside] = {}  # keyed by program
        self._groups: list[dict[str, Any]] = []  # the optimizers' groups when the log began
        self._options: Callable[[], tuple[Any, ...]] = tuple  # the values of one optimizer, or of each of several
        self._since = self._asks = 0  # calls before this log; calls in it before the next check whether to copy
        self._given: list[tuple[Any, Any]] = []
        self._began = self._copied = time.perf_counter()
        self._spent = 0.0
        self._infinite = False  # whether the function returns infinities that no op of it made

    def run(self, program: Program, run: Run, args: Args, kwargs: Kwargs) -> tuple[Any, float | None]:
        """Run a compiled function and check its result; return the result, and the number in it, or None."""
        if program not in self._taken:
            self._take(program, (*args, *kwargs.values()))
        options = self._options()
        result = run_checked(program, run, args, kwargs)
        if type(result) is Tensor and result.array.size == 1:  # usually a loss
            told = number = result.array.item()
            bad = self._is_bad(number)
        else:
            leaves, number = tree.every_leaf(result), None
            told, bad = _numbers(leaves), any(has_bad(leaf, self._guard.inf) for leaf in leaves)
        self._log += _Way(program, run, kwargs), args, options, told
        self._check(bad, args)
        return result, number

    def _check(self, bad: bool, args: Args) -> None:
        """Read the report of the latest call; copy the state if it is finite and there is time."""
        if bad or (MODE.finite and not self._is_good()):
            self._look()
        elif self._count >= self._asks and self._is_due(args):
            self._forget()

    def _is_bad(self, number: float) -> bool:
        if number - number == 0:
            return False
        return math.isnan(number) or self._guard.inf or not (self._infinite or is_scaled())

    def follow(self, program: Program, run: Run, args: Args, watch: Sampling) -> None:
        """Let the program's fast path make the next calls that are like the previous one, by itself.

        A small step leaves no time for more work, because the caches are cold after each step: everything known is
        bound here, and decisions are made only once in many calls.
        """
        losses, log, way = watch.losses.waiting, self._log, _Way(program, run, {})
        known, until = self._options(), self._until(watch)

        def record(args: Args, options: Any, number: float, told: Any) -> None:
            nonlocal known, until
            if options != known:
                known = options  # otherwise keeping them takes no extra memory
            log.extend((way, args, known, number))
            if number - number or told:
                MODE.finite = told
                self._check(self._is_bad(number), args)
            losses.append(number)
            if len(log) >= until:
                if self._count >= self._asks and self._is_due(args):
                    self._forget()
                until = self._until(watch)
                if len(log) >= until:
                    AGAIN.pop(program, None)

        if program in self._taken and len(log) < until:
            quick = recorded(program, args, self._options, record)
            if quick is not None:
                AGAIN[program] = quick

    def _until(self, watch: Sampling) -> int:
        """Return the length of the log at which the next decision is due, minus the call that makes it."""
        return _FIELDS * (self._count + min(watch.settle() - 1, self._asks - self._count))

    def _take(self, program: Program, args: Args) -> None:
        """Copy the state that a program reaches, before its first call in this log."""
        began = time.perf_counter()
        if not self._taken:
            self._groups = [group for one in self._guard.optimizers for group in one.param_groups]
            views = [group.values() for group in self._groups]
            self._options = partial(tuple, *views) if len(views) == 1 else lambda: tuple(map(tuple, views))
        self._taken[program] = StepAside(program, args)
        self._copied = time.perf_counter()
        self._spent += self._copied - began

    def _is_good(self) -> bool:
        """Check the weights themselves, after a step has reported a value that is not finite."""
        MODE.finite = None
        return self._guard.is_good()

    @property
    def _count(self) -> int:
        return len(self._log) // _FIELDS

    def _calls(self) -> list[_Call]:
        return [_Call(*self._log[at : at + _FIELDS]) for at in range(0, len(self._log), _FIELDS)]

    def _is_due(self, args: Args) -> bool:
        """Return whether it is time to copy the state; if not, set when to check again."""
        count, now = self._count, time.perf_counter()
        between = min(max(int(_SECONDS * count / max(now - self._copied, 1e-9)), _FEWEST), _MOST)
        each = sum(array.nbytes for array in arrays_in(args))
        most = min(_MOST_CALLS, _MOST_BYTES // max(each, 1))
        is_time = count >= _FEWEST and self._spent <= SHARE * (now - self._began)
        self._asks = min(count + between, most)
        return is_time or count >= most

    def _forget(self) -> None:
        """Start a new log with the next call: the current state is good."""
        self._since += self._count
        self._log, self._taken, self._given, self._asks = [], {}, [], 0
        AGAIN.clear()

    # --- after a failed check ---

    def _look(self) -> None:
        guard, witness = self._guard, MODE.witness
        AGAIN.clear()
        bad = self._calls()[-1]
        self._given = [(array, array.copy()) for array in arrays_in(bad.given())]
        guard.busy, MODE.witness = True, None
        try:
            found, kept = self._found(self._repeats())
        finally:
            guard.busy, MODE.witness = False, witness
        if found is ONLY_COMPILED and bad.is_infinite():
            self._infinite = True
            bad.make()  # the step once more: its state was put back
            self._forget()
            return
        step = self._since + self._count - 1
        self._forget()
        guard.report(found, step, kept)

    def _restore(self) -> None:
        for taken in reversed(self._taken.values()):
            taken.restore()

    def _prepare(self, call: _Call) -> None:
        options = (call.options,) if len(self._groups) == 1 else call.options
        for group, values in zip(self._groups, options, strict=True):
            group.update(zip(group, values, strict=False))  # some options may have been added since

    def _repeats(self) -> bool:
        """Replay up to the state before the last call; return whether the results are the same as before."""
        self._restore()
        for call in self._calls()[:-1]:
            self._prepare(call)
            if not _same(call.make(), call.result):
                return False
        return True

    def _found(self, repeats: bool) -> tuple[Finding, str]:
        """Run the last call eagerly from the state before it, or from the last copy if that state is lost."""
        if not repeats:
            self._restore()
        bad = self._calls()[-1]
        self._prepare(bad)
        for array, content in self._given:
            put_back(array, content, MUTATIONS.record)  # the copy of the state has earlier contents
        program, _, kwargs = bad.way
        before, function = StepAside(program, bad.given()), written_as(program)
        again = Again(self._guard.model, inf=self._guard.inf, allow=self._guard.allow)
        found = again.run(lambda: function(*bad.args, **kwargs))
        before.restore()
        if repeats:
            return found or ONLY_COMPILED, ALL_BACK
        kept = (
            f"The {self._count - 1} earlier calls gave other results when they were repeated: their arguments, or "
            f"other values that they read, were overwritten. The state is that before step {self._since}."
        )
        what = "a call made a NaN, but its repetition from the remaining state did not"
        advice = "Give each call its own arrays, or run the step eagerly for a while."
        return found or Finding("NaN in a compiled step", "error", what, advice), kept


def _numbers(leaves: list[Any]) -> str:
    """Return the small floating-point results of a call as text."""
    arrays = [leaf.array if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return repr([a.tolist() for a in arrays if isinstance(a, np.ndarray) and a.dtype.kind == "f" and a.size <= _SMALL])


def _same(leaves: list[Any], result: Any) -> bool:
    """Return whether a call gave the same result as before."""
    return _numbers(leaves) == result if isinstance(result, str) else repr(leaves[0].array.item()) == repr(result)
