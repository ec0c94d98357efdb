"""How the magnitudes of a gradient's entries are distributed, in bins that never change."""

from __future__ import annotations

import numpy as np

from glassgrad.doctor.quantities.field import Field
from glassgrad.doctor.statistics import Array, magnitudes

FIELDS = (Field("gradient_counts", "bins", "entries of |gradient| per bin of `bin_edges`", dtype=np.uint32),)


def measure(gradient: Array) -> Array:
    """Return the counts of one parameter's gradient, shape (57,)."""
    return magnitudes(gradient)
