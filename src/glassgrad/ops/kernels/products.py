"""Matrix products for eager mode, on the threads that all native code shares.

After a product, the threads of NumPy's BLAS spin for milliseconds on the cores that native code of the next op needs.
So a large product is cut into shares: BLAS is set to one thread, and each thread of the pool calls it for one share.
With vectors of 64 bytes, our own code (`compile.llvm.products.packed`) is faster than BLAS for large products in
float32, even on one thread. NumPy computes small products, products of other kinds of arrays, and all products with
another BLAS, without llvmlite or with ``GLASSGRAD_NATIVE=0``.
"""

from __future__ import annotations

import functools
import math
import struct
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops.kernels import native, parallel
from glassgrad.ops.kernels.ways import Array, least

Shape = tuple[int, ...]
Words = tuple[int, ...]
Cuts = list[tuple[int, int]]
Order = tuple[bool, int]  # whether a matrix is column-major, and the distance between its rows (or columns)

FROM = least("product")  # from here on OpenBLAS uses its threads
SUMMED_FROM = least("product with a vector")  # the same for a matrix and a vector, or two vectors

# From here on our own code is faster than BLAS: for batches; where B is column-major; for all others.
_BATCHES_FROM = least("batch of products")
_TURNED_FROM, _PACKED_FROM = least("product with columns"), least("product with rows")
_LEAST_ROWS = 72  # from here on, rows divide into its tiles
_LEAST = (_LEAST_ROWS, 96, 32)  # rows, columns and terms from which packing A pays
_LEAST_OF_BATCH = (60, 32, 16)
# The same where BLAS's vectors are half as wide as the processor's: from when on, and how much of its tiles is filled.
_NARROW_FROM, _NARROW_LEAST, _NARROW_FILLED = least("product, narrow BLAS"), (60, 64, 32), 0.75
_NARROW_CORES = frozenset({"Haswell", "Zen"})  # OpenBLAS's kinds of code for vectors of 32 bytes
_SMALL_OF_BLAS = 1_000_000  # multiplications up to which OpenBLAS does not pack, which is faster unless B is transposed
_TILE_ROWS, _THIN_TILE_ROWS, _TILE_COLUMNS = 14, 12, 32
_FILLED = 0.9  # the least fraction of the tiles that the matrix fills

_A_SHARE = 3 * FROM  # fewer multiplications take less time than handing them to a thread
_ONE = {"f": struct.unpack("<I", struct.pack("<f", 1.0))[0], "d": struct.unpack("<Q", struct.pack("<d", 1.0))[0]}
_PRODUCT_FORM, _PACKED_FORM = struct.Struct("<30q"), struct.Struct("<25q")
_ORDER = {False: ord("N"), True: ord("T")}
_MULTIPLE = 16  # shares begin at multiples of this many columns or rows: the widest kind of vector
_SINGLE = (0, 1, 1, *[0] * 6)  # a batch of one
_NO_BIAS = (0, 0, 0, 0)


class Threads(NamedTuple):
    """Threads that share products: `job` makes a job of native code, shared by at most `most` threads.

    `packs` says whether there is code for large products that is faster than BLAS; `lanes` is the number of float32 in
    a vector.
    """

    job: Callable[[str, int], Any]
    blas: parallel.Blas
    most: int
    packs: bool
    lanes: int

    def count(self, work: int) -> int:
        """Return the number of shares: a power of two, or the whole number of threads."""
        return _count(min(self.blas.get(), self.most), work)


def _count(most: int, work: int) -> int:
    count = 1
    while count < most and work >= 2 * count * _A_SHARE:
        count *= 2
    return min(count, most)


@functools.cache
def cores() -> int:
    """Return the largest number of threads that native code may use."""
    return int(native.load("jobs").runtime.available_cores())


@functools.cache
def narrow() -> bool:
    """Tell whether BLAS's vectors are half as wide as those of the processor's multiplications."""
    blas = parallel.numpys_blas()
    if blas is None or blas.core not in _NARROW_CORES:
        return False
    library = native.library("packed")
    return library is not None and bool(library.multiplies_whole_lines())


def source(packs: bool = False) -> Threads | None:
    """Return the threads that share products; None if NumPy computes them.

    `packs` tells whether our own code, if there is any, is faster at this product.
    """
    if native.kernels.off:
        return None
    # With one thread there is nothing to share, and only products of our own code gain.
    return _threads_of_native_code() if packs or (parallel.shares.threads() or 1) > 1 else None


