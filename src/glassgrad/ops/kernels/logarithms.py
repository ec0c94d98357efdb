"""log(exp(a) + exp(b)) on NumPy arrays: vectorised for large arrays, and for complex numbers."""

from __future__ import annotations

import math

import numpy as np

from glassgrad.ops.kernels.blocks import in_blocks
from glassgrad.ops.kernels.ways import Array


def log_of_two(a: Array, b: Array) -> Array:
    """Return log(exp(a) + exp(b)) without overflow."""
    if np.iscomplexobj(a) or np.iscomplexobj(b):
        return complex_log_of_two(a, b)
    return _in_passes(None, a, b)


@in_blocks
def _in_passes(_y: None, a: Array, b: Array) -> Array:
    """Compute NumPy's function, a scalar loop, in vectorised passes where both arrays are large enough."""
    if not (type(a) is type(b) is np.ndarray and a.shape == b.shape and a.size >= 256 and a.dtype.kind in "fV"):
        return np.logaddexp(a, b)
    larger = np.maximum(a, b)
    with np.errstate(invalid="ignore"):
        gap = a - b
    np.negative(np.abs(gap, out=gap), out=gap)
    sum_of_both = np.log1p(np.exp(gap, out=gap), out=gap)
    sum_of_both += larger
    if np.isnan(sum_of_both.sum()):  # two infinities of one sign, or a NaN
        equal = a == b
        sum_of_both[equal] = larger[equal] + math.log(2.0)
    return sum_of_both


def complex_log_of_two(a: Array, b: Array) -> Array:
    """Return log(exp(a) + exp(b)) of complex numbers; its imaginary part is within pi / 2 of the larger number's.

    The larger number has the larger real part. As in PyTorch, the result need not be the principal value.
    """
    dtype = np.result_type(a, b)
    a, b = np.asarray(a, dtype), np.asarray(b, dtype)
    smaller = a.real < b.real
    low: Array = np.where(smaller, a, b)
    high: Array = np.where(smaller, b, a)
    with np.errstate(all="ignore"):
        y = high + np.log1p(np.exp(low - high))
        alike = np.isinf(low.real) & (low.real == high.real)
        if alike.any():
            y = np.where(alike, np.where(low.real < 0, low, np.log(np.exp(low) + np.exp(high))), y)
    unknown = np.isnan(a) | np.isnan(b)
    return np.where(unknown, dtype.type(complex(math.nan, math.nan)), y)
