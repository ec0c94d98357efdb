"""Statistics of the gradient of each parameter."""

from __future__ import annotations

from glassgrad.doctor.quantities.field import Statistics

_OF_ALL = Statistics(
    "gradient", ("mean", "std", "norm", "abs_mean", "abs_max", "zeros", "nonfinite"), whole="gradient", entry="gradient"
)
FIELDS = _OF_ALL.fields
measure = _OF_ALL.measure