@functools.cache
def _threads_of_native_code() -> Threads | None:
    """Return the threads that share products; None without OpenBLAS or a compiler."""
    blas = parallel.numpys_blas()
    if blas is None or len(blas.products) < 2 or sys.byteorder != "little":
        return None
    try:
        library = native.load("jobs")
        most, packs, lanes = library.runtime.available_cores(), library.packs(), library.lanes()
        if packs:
            library.job("packed", 1)  # fails here if anything is missing
        if most > 1:
            library.job("product", 2)
    except (ImportError, OSError, RuntimeError):  # no llvmlite, or one that does not work
        return None
    return Threads(library.job, blas, most, packs, lanes)


def shares(work: int) -> int:
    """Return the number of shares for other native work that takes as long as `work` multiplications."""
    threads = parallel.shares.threads() or 1
    return threads if threads < 2 else _count(min(threads, cores()), work)


def are_many(rows: int, columns: int, terms: int) -> bool:
    """Tell whether a product of this size wakes the threads of OpenBLAS, unless `dot` or `matmul` computes it."""
    return rows * columns * terms >= (FROM if rows > 1 and columns > 1 else SUMMED_FROM)


def matmul(a: Array, b: Array) -> Array:
    """Return ``a @ b`` like NumPy, shared among threads where that pays."""
    if a.size * b.shape[-1] < SUMMED_FROM or type(a) is not np.ndarray:
        return np.matmul(a, b)
    if a.ndim <= 2 >= b.ndim:
        return dot(a, b)
    found = batch(a, b)
    return asleep(np.matmul, a, b) if found is None else found


def dot(a: Array, b: Array) -> Array:
    """Return ``a.dot(b)`` of vectors or matrices like NumPy, shared among threads where that pays."""
    if a.size * b.shape[-1] < SUMMED_FROM or type(a) is not np.ndarray:
        return a.dot(b)
    found = product(a, b) if a.ndim == 2 == b.ndim else None
    return asleep(np.dot, a, b) if found is None else found


