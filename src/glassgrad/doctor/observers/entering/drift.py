"""The size of the inputs of a model over a run."""

from __future__ import annotations

import numpy as np

from glassgrad.doctor.library import Array

Shape = tuple[int, ...]

_TENTHS = 2.563
"""The distance of the first and the last tenth of normal numbers, in deviations."""
_MOST, _NUMBERS, _FEWEST = 512, 1 << 14, 32
"""The most steps that are kept, and the most numbers that are looked at in each; fewer have any deviation by chance."""


class Drift:
    """Deviations of the inputs of sampled steps, without the tenths at both ends: outliers come in some batches only.

    Example:
        >>> import numpy as np
        >>> drift = Drift()
        >>> drift.look(0, np.array([1.0, -1.0] * 20))
        >>> drift.sizes[0][0], round(drift.sizes[0][1], 2)
        (0, 0.78)
    """

    def __init__(self) -> None:
        self.sizes: list[tuple[int, float]] = []
        self._trained: list[tuple[Shape, float, float]] = []
        self._held: list[tuple[Shape, float, float]] = []

    def look(self, step: int, inputs: Array) -> None:
        """Keep the deviation of some of the numbers of a batch."""
        if inputs.dtype.kind == "f" and inputs.size >= _FEWEST and len(self.sizes) < _MOST:
            flat = inputs.reshape(-1)
            some = flat[:: max(1, flat.size // _NUMBERS)]
            middle, size = _spread(some)
            self.sizes.append((step, size))
            self._trained.append((inputs.shape[1:], middle, size))

    def held(self, inputs: Array) -> None:
        """Keep mean and deviation of a batch of a pass without gradients."""
        if inputs.dtype.kind == "f" and len(inputs) >= _FEWEST and len(self._held) < _MOST:
            flat = inputs.reshape(-1)
            some = flat[:: max(1, flat.size // _NUMBERS)]
            self._held.append((inputs.shape[1:], *_spread(some)))

    def beside(self) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Return mean and deviation of the inputs in training, and in passes without gradients; None if unknown."""
        shapes = {shape for shape, _, _ in self._trained}
        if not self._held or len(shapes) != 1 or {shape for shape, _, _ in self._held} != shapes:
            return None
        one, other = (np.median([row[1:] for row in rows], axis=0) for rows in (self._trained, self._held))
        return (float(one[0]), float(one[1])), (float(other[0]), float(other[1]))


def _spread(numbers: Array) -> tuple[float, float]:
    """Return the mean and the deviation of numbers: of normal ones from eight tenths, of others from all."""
    low, high = np.quantile(numbers, (0.1, 0.9))
    if not high > low:  # mostly one value, such as the background of a picture
        return float(numbers.mean()), float(numbers.std())
    inner = numbers[(numbers >= low) & (numbers <= high)]
    return float(inner.mean()), float(high - low) / _TENTHS
