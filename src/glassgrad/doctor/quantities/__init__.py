"""The quantities of a monitor's record, one per file: the arrays, and how to measure them.

A field of kind "step" has one number per sample, "parameter" one per sample and parameter, "activation" one per sample
and activation, "bins" and "signed" one per sample, parameter and bin.
"""

from __future__ import annotations

from glassgrad.doctor.quantities import activations, directions, gradients, histograms, norms, parameters, updates
from glassgrad.doctor.quantities.field import Field

_FAMILIES = norms, gradients, histograms, parameters, updates, activations, directions
FIELDS: tuple[Field, ...] = tuple(field for family in _FAMILIES for field in family.FIELDS)

LATER: tuple[Field, ...] = (*histograms.FIELDS[1:], *directions.FIELDS)
"""Fields that are missing in files of the first versions."""

__all__ = ["FIELDS", "LATER", "Field"]
