"""The gradient of a step relative to that of the previous step, and the conditions of the step.

Two gradients of different batches at nearly the same weights separate noise from signal (McCandlish et al. 2018,
An Empirical Model of Large-Batch Training, appendix A): g1·g2 estimates |G|², |g|² estimates |G|² + tr(Σ) / B.

Together with the update d between them they give the curvature of the loss along d, without another pass. On a parabola
the update reaches the minimum if (g1 - g0)·d = -g0·d, and the initial height on the other side if (g1 - g0)·d is twice
-g0·d. For plain SGD this ratio is the rate times the curvature, whose limit is 2. Pure noise, uncorrelated gradients,
gives 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from glassgrad.doctor.library import Array
from glassgrad.doctor.quantities.field import Field

FIELDS = (
    Field("gradient_cosine", "step", "cosine between this gradient and that of the previous step", "before"),
    Field("gradient_growth", "step", "norm of this gradient divided by that of the previous step", "before"),
    Field("curvature", "step", "curvature of the loss along the previous update: (g1 - g0)·d / d·d", "before"),
    Field(
        "update_reach",
        "step",
        "that update relative to the way to the minimum along it: (g1 - g0)·d / -g0·d",
        "before",
    ),
    Field("batch", "step", "examples in the batch, if the model's input shows it", "forward"),
    Field("rate", "step", "learning rate of the first group", "optimizer"),
)


def measure(
    before: Sequence[Array | None], now: Sequence[Array | None], moved: Sequence[Array] | None = None
) -> dict[str, float]:
    """Return the entries from the flat gradients of two steps in the same order; None marks a missing one.

    Args:
        before, now: the gradients.
        moved: the update of the first of the steps.

    Example:
        >>> import numpy as np
        >>> measure([np.array([1.0, 0.0])], [np.array([0.0, 2.0])])
        {'gradient_cosine': 0.0, 'gradient_growth': 2.0}
        >>> measure([np.array([4.0])], [np.array([-2.0])], [np.array([-3.0])])  # of x² at 2, and at -1
        {'gradient_cosine': -1.0, 'gradient_growth': 0.5, 'curvature': 2.0, 'update_reach': 1.5}
    """
    if [one is None for one in before] != [one is None for one in now]:
        return {}
    pairs = [(a, b) for a, b in zip(before, now, strict=True) if a is not None and b is not None]
    product = sum(float(a @ b) for a, b in pairs)
    past, present = (math.sqrt(sum(float(a @ a) for a in one)) for one in zip(*pairs, strict=True)) if pairs else (0, 0)
    if not past or not present or not math.isfinite(past * present):
        return {}
    found = {"gradient_cosine": product / (past * present), "gradient_growth": present / past}
    if moved is not None:
        there = (d for a, d in zip(before, moved, strict=True) if a is not None)
        found |= _along([(a, b, d) for (a, b), d in zip(pairs, there, strict=True)])
    return found


def _along(parts: Sequence[tuple[Array, Array, Array]]) -> dict[str, float]:
    """Return curvature and reach of the update between two gradients."""
    began = sum(float(a @ d) for a, _, d in parts)
    ended = sum(float(b @ d) for _, b, d in parts)
    length = sum(float(d @ d) for *_, d in parts)
    if not length or not began < 0 or not math.isfinite(began + ended + length):
        return {}  # the update was zero, or went uphill, which is possible with momentum
    return {"curvature": (ended - began) / length, "update_reach": (began - ended) / began}


def noise_scale(cosine: Array, growth: Array, batch: Array) -> float:
    """Return the batch size at which noise and signal of a gradient are equal, from pairs of steps; NaN if unknown.

    Example:
        >>> import numpy as np
        >>> noise_scale(np.array([0.5]), np.array([1.0]), np.array([32.0]))
        32.0
    """
    import numpy as np

    known = np.isfinite(cosine) & np.isfinite(growth) & np.isfinite(batch)
    if not known.any():
        return math.nan
    # In units of the earlier gradient's square: g1·g2 = cosine * growth, |g|² about (1 + growth²) / 2.
    signal = float(np.mean(cosine[known] * growth[known]))
    whole = float(np.mean((1 + growth[known] ** 2) / 2))
    return float(np.mean(batch[known])) * (whole - signal) / signal if signal > 0 else math.inf
