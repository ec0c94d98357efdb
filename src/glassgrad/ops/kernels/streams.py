"""Sums, products and copies of large arrays whose results go past the caches, where that is faster; reordered copies.

A result that is larger than the second-level cache is read from memory before it is written, line by line, and pushes
out what was there. Native code (`compile.llvm.streams`) writes it without either. On an Intel server with AVX-512 a sum
of a million numbers takes half of NumPy's time then.

Reversed and triangular copies take NumPy several times as long as plain ones. Native code makes them, past the caches
or not.

Where a number overflows, or NumPy would warn of something else, NumPy computes.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from glassgrad.ops.kernels import products

Array = Any
_ndarray = np.ndarray

BYTES = 7 << 19
"""Of a result from which on it pays: with its arguments and what comes in between, it does not stay in the caches."""

REORDERED = 1 << 16
"""Bytes of a reordered copy from which on native code makes it."""

MIRRORED = 64
"""Elements of a row from which on native code reverses rows; a call for each row takes longer than short ones."""

_WORTH = 16  # multiplications of matrices that take as long as an element
_KINDS = {"f": ("f32", struct.Struct("<5qf4xq")), "d": ("f64", struct.Struct("<5qdq"))}
_ROWS = struct.Struct("<10q")
_TOLD = 0b01101  # invalid, divided by zero, overflow: flags of the processor of which NumPy warns by default
_UNDERFLOW = 0b10000


def source(past: bool = True) -> Any:
    """Return what makes jobs of native code, None where nothing is to be gained; `native`, which stands above, does.

    `past` asks for stores past the caches.
    """
    return None


def suits(x: Array) -> bool:
    """Tell whether a result like this array is written past the caches."""
    return _is_in_order(x, BYTES) and source() is not None


def _is_in_order(x: Array, least: int) -> bool:
    return (
        type(x) is _ndarray
        and x.nbytes >= least
        and x.dtype.char in _KINDS
        and x.flags.c_contiguous
        and x.flags.aligned
    )


def _run(name: str, a: Array, b: Array, result: Array, number: float = 0.0) -> Array | None:
    """Compute a function of `compile.llvm.streams` into `result`; None where NumPy would have warned."""
    kind, form = _KINDS[result.dtype.char]
    name = f"stream_{name}_{kind}"
    job = source()
    if job is None or job(name, 1) is None:
        return None
    count = products.shares(_WORTH * result.size)
    edges = [result.size * at // count for at in range(count + 1)]
    raised = np.zeros(count, np.int64)
    flags, arrays = raised.ctypes.data, (id(a), id(b), id(result))
    records = [
        (*arrays, first, last - first, number, flags + 8 * at) for at, (first, last) in enumerate(pairwise(edges))
    ]
    job(name, count).run(form, records)
    found = int(np.bitwise_or.reduce(raised))
    if found & _TOLD or (found & _UNDERFLOW and np.geterr()["under"] != "ignore"):
        return None
    return result


def one(name: str, function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function of one array, by the name that it has in `compile.llvm.streams`."""

    def run(x: Array) -> Array:
        if type(x) is _ndarray and x.nbytes >= BYTES and suits(x):
            found = _run(name, x, x, np.empty(x.shape, x.dtype))
            if found is not None:
                return found
        return function(x)

    return run


def two(name: str, function: Callable[[Array, Array], Array], number: str, reflected: str) -> Any:
    """Return a function of two arrays, or of an array and a number; `reflected` is that of a number and an array."""

    def run(a: Array, b: Array) -> Array:
        if type(a) is _ndarray:
            if a.nbytes >= BYTES and suits(a):
                found = _with(a, b)
                if found is not None:
                    return found
        elif type(b) is _ndarray and b.nbytes >= BYTES and _is_number(a) and suits(b):
            found = _run(reflected, b, b, np.empty(b.shape, b.dtype), a)
            if found is not None:
                return found
        return function(a, b)

    def _with(a: Array, b: Array) -> Array | None:
        if type(b) is _ndarray:
            if b.dtype is not a.dtype or b.shape != a.shape or not suits(b):
                return None
            return _run(name, a, b, np.empty(a.shape, a.dtype))
        return _run(number, a, a, np.empty(a.shape, a.dtype), b) if _is_number(b) else None

    return run


