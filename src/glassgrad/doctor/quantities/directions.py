"""How the gradient of a step lies to that of the step before, and what it was computed from.

Two gradients of different batches at nearly the same weights tell the noise from the signal (McCandlish et al. 2018,
An Empirical Model of Large-Batch Training, appendix A): g1·g2 estimates |G|², |g|² estimates |G|² + tr(Σ) / B.
"""

from __future__ import annotations

import math

from glassgrad.doctor.quantities.field import Field
from glassgrad.doctor.statistics import Array

FIELDS = (
    Field("gradient_cosine", "step", "cosine between this gradient and that of the step before", "before"),
    Field("gradient_growth", "step", "norm of this gradient by that of the step before", "before"),
    Field("batch", "step", "examples in the batch, where the model's input tells", "forward"),
    Field("rate", "step", "learning rate of the first group", "optimizer"),
)


def measure(before: list[Array], now: list[Array]) -> dict[str, float]:
    """Return the entries from the gradients of two steps, both flat and in the same order.

    Example:
        >>> import numpy as np
        >>> measure([np.array([1.0, 0.0])], [np.array([0.0, 2.0])])
        {'gradient_cosine': 0.0, 'gradient_growth': 2.0}
    """
    product = sum(float(a @ b) for a, b in zip(before, now, strict=True))
    past, present = (math.sqrt(sum(float(a @ a) for a in one)) for one in (before, now))
    if not past or not present or not math.isfinite(past * present):
        return {}
    return {"gradient_cosine": product / (past * present), "gradient_growth": present / past}


def noise_scale(cosine: Array, growth: Array, batch: Array) -> float:
    """Return the batch size at which noise and signal of a gradient are equal, from pairs of steps; NaN where unknown.

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
