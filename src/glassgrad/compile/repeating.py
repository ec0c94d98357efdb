"""Steps that native code can run many times without returning to Python, and calls that are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.compile.front.calls.cached_trace import TraceCall
from glassgrad.compile.front.calls.fast_call import Quick, Recorder
from glassgrad.compile.front.calls.parameters import Args


class Repeating:
    """Whether and how a compiled function can be repeated."""

    program: Any
    capture: Any
    _latest: TraceCall | None

    def repeatable(self) -> Any:
        """Return the native step of the latest call if it can run `again` by itself, else None.

        Everything it changes has to be state, so that no call's result is lost in the next: it returns nothing and
        draws no random numbers from Python.
        """
        step = getattr(self.program, "step", None) if self._latest is not None else None
        return step if step is not None and step.is_plain and not step.outputs and not self.capture.feeds else None


def recorded(program: Any, args: Args, begin: Callable[[], Any], record: Callable[..., None]) -> Quick | None:
    """Return the fast path for calls like a compiled function's latest; each call runs `begin` and `record`.

    None if there is no fast path. See `Recorder`; `args` are those of the latest call.
    """
    latest: TraceCall | None = program._latest
    if latest is None or program._in_a_row:  # calls of a fast path would not end a series of retraces
        return None
    return latest.recorded(list(args), Recorder(program._lock, begin, record))
