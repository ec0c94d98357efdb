"""The losses of a loop, step by step."""

from __future__ import annotations

from array import array

import numpy as np

from glassgrad.doctor.library import Array


class LossRecord:
    """Steps with their losses.

    Attributes:
        waiting: losses of consecutive steps that are not counted yet. A caller that reports only the loss of a step
            appends it here, which takes less time than a call.

    Example:
        >>> losses = LossRecord()
        >>> losses.add(0, 2.5)
        >>> losses.waiting += [2.0, 1.5]
        >>> losses.count(1)
        2
        >>> losses.of(2)
        1.5
    """

    def __init__(self) -> None:
        self.waiting: list[float] = []
        self._runs: list[tuple[int, array[float]]] = []  # a step, its loss, and the losses of the following steps

    def add(self, step: int, loss: float) -> None:
        """Record the loss of a step."""
        self._runs.append((step, array("d", (loss,))))

    def count(self, step: int) -> int:
        """Record the waiting losses, the first as that of `step`; return their number."""
        self._runs.append((step, array("d", self.waiting)))
        counted = len(self.waiting)
        self.waiting.clear()
        return counted

    def of(self, step: int) -> float | None:
        """Return the loss of a step if it is the latest one."""
        first, losses = self._runs[-1] if self._runs else (0, ())
        return losses[-1] if losses and first + len(losses) - 1 == step else None

    def table(self) -> Array:
        """Return the array of (step, loss)."""
        pairs = [(at, loss) for step, losses in self._runs for at, loss in enumerate(losses, step)]
        return np.array(pairs, np.float64).reshape(-1, 2)
