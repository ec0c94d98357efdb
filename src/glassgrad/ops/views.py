"""Shared by view ops: index formulas, and refusing to write back.

An op that only moves elements states in `indices` where the elements of its result come from. A view states in
`write_back` how a write to the view reaches its source. Eager mode, the tracer and the native plan read these two
fields.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Shape = tuple[int, ...]


def in_order(at: Any, x: Any, *, shape: Shape | None = None) -> Any:
    """Return the indices for an op that changes the shape but keeps the order of elements."""
    if shape is None or not x.shape:
        return at if shape is None else ()
    return np.unravel_index(np.arange(math.prod(shape)).reshape(shape)[at], x.shape)


def broadcast_indices(at: Any, shape: Shape) -> Any:
    """Map indices of a broadcast result to indices of an array of this shape."""
    lead = len(at) - len(shape)
    return tuple([at[lead + axis] * (extent != 1) for axis, extent in enumerate(shape)])


def read_only(x: Any, view: Any, assign: Any, **_params: Any) -> None:
    """Refuse to write back: several elements of the view are the same number of `x`."""


def memory_owner(array: Any) -> Any:
    """Return the array that owns the memory viewed by `array`."""
    while True:
        base = getattr(array, "base", None)
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # as_strided inserts a wrapper object between view and source
            if not isinstance(base, np.ndarray):
                return array
        array = base
