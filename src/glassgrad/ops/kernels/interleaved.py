"""Equal parts of one array, such as q, k and v from one projection.

A rule that computes the cotangents of all parts stores them in one array of the same layout. The backward walk then
uses that array as the cotangent of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from glassgrad.ops.kernels.ways import Array


def address(x: Array) -> int:
    """Return the address of an array's first element."""
    return int(x.__array_interface__["data"][0])


def distance(part: Array, starts: Sequence[int]) -> int | None:
    """Return the distance in bytes between parts that fill memory without a gap or an overlap; None if they do not.

    The parts begin at the addresses `starts`, in this order; each has the shape and strides of `part`.
    """
    if len(starts) < 2:
        return None
    step = starts[1] - starts[0]
    if step <= 0 or any(second - one != step for one, second in pairwise(starts)):
        return None
    far = part.itemsize
    axes = [(stride, size) for stride, size in zip(part.strides, part.shape, strict=True) if size > 1]
    for stride, size in sorted([*axes, (step, len(starts))]):
        if stride != far:
            return None
        far *= size
    return step


def empty_like(parts: Sequence[Array]) -> list[Array] | None:
    """Return empty parts of one new array, laid out as `parts` are in theirs; None if those do not fill one array."""
    first = parts[0]
    shape, dtype, strides = first.shape, first.dtype, first.strides
    if any(one.shape != shape or one.strides != strides or one.dtype is not dtype for one in parts):
        return None
    step = distance(first, [address(one) for one in parts])
    if step is None:
        return None
    whole = np.empty(len(parts) * first.size, dtype)
    return [np.ndarray(shape, dtype, whole, number * step, strides) for number in range(len(parts))]
