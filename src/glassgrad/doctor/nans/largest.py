"""One check of all gradients or weights: their largest magnitude, which is NaN if any element is NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from glassgrad.doctor.library import Array
from glassgrad.ops.kernels.native import kernels

UNKNOWN = -1.0


def largest(*arrays: object) -> float:
    """Return the largest magnitude of arrays: NaN if one holds a NaN, else infinity if one holds an infinity.

    If native code cannot read one of them, the result is an upper bound for finite numbers.
    """
    found = reader()(*arrays)
    if found != UNKNOWN:
        return found
    found = 0.0
    for array in arrays:
        if isinstance(array, np.ndarray) and array.dtype.kind in "fc":
            one = _bound(array)
            found = one if math.isnan(one) or one > found else found
            if math.isnan(found):
                break
    return found


def _bound(array: Array) -> float:
    """Return the norm of an array, an upper bound of its elements; BLAS computes it at memory speed."""
    flat = array.ravel("K")
    norm = math.sqrt(abs(np.vdot(flat, flat)))
    return norm if math.isfinite(norm) or not flat.size else float(np.abs(flat).max())


def is_number(size: float, inf: bool) -> bool:
    """Return whether a magnitude is not NaN, and with `inf` not infinite either."""
    return math.isfinite(size) if inf else not math.isnan(size)


@lru_cache(maxsize=1)
def reader() -> Callable[..., float]:
    """Return the native function, or without it one that always returns `UNKNOWN`."""
    if kernels.off:
        return _nothing
    try:
        from glassgrad.compile.native.largest import reader as made

        native: Callable[..., float] = made()
        return native
    except (ImportError, OSError, RuntimeError):  # no llvmlite, or a Python whose objects native code cannot read
        return _nothing


def _nothing(*_arrays: object) -> float:
    return UNKNOWN
