"""Statistics of the values of each parameter."""

from __future__ import annotations

from ..statistics import Array, summarise
from .field import Field

FIELDS = (
    Field("parameter_mean", "parameter", "mean of the values"),
    Field("parameter_std", "parameter", "standard deviation of the values (divided by n)"),
    Field("parameter_norm", "parameter", "Euclidean norm of the values"),
    Field("parameter_abs_max", "parameter", "largest |value|"),
)


def measure(values: Array) -> dict[str, float]:
    """Return the entries of one parameter."""
    found = summarise(values)
    return {
        "parameter_mean": found.mean,
        "parameter_std": found.std,
        "parameter_norm": found.norm,
        "parameter_abs_max": found.abs_max,
    }
