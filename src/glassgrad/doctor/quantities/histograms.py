"""Distributions of the entries of gradients and weights: magnitudes in fixed bins, signed values by deviations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glassgrad.doctor.library import Array
from glassgrad.doctor.quantities.field import Field
from glassgrad.doctor.quantities.statistics import magnitudes

SIGNED_BINS = 40
_REACH = 4
"""Range of the signed bins to either side of the mean, in standard deviations."""
_PART = 1 << 13

FIELDS = (
    Field("gradient_counts", "bins", "entries of |gradient| per bin of `bin_edges`", dtype=np.uint32),
    Field("gradient_signed", "signed", "entries of the gradient per bin of `signed_edges`", dtype=np.uint32),
    Field("parameter_signed", "signed", "values per bin of `signed_edges`", dtype=np.uint32),
)


def signed_edges(mean: float, std: float) -> Array:
    """Return the edges of the signed bins of an array: from four deviations below its mean to four above it.

    Example:
        >>> signed_edges(0.0, 1.0)[[0, 20, 40]]
        array([-4.,  0.,  4.])
    """
    if not np.isfinite(mean + std):
        mean = std = 0.0
    reach = _REACH * std or max(abs(mean), 1e-12)
    return np.linspace(mean - reach, mean + reach, SIGNED_BINS + 1)


def signed(gradient: Array, mean: float | None = None, std: float = 0.0) -> tuple[Array, Array]:
    """Return counts and edges of a gradient's finite entries; entries beyond the outer edges count in the outer bins.

    Args:
        gradient: an array of any shape.
        mean, std: of its finite entries, if already known.

    Example:
        >>> counts, edges = signed(np.array([-1.0, 0.0, 0.0, 1.0]))
        >>> int(counts.sum()), len(edges)
        (4, 41)
    """
    flat = gradient.reshape(-1)
    if mean is None:
        finite = np.asarray(flat[np.isfinite(flat)], np.float64)
        mean, std = (float(finite.mean()), float(finite.std())) if finite.size else (0.0, 0.0)
    edges = signed_edges(mean, std)
    counts = np.zeros(SIGNED_BINS, np.int64)
    scale = SIGNED_BINS / (edges[-1] - edges[0])
    for begin in range(0, flat.size, _PART):
        part = flat[begin : begin + _PART].astype(np.float64)
        part -= edges[0]
        part *= scale
        if not np.isfinite(part).all():
            part = part[np.isfinite(part)]
        counts += np.bincount(np.clip(part, 0, SIGNED_BINS - 1).astype(np.int64), minlength=SIGNED_BINS)
    return counts, edges


def measure(gradient: Array | None, values: Array, found: Mapping[str, float]) -> dict[str, Array]:
    """Return the counts of one parameter: by magnitude, shape (57,), and signed, shape (40,), also those of its values.

    `found` has the means and deviations of both. A missing gradient has no counts.
    """
    counts = {} if gradient is None else {"gradient_counts": magnitudes(gradient)}
    for kind, array in (("gradient", gradient), ("parameter", values)):
        if array is not None and array.dtype.kind != "c":
            counts[f"{kind}_signed"] = signed(array, found[f"{kind}_mean"], found[f"{kind}_std"])[0]
    return counts
