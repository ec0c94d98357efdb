"""Gradients that a step has used, and that are still there when the next backward pass begins: nobody zeroed them."""

from __future__ import annotations

import math

from glassgrad.doctor.run import Calls
from glassgrad.doctor.sampling import Sampler


class Leftovers:
    """Looks for them, and counts in `calls` the steps in which they were looked for and found.

    Attributes:
        used: whether a step has used gradients.
    """

    def __init__(self, sampler: Sampler, calls: Calls) -> None:
        self._sampler, self._calls = sampler, calls
        self.used = self._zeroed = False
        self._left: float | None = None

    def look(self, traced: bool) -> None:
        """A backward pass begins: see whether the gradients that the last step used are still there, to be added to."""
        left = float(self._sampler.any_gradient_object()) if traced else self._sampler.total()
        if left > 0 or (math.isnan(left) and self._sampler.any_gradient()):
            self._left = left
        else:
            self._zeroed = True

    def count(self) -> None:
        """A step begins, of which it is known whether there were any."""
        if self.used and (self._left is not None or self._zeroed):
            self._calls.looked_for_leftovers += 1
            if self._left is not None and not self._zeroed:
                self._calls.leftovers.append((self._calls.steps, self._left))

    def end_step(self) -> None:
        """A step has ended."""
        self.used, self._zeroed, self._left = True, False, None

    def end_trace(self) -> None:
        """A traced step has ended, which is every step that will follow: what is left over in it is so in each."""
        if self._left is not None and not self._zeroed:
            self._calls.leftovers += [(self._calls.steps, self._left)] * 2
            self._calls.looked_for_leftovers += 2
        self.end_step()
