"""Statistics of one array, and the fixed bins for counting its magnitudes."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from glassgrad.doctor.library import Array

LOWEST, HIGHEST = -40, 15
"""Exponents of the first and the last edge: 2**-40 is 9.1e-13, 2**15 is 32,768."""

BIN_EDGES = np.ldexp(1.0, np.arange(LOWEST, HIGHEST + 1))
"""Edges of the bins of |x|, powers of two: the exponent of a float is its bin, so counting needs no logarithm.

Of the 57 bins the first counts everything below the first edge, zeros too, the last everything from the last edge on,
infinities too. Each other bin holds its lower edge and not its upper one. NaN is in none.
"""

BINS = len(BIN_EDGES) + 1

_PART = 1 << 13
"""The number of elements processed together: they fit the cache, and are too few for BLAS to start threads."""

_LARGE = 1 << 16
"""The size from which native code is used: it makes one pass over the elements instead of seven."""

_EXPONENT_BIAS, _MANTISSA_BITS = 127, 23  # of IEEE 754 single precision


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of an array from one pass.

    Attributes:
        count: the number of elements.
        mean, std: those of the finite elements; the variance is divided by n, not n - 1.
        abs_mean, abs_max, minimum, maximum: those of the finite elements.
        norm: the square root of the sum of squares of all elements; NaN or infinite if one of them is.
        zeros: share of exact zeros.
        nonfinite: the number of NaN and infinities.

    Statistics of no elements are NaN.

    Example:
        >>> import numpy as np
        >>> import glassgrad as gg
        >>> found = gg.doctor.summarise(np.array([1.0, 2.0, 6.0]))
        >>> found.mean, found.maximum
        (3.0, 6.0)
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
    with np.errstate(all="ignore"):  # NaN and infinities are counted, without a warning
        sums = _Sums()
        for part in _parts(array, sums.add_natively(array)):
            sums.add(part)
        return sums.summary(array)


def norm(array: Array) -> float:
    """Return the Euclidean norm of an array, computed in double precision.

    Example:
        >>> import numpy as np
        >>> norm(np.array([3.0, 4.0], np.float32))
        5.0
    """
    with np.errstate(all="ignore"):  # an infinite norm is the answer
        sums = _Sums()
        begin = sums.add_natively(array)
        return _root(sums.squares + sum(float(part @ part) for part in _parts(array, begin)), array)


def _native() -> Any:
    """Return the native pass over an array; None without llvmlite, and for hand-written layers without the engine."""
    engine = sys.modules.get("glassgrad.ops.kernels.native")
    return None if engine is None or engine.kernels.off else _reader()


@lru_cache(maxsize=1)
def _reader() -> Any:
    try:
        from glassgrad.compile.native.moments import reader

        return reader()
    except (ImportError, OSError, RuntimeError):
        return None


def _parts(array: Array, first: int = 0) -> Iterator[Array]:
    """Yield the elements from index `first` on in double precision, in parts that stay in the cache between passes."""
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag])
    flat = array.reshape(-1)
    for begin in range(first, flat.size, _PART):
        yield flat[begin : begin + _PART].astype(np.float64)


def _root(squares: float, array: Array) -> float:
    if math.isinf(squares) and np.isfinite(array).all():  # the squares overflow, but the norm may not
        largest = float(np.abs(array).max())
        return largest * math.sqrt(sum(float(part @ part) for part in _parts(array / largest)))
    return math.sqrt(squares)


class _Sums:
    """The sums of one pass over the elements."""

    def __init__(self) -> None:
        self.count = self.finite = self.nonzero = 0
        self.sum = self.abs_sum = self.squares = self.finite_squares = 0.0
        self.minimum, self.maximum = math.inf, -math.inf

    def add_natively(self, array: Array) -> int:
        """Add the first elements of a large array by native code; return how many, 0 if some are not finite."""
        large = array.size >= _LARGE and array.dtype.char in "fd" and array.flags.c_contiguous and array.flags.aligned
        native = _native() if large else None
        if native is None:
            return 0
        count, rows = native(array.reshape(-1))
        total, abs_sum, squares, zeros = rows[:4].sum(1).tolist()
        if not math.isfinite(squares):
            return 0
        self.count = self.finite = int(count)
        self.sum, self.abs_sum, self.squares, self.finite_squares = total, abs_sum, squares, squares
        self.nonzero = int(count - zeros)
        self.minimum, self.maximum = float(rows[4].min()), float(rows[5].max())
        return int(count)

    def add(self, part: Array) -> None:
        self.count += part.size
        self.nonzero += int(np.count_nonzero(part != 0))  # counting booleans is several times faster
        squares = float(part @ part)
        self.squares += squares
        if not math.isfinite(squares):
            part = part[np.isfinite(part)]
            if not part.size:
                return
            squares = float(part @ part)
        self.finite += part.size
        self.finite_squares += squares
        self.sum += float(part.sum())
        self.minimum, self.maximum = min(self.minimum, float(part.min())), max(self.maximum, float(part.max()))
        self.abs_sum += float(np.abs(part, out=part).sum())

    def summary(self, array: Array) -> Summary:
        no = math.nan
        norm, zeros = (_root(self.squares, array), 1 - self.nonzero / self.count) if self.count else (no, no)
        if not self.finite:
            return Summary(self.count, no, no, no, no, no, no, norm, zeros, self.count)
        mean = self.sum / self.finite
        return Summary(
            self.count,
            mean=mean,
            std=self._deviation(mean, array),
            abs_mean=self.abs_sum / self.finite,
            abs_max=max(-self.minimum, self.maximum),
            minimum=self.minimum,
            maximum=self.maximum,
            norm=norm,
            zeros=zeros,
            nonfinite=self.count - self.finite,
        )

    def _deviation(self, mean: float, array: Array) -> float:
        variance = self.finite_squares / self.finite - mean * mean
        # If the mean is large relative to the deviation, the difference cancels, so another pass is made.
        if not variance > 1e-3 * mean * mean or not math.isfinite(variance):
            deviations = (part[np.isfinite(part)] - mean for part in _parts(array))
            largest = max(abs(self.minimum - mean), abs(self.maximum - mean)) or 1.0
            scaled = sum(float(np.square(part / largest).sum()) for part in deviations)
            return largest * math.sqrt(scaled / self.finite)
        return math.sqrt(variance)


def magnitudes(array: Array) -> Array:
    """Return the counts of |x| in the bins of `BIN_EDGES`, shape (57,), uint32.

    Example:
        >>> import numpy as np
        >>> counts = magnitudes(np.array([0.0, 1.0, -1.5, 2.0]))
        >>> counts[[0, 41, 42]]
        array([1, 2, 1], dtype=uint32)
    """
    if array.dtype.kind == "c":
        array = np.abs(array)
    flat = array.reshape(-1)
    exponents = np.zeros(256, np.int64)
    nan = 0
    with np.errstate(over="ignore", under="ignore"):  # values that overflow single precision belong to the outer bins
        for begin in range(0, flat.size, _PART):
            part = np.ascontiguousarray(flat[begin : begin + _PART], np.float32)
            found = np.bincount((part.view(np.uint32) >> _MANTISSA_BITS) & 0xFF, minlength=256)
            if found[-1]:
                nan += int(np.count_nonzero(np.isnan(part)))
            exponents += found
    first = _EXPONENT_BIAS + LOWEST
    last = _EXPONENT_BIAS + HIGHEST
    counts = np.empty(BINS, np.uint32)
    counts[0] = exponents[:first].sum()
    counts[1:-1] = exponents[first:last]
    counts[-1] = exponents[last:].sum() - nan
    return counts


__all__ = ["BIN_EDGES", "Summary", "magnitudes", "summarise"]
