"""Large arrays of zeros that a trace has made and nobody has written to: the system has not given their memory yet.

The system gives a page of memory when it is first written to, which may take longer than all work on it. What a
compiled step will write to can be asked for while the step is made; `compile.native.ahead` does that.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from glassgrad.engine.mode import MODE, TRACING

_LARGE = 1 << 20  # bytes
_made: list[weakref.ref[Any]] = []


def zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an array of zeros, and remember it for `taken` if a trace has made it and it is large."""
    array = np.zeros(shape, dtype)
    if array.nbytes >= _LARGE and MODE.flags & TRACING:
        _made.append(weakref.ref(array))
    return array


def taken() -> list[np.ndarray]:
    """Return the arrays made since the last call that still exist."""
    found = [array for array in (ref() for ref in _made) if array is not None]
    _made.clear()
    return found
