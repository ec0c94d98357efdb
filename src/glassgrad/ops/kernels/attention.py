"""Attention in one native call forward and one backward, without a mask or with a causal one.

The threads of the pool divide the heads. Only rows must be contiguous, so heads that are slices of one product need no
copy. The code, `compile.llvm.sequences.attention`, takes float32 on machines with vectors of 64 or 32 bytes. NumPy
computes everything else.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from glassgrad.ops.kernels import interleaved, products
from glassgrad.ops.kernels.ways import Array, least


class Statistics(NamedTuple):
    """The residuals of the gradient: for each row the largest scaled score, and 1 / the sum of its exponentials."""

    rows: Array


FROM = least("attention")  # multiplications of one of the two products
LEAST_ROWS = 8  # rows of q; for fewer, packing the keys takes longer than multiplying them
WORTH = 3  # multiplications of a large product that take as long as one of these, softmax included
_LINE = 16  # elements of a vector; the memory of a thread starts at a multiple
_WIDTH = 32  # columns of a packed panel, as in `compile.llvm.packed_sizes`
_TILE = {16: 8, 8: 6}  # rows of a tile, by the lanes of a vector
_SCORES, _MOST_ROWS = 65_536, 32  # the most scores and rows in a block of the backward pass
_FORM = struct.Struct("<37qf4x8q")
_NOTHING = (0, 0, 0, 0)
_SINGLE = np.dtype(np.float32)
_LARGEST = 1e30  # NumPy computes larger scales, which do not fit the record


def attend(q: Array, k: Array, v: Array, scale: float, causal: bool) -> tuple[Array, Statistics] | None:
    """Return softmax(q kT * scale) v and what `attend_back` needs; None if NumPy should compute it."""
    threads = _threads(q, k, v)
    if threads is None or not abs(scale) < _LARGEST:
        return None
    shape = (*q.shape[:-1], v.shape[-1])
    y, stats = _empty_like(q, shape), np.empty((*q.shape[:-1], 2), np.float32)
    arrays = [*map(_place, (q, k, v, y)), *[_NOTHING] * 3]
    how = (scale, causal, _TILE[threads.lanes])
    return (y, Statistics(stats)) if _run("attend", threads, arrays, stats, (q, k, v), how) else None


def attend_back(
    g: Array, stats: Statistics, q: Array, k: Array, v: Array, scale: float, causal: bool
) -> list[Array] | None:
    """Return the cotangents of q, k and v from that of the result; None if NumPy should compute them."""
    threads = _threads(q, k, v)
    if threads is None or type(g) is not np.ndarray or g.dtype is not q.dtype:
        return None
    g = g if _fits(g, q) else np.ascontiguousarray(g)
    given = (q, k, v)
    found = interleaved.empty_like(given) or [_empty_like(one, one.shape) for one in given]
    arrays = [*map(_place, (q, k, v, g, *found))]
    how = (scale, causal, _block(k.shape[-2], _TILE[threads.lanes]))
    return found if _run("attend_back", threads, arrays, stats.rows, given, how) else None


def _threads(q: Array, k: Array, v: Array) -> products.Threads | None:
    """Return the threads that divide the heads; None for arrays that NumPy should compute."""
    if type(q) is not np.ndarray or not 3 <= q.ndim <= 4 or q.dtype is not _SINGLE:
        return None
    lead, (rows, width) = q.shape[:-2], q.shape[-2:]
    if not (_fits(q, q) and _fits(k, q) and _fits(v, q)) or k.shape[:-2] != lead or v.shape[:-1] != k.shape[:-1]:
        return None
    if (
        k.shape[-1] != width
        or math.prod(lead) * rows * k.shape[-2] * width < FROM
        or rows < LEAST_ROWS
        or not v.shape[-1]
    ):
        return None
    threads = products.source(packs=True)
    return threads if threads is not None and threads.lanes in _TILE else None


def _fits(x: Array, model: Array) -> bool:
    """Return whether an array has contiguous rows and the dtype and number of axes of `model`."""
    if type(x) is not np.ndarray or x.dtype is not model.dtype or x.ndim != model.ndim or not x.flags.aligned:
        return False
    return x.strides[-1] == 4 or x.shape[-1] == 1


def _empty_like(x: Array, shape: tuple[int, ...]) -> Array:
    """Return an empty array with the axis order of `x` in memory and contiguous rows."""
    if x.ndim == 4 and x.strides[1] < x.strides[2]:
        return np.empty((shape[0], shape[2], shape[1], shape[3]), np.float32).transpose(0, 2, 1, 3)
    return np.empty(shape, np.float32)


def _place(x: Array) -> tuple[int, int, int, int]:
    """Return an array's id, and the strides of its two head axes and its rows, in elements."""
    *lead, row, _ = x.strides
    return (id(x), lead[0] // 4, lead[1] // 4 if len(lead) > 1 else 0, row // 4)


def _block(keys: int, tile: int) -> int:
    """Return the number of rows in a block of the backward pass, a multiple of the tile."""
    return max(tile, min(_MOST_ROWS, _SCORES // keys) // tile * tile)


def _run(
    function: str,
    threads: products.Threads,
    arrays: Sequence[tuple[int, ...]],
    stats: Array,
    given: tuple[Array, Array, Array],
    how: tuple[float, bool, int],
) -> bool:
    """Run the shares of a function; return False without running anything while the threads are busy."""
    (q, k, v), (scale, causal, block) = given, how
    heads, inner = math.prod(q.shape[:-2]), q.shape[1] if q.ndim == 4 else 1
    sizes = (q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1])
    count = min(threads.count(WORTH * heads * math.prod(sizes[:3])), heads)
    starts, each = _memory(*sizes, block)
    memory = np.empty(count * each + _LINE, np.float32)
    first = -(-interleaved.address(memory) // 64) * 64
    words = [word for place in arrays for word in place]
    edges = pairwise([heads * at // count for at in range(count + 1)])
    records = []
    for at, (start, stop) in enumerate(edges):
        places = [first + 4 * (at * each + one) for one in starts]
        records.append((*words, id(stats), *sizes, start, stop, inner, causal, scale, block, *places))
    return products.run_by_ourselves(threads, function, _FORM, records)


@lru_cache(maxsize=128)
def _memory(rows: int, keys: int, width: int, values: int, block: int) -> tuple[list[int], int]:
    """Return the offsets of the parts of a thread's memory, and its size, in elements.

    The parts are those of `compile.llvm.attention.MEMORY`.
    """
    across, along = _up(keys, _WIDTH) + _LINE, [_up(one, _WIDTH) for one in (width, values)]
    turned = [across * _up(one, _LINE) for one in (width, values)]
    sizes = [*turned, keys * max(along), *(block * one for one in along), *[block * across] * 2]
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + _up(size, _LINE))
    return starts[:-1], starts[-1]


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
