"""What entries of view ops share: formulas on indices, and the refusal to write back.

An op that only moves elements says in `indices` where those of its result come from, and a view in `write_back` how a
write to it reaches its source. Eager mode, the tracer and the plan of native code read these two fields.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Shape = tuple[int, ...]


def in_order(at: Any, x: Any, *, shape: Shape | None = None) -> Any:
    """Return the indices of elements that stay in their order, whatever the shape."""
    if shape is None or not x.shape:
        return at if shape is None else ()
    return np.unravel_index(np.arange(math.prod(shape)).reshape(shape)[at], x.shape)


def broadcast_indices(at: Any, shape: Shape) -> Any:
    """Return the indices in an array of this shape of elements of what it broadcasts to."""
    lead = len(at) - len(shape)
    return tuple([at[lead + axis] * (extent != 1) for axis, extent in enumerate(shape)])


def read_only(x: Any, view: Any, assign: Any, **_params: Any) -> None:
    """Refuse to write back: several elements of the view are one number of `x`."""


def memory_owner(array: Any) -> Any:
    """Return the array that owns the memory which `array` is a view of."""
    while True:
        base = getattr(array, "base", None)
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # between windows and their source NumPy puts an object of its own
            if not isinstance(base, np.ndarray):
                return array
        array = base
