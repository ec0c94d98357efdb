"""Detect gradients that a step has used and that were not zeroed before the next backward pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

from glassgrad.doctor.library import Optimizer, trained_by
from glassgrad.doctor.observers.sampling import Parameters, Preset, Sampler
from glassgrad.doctor.run import Calls


class Leftovers:
    """Looks for used gradients, and counts in `calls` the steps that were checked and those with used gradients.

    An optimizer zeroes only the gradients of its own parameters; if these are known, other parameters are not checked.

    Attributes:
        used: whether a step has used gradients.
    """

    def __init__(self, named: Parameters, optimizers: Sequence[Optimizer], preset: Preset, calls: Calls) -> None:
        theirs = set(map(id, trained_by(*optimizers)))
        self._sampler = Sampler([pair for pair in named if id(pair[1]) in theirs] or named, preset)
        self._calls = calls
        self.used = self._zeroed = False
        self._left: float | None = None

    def look(self, traced: bool) -> None:
        """Check, as a backward pass begins, whether the gradients that the last step used are still there."""
        left = float(self._sampler.any_gradient_object()) if traced else self._sampler.total()
        if left > 0 or (math.isnan(left) and self._sampler.any_gradient()):
            self._left = left
        else:
            self._zeroed = True

    def count(self) -> None:
        """Count the step that begins, if its gradients were checked."""
        if self.used and (self._left is not None or self._zeroed):
            self._calls.looked_for_leftovers += 1
            if self._left is not None and not self._zeroed:
                self._calls.leftovers.append((self._calls.steps, self._left))

    def end_step(self) -> None:
        """Forget what was found, at the end of a step."""
        self.used, self._zeroed, self._left = True, False, None

    def end_trace(self) -> None:
        """Count a traced step twice: its leftovers recur in every later step."""
        if self._left is not None and not self._zeroed:
            self._calls.leftovers += [(self._calls.steps, self._left)] * 2
            self._calls.looked_for_leftovers += 2
        self.end_step()
