"""Fewer points of long curves, without losing a spike: each bucket of steps keeps its smallest and largest value."""

from __future__ import annotations

import numpy as np

from glassgrad.doctor.library import Array


def thinned(steps: Array, values: Array, most: int) -> tuple[Array, Array]:
    """Return at most about `most` rows of `values`, with their steps.

    Neighbouring rows make a bucket. In each column a bucket keeps its smallest and largest number, in their original
    order, at its first and last step. A NaN is kept only if a bucket has nothing else; infinities count as numbers. The
    first and the last row are unchanged.

    Args:
        steps: (n,) increasing.
        values: (n,) or (n, k).
        most: how many rows to keep, at least 4.

    Example:
        >>> import numpy as np
        >>> values = np.zeros(1000)
        >>> values[617] = 9.0
        >>> steps, kept = thinned(np.arange(1000), values, 100)
        >>> len(steps) <= 100, float(kept.max()), int(steps[-1])
        (True, 9.0, 999)
    """
    steps, values = np.asarray(steps), np.asarray(values, np.float64)
    if len(steps) <= most:
        return steps, values
    table = values.reshape(len(values), -1)
    inner = np.arange(1, len(steps) - 1)
    buckets = [part for part in np.array_split(inner, max(most // 2 - 1, 1)) if len(part)]
    rows, at = [table[0]], [steps[0]]
    for part in buckets:
        if len(part) == 1:
            rows.append(table[part[0]])
            at.append(steps[part[0]])
            continue
        rows.extend(_ends(table[part]))
        at.extend((steps[part[0]], steps[part[-1]]))
    rows.append(table[-1])
    at.append(steps[-1])
    return np.array(at), np.array(rows).reshape(len(rows), *values.shape[1:])


def _ends(part: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest number of each column, in their original order."""
    unknown = np.isnan(part)
    low = np.where(unknown, np.inf, part).argmin(0)
    high = np.where(unknown, -np.inf, part).argmax(0)
    columns = np.arange(part.shape[1])
    return part[np.minimum(low, high), columns], part[np.maximum(low, high), columns]
