"""Statistics of the values of each parameter."""

from __future__ import annotations

from glassgrad.doctor.quantities.field import Statistics

_OF_ALL = Statistics("parameter", ("mean", "std", "norm", "abs_max"), whole="values", entry="value")
FIELDS = _OF_ALL.fields
measure = _OF_ALL.measure
