"""The size of the inputs of a model over a run."""

from __future__ import annotations

from glassgrad.doctor.library import Array

_MOST, _NUMBERS = 512, 1 << 14
"""The most steps that are kept, and the most numbers that are looked at in each."""


class Drift:
    """Deviations of the inputs of sampled steps.

    Example:
        >>> import numpy as np
        >>> drift = Drift()
        >>> drift.look(0, np.array([1.0, -1.0]))
        >>> drift.sizes
        [(0, 1.0)]
    """

    def __init__(self) -> None:
        self.sizes: list[tuple[int, float]] = []

    def look(self, step: int, inputs: Array) -> None:
        """Keep the deviation of some of the numbers of a batch."""
        if inputs.dtype.kind == "f" and inputs.size > 1 and len(self.sizes) < _MOST:
            flat = inputs.reshape(-1)
            self.sizes.append((step, float(flat[:: max(1, flat.size // _NUMBERS)].std())))
