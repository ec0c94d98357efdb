"""Large arrays of zeros that a trace made and that were never written to: the system has not mapped their memory yet.

The system maps a page of memory at its first write, which may take longer than all work on the page. Memory that a
compiled step will write to can be mapped while the step is compiled; `compile.native.ahead` does so.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from glassgrad.engine.mode import MODE, TRACING

_LARGE = 1 << 20  # bytes
_made: list[weakref.ref[Any]] = []


def zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an array of zeros, and remember it for `taken` if it is large and made during a trace."""
    array = np.zeros(shape, dtype)
    if array.nbytes >= _LARGE and MODE.flags & TRACING:
        _made.append(weakref.ref(array))
    return array


def taken() -> list[np.ndarray]:
    """Return the arrays made since the last call that still exist."""
    found = [array for array in (ref() for ref in _made) if array is not None]
    _made.clear()
    return found