_NUMBERS = frozenset({float, int})
_EXACT = 1 << 24  # integers up to here are numbers of every dtype


def _is_number(x: Any) -> bool:
    """Tell whether an operand is a number that every dtype has, or rounds without a warning."""
    return type(x) in _NUMBERS and (-_EXACT <= x <= _EXACT or x != x)  # noqa: PLR0124 - NaN


def copied(x: Array, order: Any = "K") -> Array:
    """Return ``x.copy(order)``."""
    if type(x) is _ndarray and x.nbytes >= BYTES and x.dtype.char in _KINDS and x.ndim:
        found = None
        if suits(x):
            found = _run("copy", x, x, np.empty(x.shape, x.dtype))
        elif not any(x.strides) and source() is not None:
            found = _run("fill", x, x, np.empty(x.shape, x.dtype), x[(0,) * x.ndim])
        if found is not None:
            return found
    return x.copy(order)


def product(c: Array, slope: Array) -> Array:
    """Return ``c * slope`` of arrays, or of whatever else has a product."""
    return _product(c, slope) if type(c) is _ndarray and c.nbytes >= BYTES else c * slope


def negative(c: Array) -> Array:
    """Return ``-c``."""
    return _negative(c) if type(c) is _ndarray and c.nbytes >= BYTES else -c


_product: Any = two("multiply", operator.mul, "multiply_number", "multiply_number")
_negative = one("negative", operator.neg)


def placed(x: Array, place: Array) -> None:
    """Write an array into another of its shape."""
    fits = x.nbytes >= BYTES and suits(x) and suits(place) and x.dtype is place.dtype
    if not fits or _run("copy", x, x, place) is None:
        place[...] = x


def joined(xs: Sequence[Array]) -> Array | None:
    """Return arrays joined along their first axis; None for what is small or not alike."""
    first = xs[0]
    if type(first) is not np.ndarray or first.nbytes < BYTES or not suits(first) or not first.ndim:
        return None
    if any(type(x) is not np.ndarray or x.dtype is not first.dtype or x.shape[1:] != first.shape[1:] for x in xs):
        return None
    whole, start = np.empty((sum(map(len, xs)), *first.shape[1:]), first.dtype), 0
    for x in xs:
        placed(x, whole[start : start + len(x)])
        start += len(x)
    return whole


def _reordered(name: str, x: Array, rows: int, width: int, *more: int) -> Array | None:
    """Return a reordered copy of an array, row by row; None for what is small."""
    if not _is_in_order(x, REORDERED):
        return None
    past = x.nbytes >= BYTES and source() is not None
    job, name = source(past), f"{'stream' if past else 'near'}_{name}_{_KINDS[x.dtype.char][0]}"
    if job is None or job(name, 1) is None:
        return None
    found = np.empty(x.shape, x.dtype)
    count = min(rows, products.shares(_WORTH * x.size))
    edges = [rows * at // count for at in range(count + 1)]
    more += (0,) * (_ROWS.size // 8 - len(more) - 8)
    records = [(id(x), 0, id(found), low, width, 0, 0, high - low, *more) for low, high in pairwise(edges)]
    job(name, count).run(_ROWS, records)
    return found


def reversed_(x: Array) -> Array | None:
    """Return an array with its elements in the opposite order; None for what is small."""
    return _reordered("reversed", x, x.size, 1, x.size - 1)


def mirrored(x: Array) -> Array | None:
    """Return an array with its last axis in the opposite order; None for what is small."""
    width = x.shape[-1]
    return _reordered("mirrored", x, x.size // width, width) if width >= MIRRORED else None


def triangle(x: Array, diagonal: int, lower: bool) -> Array | None:
    """Return a matrix with zeros above or below a diagonal; None for what is small or no matrix."""
    if x.ndim != 2:
        return None
    return _reordered("triangle", x, *x.shape, diagonal + 1 if lower else diagonal, int(lower))


def above(g: Array, v: Array, bound: float) -> Array | None:
    """Return g, with 0 where v is at most a bound; None for what is small or not alike."""
    if not suits(v) or not suits(g) or g.shape != v.shape or g.dtype is not v.dtype:
        return None
    return _run("above", v, g, np.empty(v.shape, v.dtype), bound)
