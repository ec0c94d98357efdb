"""Steps that native code can run many times in a row without going back to Python."""

from __future__ import annotations

from typing import Any


class Repeating:
    """What a compiled function says about being repeated."""

    program: Any
    capture: Any
    _latest: Any

    def repeatable(self) -> Any:
        """Return the native step of the latest call if it can run `again` by itself, else None.

        All that it changes has to be state, so that nothing of a call is lost in the next: it returns nothing and draws
        no random numbers of Python's.
        """
        step = getattr(self.program, "step", None) if self._latest is not None else None
        return step if step is not None and step.is_plain and not step.outputs and not self.capture.feeds else None
