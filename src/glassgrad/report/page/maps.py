"""Arrays as the page reads them: the numbers of small ones, and a map of the larger ones."""

from __future__ import annotations

import base64
import math

import numpy as np

from glassgrad.ops.core import Array

MOST_NUMBERS = 64
MOST_CELLS = 128
"""A map has at most so many rows and columns."""

Data = dict[str, object]


def array_data(value: Array) -> Data | None:
    """Return an array of numbers as plain data; None for anything else.

    Up to 64 elements are listed; NaN and infinity become null there, and are listed with their places. A larger array
    becomes a map of float32 with at most 128 rows and columns, each cell the mean of a part.
    """
    array = np.asarray(value)
    if array.dtype.kind == "V":  # bfloat16
        array = array.astype(np.float32)
    if array.dtype.kind not in "fiub":
        return None
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    low, high, mean = (float(finite.min()), float(finite.max()), float(finite.mean())) if finite.size else (None,) * 3
    found: Data = {"shape": list(array.shape), "min": low, "max": high, "mean": mean}
    if array.size <= MOST_NUMBERS:
        found["numbers"] = _plain(array.tolist())
        places = np.argwhere(~np.isfinite(wide))
        if len(places):
            found["nonfinite"] = [[*map(int, place), str(wide[tuple(place)])] for place in places]
    else:
        found["heat"] = heat(wide)
    return found


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def heat(array: Array) -> Data:
    """Return an array as a map: the last axis across, all others down; a long vector is broken into rows."""
    if array.ndim == 1:
        width = min(array.size, max(1, math.ceil(math.sqrt(array.size))))
        filled = np.full(-(-array.size // width) * width, np.nan)
        filled[: array.size] = array
        table = filled.reshape(-1, width)
    else:
        table = array.reshape(-1, array.shape[-1])
    with np.errstate(all="ignore"):
        pooled = _pooled(_pooled(table, 0), 1).astype("<f4")
    return {
        "rows": pooled.shape[0],
        "columns": pooled.shape[1],
        "data": base64.b64encode(np.ascontiguousarray(pooled).tobytes()).decode(),
    }


def _pooled(table: Array, axis: int) -> Array:
    size = table.shape[axis]
    if size <= MOST_CELLS:
        return table
    edges = np.linspace(0, size, MOST_CELLS + 1).astype(np.intp)
    counts = np.diff(edges).reshape([-1 if at == axis else 1 for at in range(2)])
    return np.add.reduceat(table, edges[:-1], axis=axis) / counts
