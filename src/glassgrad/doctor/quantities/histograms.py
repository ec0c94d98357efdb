"""How the magnitudes of a gradient's entries are distributed, in bins that never change."""

from __future__ import annotations

import numpy as np

from glassgrad.doctor.quantities.field import Field
from glassgrad.doctor.statistics import Array, magnitudes

FIELDS = (Field("gradient_counts", "bins", "entries of |gradient| per bin of `bin_edges`", dtype=np.uint32),)


SIGNED_BINS = 40


def signed(gradient: Array) -> tuple[Array, Array]:
    """Return counts and edges of a gradient's finite entries, from the mean less four deviations to four more.

    What lies outside is counted in the outer bins.

    Example:
        >>> counts, edges = signed(np.array([-1.0, 0.0, 0.0, 1.0]))
        >>> int(counts.sum()), len(edges)
        (4, 41)
    """
    flat = np.asarray(gradient, np.float64).reshape(-1)
    flat = flat[np.isfinite(flat)]
    mean, std = (float(flat.mean()), float(flat.std())) if flat.size else (0.0, 0.0)
    reach = 4 * std or max(abs(mean), 1e-12)
    edges = np.linspace(mean - reach, mean + reach, SIGNED_BINS + 1)
    return np.histogram(np.clip(flat, edges[0], edges[-1]), edges)[0], edges


def measure(gradient: Array) -> Array:
    """Return the counts of one parameter's gradient, shape (57,)."""
    return magnitudes(gradient)
