"""Statistics of the gradient of each parameter."""

from __future__ import annotations

from ..statistics import Array, summarise
from .field import Field

FIELDS = (
    Field("gradient_mean", "parameter", "mean of the gradient"),
    Field("gradient_std", "parameter", "standard deviation of the gradient (divided by n)"),
    Field("gradient_norm", "parameter", "Euclidean norm of the gradient"),
    Field("gradient_abs_mean", "parameter", "mean of |gradient|"),
    Field("gradient_abs_max", "parameter", "largest |gradient|"),
    Field("gradient_zeros", "parameter", "share of entries that are exactly zero"),
    Field("gradient_nonfinite", "parameter", "number of entries that are NaN or infinite"),
)


def measure(gradient: Array) -> dict[str, float]:
    """Return the entries of one parameter's gradient."""
    found = summarise(gradient)
    return {
        "gradient_mean": found.mean,
        "gradient_std": found.std,
        "gradient_norm": found.norm,
        "gradient_abs_mean": found.abs_mean,
        "gradient_abs_max": found.abs_max,
        "gradient_zeros": found.zeros,
        "gradient_nonfinite": float(found.nonfinite),
    }
