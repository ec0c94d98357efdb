"""The size of the inputs of a model over a run."""

from __future__ import annotations

import numpy as np

from glassgrad.doctor.library import Array

Shape = tuple[int, ...]

_TENTHS = 2.563
"""The distance of the first and the last tenth of normal numbers, in deviations."""
_MOST, _NUMBERS, _FEWEST = 512, 1 << 14, 32
"""The most steps that are kept, and the most numbers that are looked at in each; fewer have any deviation by chance."""
_APART = 0.3
"""The share of the variance of an input that the pass before leaves open, at least, if it is not made of it."""


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
        self._before: tuple[Array, Array] | None = None

    def look(self, step: int, inputs: Array) -> None:
        """Keep the deviation of some of the numbers of a batch."""
        if inputs.dtype.kind == "f" and inputs.size >= _FEWEST and len(self.sizes) < _MOST:
            flat = inputs.reshape(-1)
            some = flat[:: max(1, flat.size // _NUMBERS)]
            middle, size = _spread(some)
            self.sizes.append((step, size))
            self._trained.append((inputs.shape[1:], middle, size))

    def held(self, inputs: Array, outputs: Array | None = None) -> None:
        """Keep mean and deviation of a batch of a pass without gradients, unless it is made of the pass before.

        A sampler puts in what came out: only its first input is one of its own.
        """
        if inputs.dtype.kind == "f" and len(inputs) >= _FEWEST and len(self._held) < _MOST:
            step = max(1, inputs.size // _NUMBERS)
            some = inputs.reshape(-1)[::step]
            if self._before is None or not _is_made_of(some, *self._before):
                self._held.append((inputs.shape[1:], *_spread(some)))
            like = outputs is not None and outputs.shape == inputs.shape
            self._before = (some.copy(), outputs.reshape(-1)[::step].copy()) if like and outputs is not None else None

    def beside(self) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Return mean and deviation of the inputs in training, and in passes without gradients; None if unknown."""
        shapes = {shape for shape, _, _ in self._trained}
        if not self._held or len(shapes) != 1 or {shape for shape, _, _ in self._held} != shapes:
            return None
        one, other = (np.median([row[1:] for row in rows], axis=0) for rows in (self._trained, self._held))
        return (float(one[0]), float(one[1])), (float(other[0]), float(other[1]))


def _is_made_of(numbers: Array, *parts: Array) -> bool:
    """Tell whether numbers are nearly a weighted sum of others."""
    if any(one.shape != numbers.shape or not np.isfinite(one).all() for one in (numbers, *parts)):
        return False
    size = float(np.abs(numbers).max()) or 1.0
    table = np.stack([*(one / (float(np.abs(one).max()) or 1.0) for one in parts), np.ones_like(numbers)], axis=1)
    weights = np.linalg.lstsq(table, numbers / size, rcond=None)[0]
    return float(np.var(numbers / size - table @ weights)) < _APART * float(np.var(numbers / size))


def _spread(numbers: Array) -> tuple[float, float]:
    """Return the mean and the deviation of numbers: of normal ones from eight tenths, of others from all."""
    low, high = np.quantile(numbers, (0.1, 0.9))
    if not high > low:  # mostly one value, such as the background of a picture
        return float(numbers.mean()), float(numbers.std())
    inner = numbers[(numbers >= low) & (numbers <= high)]
    return float(inner.mean()), float(high - low) / _TENTHS
