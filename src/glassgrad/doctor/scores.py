"""Score how well outputs fit their targets: one measure for training, validation and probes, whatever the loss."""

from __future__ import annotations

import math

import numpy as np

from glassgrad.doctor.library import Array


def score(output: Array, target: Array, kind: str, middle: float | None = None) -> float:
    """Return the share of correct predictions, or of explained variance; NaN for shapes that do not match.

    Args:
        output: outputs of a model: (n, classes) for classes, otherwise as many numbers as the targets.
        target: class numbers (n,), zeros and ones, or numbers.
        kind: "classes", "binary" or "numbers".
        middle: the threshold of binary outputs; by default 0.5 for outputs that may be probabilities, else 0.

    Example:
        >>> score(np.eye(3), np.array([0, 1, 1]), "classes")
        0.6666666666666666
    """
    if kind == "classes":
        fits = output.ndim == 2 and target.shape == (len(output),) and output.shape[1] > 1
        return float(np.mean(output.argmax(1) == target)) if fits else math.nan
    if output.size != target.size or not len(target):
        return math.nan
    output = output.reshape(target.shape).astype(np.float64)
    if kind == "binary":
        if middle is None:
            middle = 0.5 if output.min() >= 0 and output.max() <= 1 else 0.0
        return float(np.mean((output > middle) == (target > 0.5)))
    spread = float(target.astype(np.float64).var(0).mean())
    with np.errstate(all="ignore"):
        return 1 - float(np.square(output - target).mean()) / spread if spread > 0 else math.nan
