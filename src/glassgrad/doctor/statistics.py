"""Statistics of one array, and the fixed bins that its magnitudes are counted in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any

LOWEST, HIGHEST = -40, 15
"""Exponents of the first and the last edge: 2**-40 is 9.1e-13, 2**15 is 32,768."""

BIN_EDGES = np.ldexp(1.0, np.arange(LOWEST, HIGHEST + 1))
"""Edges of the bins of |x|, powers of two: the exponent of a float is its bin, so counting needs no logarithm.

Of the 57 bins the first counts everything below the first edge, zeros too, the last everything from the last edge on,
infinities too. Each other bin holds its lower edge and not its upper one. NaN is in none.
"""

BINS = len(BIN_EDGES) + 1

_EXPONENT_BIAS, _MANTISSA_BITS = 127, 23  # of IEEE 754 single precision


@dataclass(frozen=True, slots=True)
class Summary:
    """What is known of an array after one look at it.

    Attributes:
        count: how many numbers.
        mean, std: of the finite ones; the deviation is that of the whole (divided by n, not by n - 1).
        abs_mean, abs_max, minimum, maximum: of the finite ones.
        norm: the square root of the sum of squares of all; NaN or infinite if one of them is.
        zeros: share of exact zeros.
        nonfinite: how many are NaN or infinite.

    Every statistic of no numbers is NaN.
    """

    count: int
    mean: float
    std: float
    abs_mean: float
    abs_max: float
    minimum: float
    maximum: float
    norm: float
    zeros: float
    nonfinite: int


def summarise(array: Array) -> Summary:
    """Return the statistics of an array of any shape and real or complex dtype, computed in double precision.

    Example:
        >>> import numpy as np
        >>> found = summarise(np.array([3.0, -4.0, 0.0, np.nan]))
        >>> found.abs_max, found.zeros, found.nonfinite, found.norm
        (4.0, 0.25, 1, nan)
    """
    with np.errstate(all="ignore"):  # what comes out NaN or infinite is counted, not warned of
        return _summary(_flat(array))


def _summary(flat: Array) -> Summary:
    count = flat.size
    finite = flat
    squares = float(flat @ flat)
    if not math.isfinite(squares):
        finite = flat[np.isfinite(flat)]
    if not finite.size:
        no = math.nan
        norm, zeros = (_norm(flat, squares), 0.0) if count else (no, no)
        return Summary(count, no, no, no, no, no, no, norm, zeros, count)
    absolute = np.abs(finite)
    return Summary(
        count,
        mean=float(finite.mean()),
        std=float(finite.std()),
        abs_mean=float(absolute.mean()),
        abs_max=float(absolute.max()),
        minimum=float(finite.min()),
        maximum=float(finite.max()),
        norm=_norm(flat, squares),
        zeros=1 - int(np.count_nonzero(flat)) / count,
        nonfinite=count - finite.size,
    )


def _flat(array: Array) -> Array:
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag])
    return array.reshape(-1).astype(np.float64, copy=False)


def _norm(flat: Array, squares: float) -> float:
    if math.isinf(squares) and np.isfinite(flat).all():  # the squares are too large, the norm need not be
        largest = np.abs(flat).max()
        return float(largest * np.linalg.norm(flat / largest))
    return math.sqrt(squares)


def magnitudes(array: Array) -> Array:
    """Return how many |x| lie in each bin of `BIN_EDGES`, shape (57,), uint32.

    Example:
        >>> import numpy as np
        >>> counts = magnitudes(np.array([0.0, 1.0, -1.5, 2.0]))
        >>> counts[[0, 41, 42]]
        array([1, 2, 1], dtype=uint32)
    """
    if array.dtype.kind == "c":
        array = np.abs(array)
    with np.errstate(over="ignore", under="ignore"):  # what single precision cannot hold belongs to the outer bins
        bits = np.ascontiguousarray(array, np.float32).reshape(-1).view(np.uint32)
    exponents = np.bincount((bits >> _MANTISSA_BITS) & 0xFF, minlength=256)
    first = _EXPONENT_BIAS + LOWEST
    last = _EXPONENT_BIAS + HIGHEST
    counts = np.empty(BINS, np.uint32)
    counts[0] = exponents[:first].sum()
    counts[1:-1] = exponents[first:last]
    counts[-1] = exponents[last:].sum() - np.count_nonzero(np.isnan(array))
    return counts
