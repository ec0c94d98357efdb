"""Looking for NaN in compiled steps: a log of the calls since a state that was good, to be made again.

The loss that a call returns is looked at each time. The weights are looked at, and then copied, as often as the time
allows. When something is bad the copies are put back and the calls repeated until the first bad one; its function then
runs once more, as it was written, op by op.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.nans.again import Again
from glassgrad.doctor.nans.state import is_good
from glassgrad.doctor.step_aside import StepAside, written_as
from glassgrad.engine import tree
from glassgrad.engine.mode import MODE
from glassgrad.engine.nonfinite import has_bad
from glassgrad.engine.tensor import Tensor

if TYPE_CHECKING:
    from glassgrad.doctor.nans.guard import Guard

_SHARE = 0.01
_FIRST = 8
"""So many calls are looked at whatever it costs: most faults show there."""
_BETWEEN = 8
"""So many calls lie between two questions whether it is time for a look."""
_SMALL = 16
_MOST_CALLS = 2048
_MOST_BYTES = 1 << 28
"""Calls and bytes of arguments that the log holds before the weights are copied in any case."""


class _Call(NamedTuple):
    """A call of a compiled function: what it was given, which options optimizers had, which numbers it returned."""

    program: Any
    run: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    options: list[tuple[Any, ...]]
    result: Any

    def make(self) -> list[Any]:
        return tree.every_leaf(self.run(self.program, *self.args, **self.kwargs))


class CompiledSteps:
    """The log, and what is done with it.

    Args:
        guard: whose model, options and report these are.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._log: list[_Call] = []
        self._taken: dict[int, StepAside] = {}
        self._since = 0
        self._began, self._spent = time.perf_counter(), 0.0

    def call(self, program: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a compiled function and look at what it returns."""
        if id(program) not in self._taken:
            began = time.perf_counter()
            self._taken[id(program)] = StepAside(program, (*args, *kwargs.values()))
            self._spent += time.perf_counter() - began
        options = [tuple(group.values()) for optimizer in self._guard.optimizers for group in optimizer.param_groups]
        result = run(program, *args, **kwargs)
        if type(result) is Tensor and result.array.size == 1:  # a loss, as a rule
            numbers = result.array.item()
            bad = numbers != numbers or (self._guard.inf and numbers - numbers != 0)  # noqa: PLR0124 - true of NaN
        else:
            leaves = tree.every_leaf(result)
            numbers, bad = _numbers(leaves), self._is_bad(leaves)
        self._log.append(_Call(program, run, args, kwargs, options, numbers))
        if bad:
            self._look()
        elif (self._since + len(self._log) <= _FIRST or not len(self._log) % _BETWEEN) and self._is_due(args):
            began = time.perf_counter()
            good = is_good((tensor.array for tensor in self._guard.named.values()), self._guard.inf)
            self._spent += time.perf_counter() - began
            if not good:
                self._look()
            self._forget()
        return result

    def _is_bad(self, leaves: list[Any]) -> bool:
        return any(has_bad(leaf, self._guard.inf) for leaf in leaves)

    def _groups(self) -> list[dict[str, Any]]:
        return [group for optimizer in self._guard.optimizers for group in optimizer.param_groups]

    def _is_due(self, args: tuple[Any, ...]) -> bool:
        """Tell whether the weights are to be looked at and copied."""
        count = len(self._log)
        held = count * sum(arg.nbytes for arg in args if isinstance(arg, Tensor | np.ndarray))
        if self._since + count <= _FIRST or count >= _MOST_CALLS or held > _MOST_BYTES:
            return True
        return self._spent <= _SHARE * (time.perf_counter() - self._began)

    def _forget(self) -> None:
        """Begin anew with the next call: the state is good now."""
        self._since += len(self._log)
        self._log, self._taken = [], {}

    # --- when something was bad ---

    def _look(self) -> None:
        guard, witness = self._guard, MODE.witness
        guard.busy, MODE.witness = True, None
        try:
            at = self._first_bad()
            found, kept = self._lost() if at is None else self._again(at)
        finally:
            guard.busy, MODE.witness = False, witness
        last = len(self._log) - 1
        step = self._since + (last if at is None else at)
        if at is not None and at < last:
            kept = f"{kept} (It was noticed {last - at} calls later.)"
        self._forget()
        guard.report(found, step, kept)

    def _restore(self) -> None:
        for taken in reversed(self._taken.values()):
            taken.restore()

    def _prepare(self, call: _Call) -> None:
        for group, values in zip(self._groups(), call.options, strict=True):
            group.update(zip(group, values, strict=True))

    def _first_bad(self) -> int | None:
        """Make the calls again; return the number of the first that is bad, None if they do not repeat."""
        self._restore()
        for at, call in enumerate(self._log):
            self._prepare(call)
            leaves = call.make()
            if not _same(leaves, call.result):
                return None
            weights = (tensor.array for tensor in self._guard.named.values())
            if self._is_bad(leaves) or not is_good(weights, self._guard.inf):
                return at
        return None

    def _lost(self) -> tuple[Finding, str]:
        self._restore()
        what = (
            f"one of the last {len(self._log)} calls made a NaN, and they came to something else when they were made "
            "again: their arguments, or what else they read, were overwritten"
        )
        advice = "Give each call arrays of its own, or call the step as it was written for a while."
        return Finding("NaN in a compiled step", "error", what, advice), f"Everything is as before step {self._since}."

    def _again(self, at: int) -> tuple[Finding, str]:
        """Go to the state before a call and run its function as it was written."""
        self._restore()
        for call in self._log[:at]:
            self._prepare(call)
            call.make()
        bad = self._log[at]
        self._prepare(bad)
        before = StepAside(bad.program, (*bad.args, *bad.kwargs.values()))
        function = written_as(bad.program)
        again = Again(self._guard.model, inf=self._guard.inf, allow=self._guard.allow)
        found = again.run(lambda: function(*bad.args, **bad.kwargs))
        before.restore()
        if found is None:
            what = "the compiled program makes a NaN that the function as it was written does not make"
            found = Finding("NaN in a compiled step", "error", what, "Compile it with verify=True to see where.")
        return found, "Weights, optimizer, running statistics and random numbers are as they were before the step."


def _numbers(leaves: list[Any]) -> str:
    """Return the small floating-point results of a call as text."""
    arrays = [leaf.array if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return repr([a.tolist() for a in arrays if isinstance(a, np.ndarray) and a.dtype.kind == "f" and a.size <= _SMALL])


def _same(leaves: list[Any], result: Any) -> bool:
    """Tell whether a call came to what it came to before."""
    return _numbers(leaves) == result if isinstance(result, str) else repr(leaves[0].array.item()) == repr(result)


__all__ = ["CompiledSteps"]
