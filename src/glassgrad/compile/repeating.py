"""Steps that native code can run many times in a row without going back to Python, and calls that are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.compile.front.calls.cached_trace import TraceCall
from glassgrad.compile.front.calls.fast_call import Quick, Recorder
from glassgrad.compile.front.calls.parameters import Args


class Repeating:
    """What a compiled function says about being repeated."""

    program: Any
    capture: Any
    _latest: TraceCall | None

    def repeatable(self) -> Any:
        """Return the native step of the latest call if it can run `again` by itself, else None.

        All that it changes has to be state, so that nothing of a call is lost in the next: it returns nothing and draws
        no random numbers of Python's.
        """
        step = getattr(self.program, "step", None) if self._latest is not None else None
        return step if step is not None and step.is_plain and not step.outputs and not self.capture.feeds else None


def recorded(program: Any, args: Args, begin: Callable[[], Any], record: Callable[..., None]) -> Quick | None:
    """Return the fast path of calls like the latest one of a compiled function; it calls `begin` and `record` in each.

    None where there is none. See `Recorder`; `args` are those of the latest call.
    """
    latest: TraceCall | None = program._latest
    if latest is None or program._in_a_row:  # calls of a fast path would not end a row of traces
        return None
    return latest.recorded(list(args), Recorder(program._lock, begin, record))
