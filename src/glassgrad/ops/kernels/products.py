"""Matrix products and sums of rows for eager mode, on the threads that all native code shares.

The BLAS of NumPy keeps its threads turning in circles for milliseconds after a product, on the cores that native code
of the next op wants, and the other way round. So a large product is cut into shares, and each thread of the pool asks
BLAS, set to one thread, for its own. Where that is impossible (another BLAS, one thread, no llvmlite,
``GLASSGRAD_NATIVE=0``, arrays of another kind), and for small products, NumPy multiplies as always.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops.kernels import parallel

Array = Any
Cuts = list[tuple[int, int]]

FROM = 262_144  # multiplications from which OpenBLAS uses its threads
SUMMED_FROM = 9_216  # elements from which its product of a matrix and a vector does
WORTH_A_LOOK = 49_152  # bytes of both operands from which callers ask

_A_SHARE = 3 * FROM  # fewer multiplications take less time than handing them to a thread
_ONE = {"f": struct.unpack("<I", struct.pack("<f", 1.0))[0], "d": struct.unpack("<Q", struct.pack("<d", 1.0))[0]}
_SUM = {"f": "sum_rows_f32", "d": "sum_rows_f64"}
_PRODUCT_FORM, _SUM_FORM = struct.Struct("<30q"), struct.Struct("<6q")
_ORDER = {False: ord("N"), True: ord("T")}
_MULTIPLE = 16  # of columns or rows that shares begin at: a vector of the widest kind
_SINGLE = (0, 1, 1, *[0] * 6)  # a batch of one
_NO_BIAS = (0, 0, 0, 0)


class Threads(NamedTuple):
    """What cuts products: `job` makes a job of native code, which `most` threads at most share."""

    job: Callable[[str, int], Any]
    blas: parallel.Blas
    most: int

    def count(self, work: int) -> int:
        """Return into how many shares to cut; a power of two where that is not the whole number of threads."""
        most, count = min(self.blas.get(), self.most), 1
        while count < most and work >= 2 * count * _A_SHARE:
            count *= 2
        return min(count, most)


def source() -> Threads | None:
    """Return what cuts products, None if they stay in one piece; `native`, which stands above, puts this here."""
    return None


def matmul(a: Array, b: Array) -> Array:
    """Return ``a @ b`` as NumPy does, cut among threads where that pays."""
    if type(a) is np.ndarray and type(b) is np.ndarray and a.nbytes + b.nbytes >= WORTH_A_LOOK:
        found = product(a, b) if a.ndim == 2 == b.ndim else batch(a, b) if a.ndim == b.ndim else None
        if found is not None:
            return found
    return np.matmul(a, b)


def product(a: Array, b: Array, bias: Array | None = None) -> Array | None:
    """Return ``a @ b + bias`` of matrices; None if NumPy should compute it. `bias` is added to each row."""
    (m, k), n = a.shape, b.shape[1]
    if m * n * k < FROM or min(m, n, k) < 2 or b.shape[0] != k:
        return None
    threads, left, right = _threads(a, b), _order(a), _order(b)
    if threads is None or left is None or right is None:
        return None
    if bias is not None and not (_is_like(bias, a) and bias.shape == (n,) and bias.flags.c_contiguous):
        return None
    count = threads.count(m * n * k)
    if count < 2:
        y = _alone(threads, a, b)
        return y if y is None or bias is None else np.add(y, bias, out=y)
    c = np.empty((m, n), a.dtype)
    size, one = c.itemsize, _ONE[c.dtype.char]
    # The order of words is that of `compile.llvm.products`. BLAS counts along columns first, so a and b change places.
    first = (threads.blas.products[c.dtype.char], _ORDER[right[0]], _ORDER[left[0]])
    then = (k, one, one if bias is not None else 0, right[1], left[1], n, id(b), id(a), id(c))
    records = []
    for top, bottom, start, stop in _parts(m, n, count):
        begins = (start * b.strides[1], top * a.strides[0], (top * n + start) * size)
        added = _NO_BIAS if bias is None else (id(bias), start * size, (stop - start) * size, n * size)
        done = top == bottom or start == stop
        records.append((*first, stop - start, bottom - top, *then, *begins, *((0,) * 9 if done else _SINGLE), *added))
    return c if _run(threads, "product", _PRODUCT_FORM, records) else None


def batch(a: Array, b: Array) -> Array | None:
    """Return ``a @ b`` of equally many matrices in one or two leading axes; None if NumPy should compute it."""
    if not 3 <= a.ndim <= 4 or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        return None
    (m, k), n = a.shape[-2:], b.shape[-1]
    total, inner = a.size // max(1, m * k), a.shape[1] if a.ndim == 4 else 1
    if total * m * n * k < FROM or min(m, n, k, total) < 2:
        return None
    threads, left, right = _threads(a, b), _order(a), _order(b)
    if threads is None or left is None or right is None:
        return None
    count = min(threads.count(total * m * n * k), total)
    if count < 2:
        return None
    c = np.empty((*a.shape[:-1], n), a.dtype)
    how = (threads.blas.products[c.dtype.char], _ORDER[right[0]], _ORDER[left[0]], n, m, k, _ONE[c.dtype.char], 0)
    first = (*how, right[1], left[1], n, id(b), id(a), id(c), 0, 0, 0)
    steps = [(one.strides[0], one.strides[1] if a.ndim == 4 else 0) for one in (b, a, c)]
    then = (inner, *[step for pair in steps for step in pair], *_NO_BIAS)
    edges = [total * at // count for at in range(count + 1)]
    records = [(*first, start, stop, *then) for start, stop in pairwise(edges)]
    return c if _run(threads, "product", _PRODUCT_FORM, records) else None


def sum_rows(x: Array) -> Array | None:
    """Return the sum over the rows of a matrix; None if NumPy should compute it."""
    if x.size < SUMMED_FROM or not x.shape[0] or (threads := _threads(x, x)) is None:
        return None
    count = threads.count(x.size * 16)  # an element takes as long as so many multiplications
    if count < 2 or x.strides[1] != x.itemsize:
        return _alone(threads, np.ones(x.shape[0], x.dtype), x)
    y = np.empty(x.shape[1], x.dtype)
    cuts = _cuts(x.shape[1], count)
    records = [(id(x), id(y), x.shape[0], x.strides[0], start, stop) for start, stop in cuts]
    return y if _run(threads, _SUM[x.dtype.char], _SUM_FORM, records) else None


def _alone(threads: Threads, a: Array, b: Array) -> Array | None:
    """Return ``a @ b`` computed by one thread of BLAS, so that no other of its threads wakes up."""
    busy, blas = parallel.shares.busy, threads.blas
    if not busy.acquire(blocking=False):
        return None
    before = blas.get()
    try:
        blas.set(1)
        return a.dot(b)
    finally:
        blas.set(before)
        busy.release()


def _run(threads: Threads, function: str, form: struct.Struct, records: Sequence[tuple[int, ...]]) -> bool:
    busy, blas = parallel.shares.busy, threads.blas  # BLAS has one thread while the lock is held
    if not busy.acquire(blocking=False):
        return False
    before = blas.get()
    try:
        blas.set(1)
        threads.job(function, len(records)).run(form, records)
    finally:
        blas.set(before)
        busy.release()
    return True


def _parts(m: int, n: int, count: int) -> list[tuple[int, int, int, int]]:
    """Return rows and columns, from and to, of the parts of a product; some have none where there is little."""
    if n >= m:
        return [(0, m, *cut) for cut in _cuts(n, count)]
    return [(*cut, 0, n) for cut in _cuts(m, count)]


def _cuts(length: int, count: int) -> Cuts:
    edges = [min(length, -(-length * at // (count * _MULTIPLE)) * _MULTIPLE) for at in range(count)]
    return list(pairwise([*edges, length]))


def _order(x: Array) -> tuple[bool, int] | None:
    """Return whether matrices lie column by column, and the distance of rows (or columns) in elements.

    None where neither rows nor columns are contiguous.
    """
    rows, columns = x.strides[-2:]
    size = x.itemsize
    if columns == size and rows >= size * x.shape[-1] and not rows % size:
        return False, rows // size
    if rows == size and columns >= size * x.shape[-2] and not columns % size:
        return True, columns // size
    return None


def _is_like(x: Array, model: Array) -> bool:
    return type(x) is np.ndarray and x.dtype is model.dtype and bool(x.flags.aligned)


def _threads(a: Array, b: Array) -> Threads | None:
    """Return what cuts a product of two arrays; None if it stays in one piece."""
    if type(a) is not np.ndarray or a.dtype.char not in "fd" or not (_is_like(a, a) and _is_like(b, a)):
        return None
    return source()
