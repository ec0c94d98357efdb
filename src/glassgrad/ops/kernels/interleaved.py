"""Equal parts that together are one array, as q, k and v of one projection are.

A rule that computes the cotangents of all of them puts them into one array in the same way, and the walk takes that
array for the cotangent of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

Array = Any


def address(x: Array) -> int:
    """Return where the first element of an array lies."""
    return int(x.__array_interface__["data"][0])


def distance(parts: Sequence[Array]) -> int | None:
    """Return how many bytes apart parts begin that fill memory, without a gap or an overlap; None if they do not.

    The parts are arrays of one dtype, of equal sizes, and in the order in which they lie.
    """
    first = parts[0]
    if any(one.shape != first.shape or one.strides != first.strides for one in parts) or len(parts) < 2:
        return None
    steps = {second - one for one, second in pairwise([address(one) for one in parts])}
    step = steps.pop()
    if steps or step <= 0:
        return None
    far = first.itemsize
    axes = [(stride, size) for stride, size in zip(first.strides, first.shape, strict=True) if size > 1]
    for stride, size in sorted([*axes, (step, len(parts))]):
        if stride != far:
            return None
        far *= size
    return step


def empty_like(parts: Sequence[Array]) -> list[Array] | None:
    """Return empty arrays that are to one array what these parts are to theirs; None for any others."""
    step = distance(parts)
    if step is None:
        return None
    first = parts[0]
    whole = np.empty(len(parts) * first.size, first.dtype)
    shape, dtype, strides = first.shape, first.dtype, first.strides
    return [np.ndarray(shape, dtype, whole, number * step, strides) for number in range(len(parts))]
