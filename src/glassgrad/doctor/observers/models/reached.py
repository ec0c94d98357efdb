"""Find the examples of a batch that the gradient of the loss reaches at the output of the model."""

from __future__ import annotations

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.library import Array, Tensor

_ENOUGH, _MOST, _FEWEST = 3, 8, 8
"""The number of passes that have to agree, of passes to check, and of examples that a batch needs."""


class Reached:
    """Records which examples the gradient reaches in the first sampled passes."""

    def __init__(self) -> None:
        self._passes = 0
        self._rows: list[tuple[int, ...]] = []

    def look(self, output: Tensor, rows: int) -> None:
        """Check the output of a pass over a number of examples."""
        known = output is not None and getattr(output, "requires_grad", False) and getattr(output, "ndim", 0)
        if self._passes < _MOST and known and rows >= _FEWEST and len(output) == rows:
            self._passes += 1
            output.register_hook(lambda g: self._arrived(library.numbers(g)))

    def _arrived(self, g: Array | None) -> None:
        if g is not None and g.ndim:
            reached = np.flatnonzero((g != 0).reshape(len(g), -1).any(1))
            if len(reached):
                single = int(reached[0]) - (len(g) if reached[0] == len(g) - 1 else 0)
                self._rows.append((single,) if len(reached) == 1 else ())

    def alone(self) -> tuple[int, int] | None:
        """Return the index of the only example that all passes reach, -1 for the last one, and the number of passes."""
        if len(self._rows) < _ENOUGH or len(set(self._rows)) != 1 or not self._rows[0]:
            return None
        return self._rows[0][0], len(self._rows)