def asleep(multiply: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """Multiply like NumPy, on one thread where BLAS would wake its threads."""
    rows, columns = (a.shape[-2] if a.ndim > 1 else 1), (b.shape[-1] if b.ndim > 1 else 1)
    threads = threads_for(a, b) if are_many(rows, columns, a.shape[-1]) else None
    found = None if threads is None else alone(threads, a, b, multiply)
    return multiply(a, b) if found is None else found


def product(a: Array, b: Array, bias: Array | None = None) -> Array | None:
    """Return ``a @ b + bias`` of matrices; None if NumPy should compute it. `bias` is added to each row."""
    found = _sides(a.shape, a.strides, b.shape, b.strides, a.dtype.char)
    if found is None:
        return None
    left, right, packs = found
    (m, k), n = a.shape, b.shape[1]
    packs = packs or (_suits_early(a.dtype.char, (m, n, k)) and narrow())
    threads = threads_for(a, b, packs)
    if threads is None:
        return None
    if bias is not None and not (_is_like(bias, a) and bias.shape == (n,) and bias.flags.c_contiguous):
        return None
    count = threads.count(m * n * k)
    if packs and threads.packs and (shares := _packed_shares((m, n, k), left, right, count)):
        return _packed(threads, a, b, bias, shares)
    if count < 2:
        y = alone(threads, a, b)
        return y if y is None or bias is None else np.add(y, bias, out=y)
    c = np.empty((m, n), a.dtype)
    size, one = c.itemsize, _ONE[c.dtype.char]
    # The order of the words is that of `compile.llvm.products.shares`. BLAS is column-major, so a and b change places.
    first = (threads.blas.products[c.dtype.char], _ORDER[right[0]], _ORDER[left[0]])
    then = (k, one, one if bias is not None else 0, right[1], left[1], n, id(b), id(a), id(c))
    records = []
    for top, bottom, start, stop in _parts(m, n, count):
        begins = (start * b.strides[1], top * a.strides[0], (top * n + start) * size)
        added = _NO_BIAS if bias is None else (id(bias), start * size, (stop - start) * size, n * size)
        done = top == bottom or start == stop
        records.append((*first, stop - start, bottom - top, *then, *begins, *((0,) * 9 if done else _SINGLE), *added))
    return c if _run(threads, "product", _PRODUCT_FORM, records) else None


# Cache everything that depends only on shapes and strides: in the middle of a step, with the caches full of matrices,
# the interpreter takes tens of microseconds for it.


@functools.lru_cache(maxsize=1024)
def _sides(
    a_shape: Shape, a_strides: Shape, b_shape: Shape, b_strides: Shape, char: str
) -> tuple[Order, Order, bool] | None:
    """Return the layouts of two matrices and whether our own code suits their product; None for NumPy's products."""
    (m, k), n = a_shape, b_shape[1]
    if not are_many(m, n, k) or b_shape[0] != k or char not in _ONE:
        return None
    size = np.dtype(char).itemsize
    left, right = _order_of(a_shape, a_strides, size), _order_of(b_shape, b_strides, size)
    if left is None or right is None:
        return None
    packs = m * n * k >= (_TURNED_FROM if right[0] else _PACKED_FROM) and _fill_tiles(char, (m, n, k))
    return left, right, packs


@functools.lru_cache(maxsize=1024)
def _suits_early(char: str, sizes: tuple[int, int, int]) -> bool:
    """Tell whether our own code is faster at a product than BLAS with narrow vectors."""
    return math.prod(sizes) >= _NARROW_FROM and _fill_tiles(char, sizes, _NARROW_LEAST, _NARROW_FILLED)


def _fill_tiles(
    char: str, sizes: tuple[int, int, int], least: tuple[int, int, int] = _LEAST, filled: float = _FILLED
) -> bool:
    """Tell whether our own code suits products of these sizes."""
    rows, columns, terms = sizes
    if char != "f" or rows < least[0] or columns < least[1] or terms < least[2]:
        return False
    tiles = -(-rows // _TILE_ROWS)
    return rows >= tiles * _THIN_TILE_ROWS and columns >= filled * _TILE_COLUMNS * -(-columns // _TILE_COLUMNS)


@functools.lru_cache(maxsize=512)
def _tile_cuts(m: int, n: int, count: int) -> list[tuple[int, int, int, int]]:
    """Return the parts (row start, row stop, column start, column stop) of a product; none if some would be thin."""
    if n >= m:
        return [(0, m, *cut) for cut in spans(n, count, _TILE_COLUMNS) if cut[1] > cut[0]]
    cuts = spans(m, count, _TILE_ROWS)
    return [] if min(stop - start for start, stop in cuts) < _LEAST_ROWS else [(*cut, 0, n) for cut in cuts]


@functools.lru_cache(maxsize=1024)
def _packed_shares(sizes: tuple[int, int, int], left: Order, right: Order, count: int) -> list[tuple[Words, Words]]:
    """Return for each share of a packed product the words between its arrays and its bias, and those after the bias."""
    (m, n, k), size = sizes, 4
    shares: list[tuple[Words, Words]] = []
    row, column = 1 if left[0] else left[1], right[1] if right[0] else 1
    for top, bottom, start, stop in _tile_cuts(m, n, count):  # words in the order of `compile.llvm.packed`
        begins = (top * row * size, start * column * size, (top * n + start) * size)
        words = (bottom - top, stop - start, k, left[1], right[1], n, left[0], right[0])
        shares.append(((*begins, *words), (start * size, *_SINGLE)))
    return shares


def _packed(
    threads: Threads,
    a: Array,
    b: Array,
    bias: Array | None,
    shares: Sequence[tuple[Words, Words]],
) -> Array | None:
    """Multiply matrices with our own code; None while it is already running."""
    c = np.empty((a.shape[0], b.shape[1]), a.dtype)
    arrays, added = (id(a), id(b), id(c)), 0 if bias is None else id(bias)
    records = [(*arrays, *before, added, *behind) for before, behind in shares]
    return c if _run_packed(threads, records) else None


def _run_packed(threads: Threads, records: Sequence[tuple[int, ...]]) -> bool:
    return run_by_ourselves(threads, "packed", _PACKED_FORM, records)


def run_by_ourselves(threads: Threads, function: str, form: struct.Struct, records: Sequence[tuple[int, ...]]) -> bool:
    """Run shares that do not call BLAS; return False without doing anything while others run."""
    busy = parallel.shares.busy
    if not busy.acquire(blocking=False):
        return False
    try:
        threads.job(function, len(records)).run(form, records)
    finally:
        busy.release()
    return True


def batch(a: Array, b: Array) -> Array | None:
    """Return ``a @ b`` of equally many matrices in one or two leading axes; None if NumPy should compute it."""
    if not 3 <= a.ndim <= 4 or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        return None
    (m, k), n = a.shape[-2:], b.shape[-1]
    total, inner = a.size // max(1, m * k), a.shape[1] if a.ndim == 4 else 1
    if total * m * n * k < FROM or min(m, n, k, total) < 2:
        return None
    left, right = _order(a), _order(b)
    if left is None or right is None:
        return None
    early = total * m * n * k >= _NARROW_FROM and narrow()
    packs = early or (total * m * n * k >= _BATCHES_FROM and (right[0] or m * n * k > _SMALL_OF_BLAS))
    packs = packs and _fill_tiles(a.dtype.char, (m, n, k), _LEAST_OF_BATCH)
    threads = threads_for(a, b, packs)
    if threads is None:
        return None
    packs, count = packs and threads.packs, min(threads.count(total * m * n * k), total)
    if count < 2 and not packs:
        return None
    c = np.empty((*a.shape[:-1], n), a.dtype)
    steps = [(one.strides[0], one.strides[1] if a.ndim == 4 else 0) for one in (b, a, c)]
    edges = [total * at // count for at in range(count + 1)]
    if packs:
        sizes = (id(a), id(b), id(c), 0, 0, 0, m, n, k, left[1], right[1], n, left[0], right[0], 0, 0)
        distances = (inner, *steps[1], *steps[0], *steps[2])
        parts = [(*sizes, start, stop, *distances) for start, stop in pairwise(edges)]
        return c if _run_packed(threads, parts) else None
    how = (threads.blas.products[c.dtype.char], _ORDER[right[0]], _ORDER[left[0]], n, m, k, _ONE[c.dtype.char], 0)
    first = (*how, right[1], left[1], n, id(b), id(a), id(c), 0, 0, 0)
    then = (inner, *[step for pair in steps for step in pair], *_NO_BIAS)
    records = [(*first, start, stop, *then) for start, stop in pairwise(edges)]
    return c if _run(threads, "product", _PRODUCT_FORM, records) else None


def alone(threads: Threads, a: Array, b: Array, multiply: Callable[[Array, Array], Array] = np.dot) -> Array | None:
    """Return ``a @ b`` computed by one thread of BLAS, so its other threads do not wake up."""
    busy, blas = parallel.shares.busy, threads.blas
    if not busy.acquire(blocking=False):
        return None
    before = blas.get()
    try:
        blas.set(1)
        return multiply(a, b)
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


@functools.lru_cache(maxsize=512)
def _parts(m: int, n: int, count: int) -> list[tuple[int, int, int, int]]:
    """Return the parts (row start, row stop, column start, column stop) of a product; small ones leave some empty."""
    if n >= m:
        return [(0, m, *cut) for cut in spans(n, count)]
    return [(*cut, 0, n) for cut in spans(m, count)]


def spans(length: int, count: int, multiple: int = _MULTIPLE) -> Cuts:
    """Return where `count` shares of a length start and stop: at multiples, and some have nothing."""
    edges = [min(length, -(-length * at // (count * multiple)) * multiple) for at in range(count)]
    return list(pairwise([*edges, length]))


def _order(x: Array) -> Order | None:
    """Return whether matrices are column-major, and the distance between rows (or columns) in elements.

    None where neither rows nor columns are contiguous.
    """
    return _order_of(x.shape[-2:], x.strides[-2:], x.itemsize)


def _order_of(shape: Shape, strides: Shape, size: int) -> Order | None:
    rows, columns = strides
    if columns == size and rows >= size * shape[1] and not rows % size:
        return False, rows // size
    if rows == size and columns >= size * shape[0] and not columns % size:
        return True, columns // size
    return None


def _is_like(x: Array, model: Array) -> bool:
    return type(x) is np.ndarray and x.dtype is model.dtype and bool(x.flags.aligned)


def threads_for(a: Array, b: Array, packs: bool = False) -> Threads | None:
    """Return the threads that share a product of two arrays; None if NumPy computes it."""
    if type(a) is not np.ndarray or a.dtype.char not in "fd" or not (_is_like(a, a) and _is_like(b, a)):
        return None
    return source(packs)
