"""Find repeated passes in training mode over the same inputs, which measure a spread and are no mistake."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from glassgrad.doctor.library import Tensor
from glassgrad.doctor.run import Calls, Site


class Draws:
    """Removes such passes from `calls.training`. Call `look` after each pass is recorded there."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._last: tuple[int, Site] | None = None
        self._entered: Callable[[], object] = lambda: None

    def look(self, entering: Tensor) -> None:
        """Compare the inputs of a pass without gradients with those of the previous one."""
        call = self._calls.training[-1] if self._calls.training else None
        if call is not None and call == self._last and self._entered() is entering:
            self._calls.training[:] = [one for one in self._calls.training if one != call]
        elif call is not None:
            self._last, self._entered = call, weakref.ref(entering)
