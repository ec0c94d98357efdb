"""One operation cut into shares of samples, one share per core.

A convolution spends as much time copying windows as multiplying. BLAS splits only the products among the cores, so the
copies run on one core. Here every core takes some samples through the whole operation, while BLAS is set to one
thread. NumPy releases the GIL while it copies and multiplies.

Sums and concatenations of large arrays, which are frequent in dense blocks, are shared in the same way.

This needs OpenBLAS, whose number of threads can be read and set. With another BLAS, or with one thread, everything is
one share.
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glassgrad.ops.kernels.ways import Array, least

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_MOST = 16


class Blas(NamedTuple):
    """How to read and set the number of threads of NumPy's BLAS.

    `products` maps NumPy's character of a dtype to the address of BLAS's Fortran matrix product; `core` names the
    processor that its code was built for.
    """

    get: Callable[[], int]
    set: Callable[[int], None]
    products: Mapping[str, int] = MappingProxyType({})
    core: str = ""


@functools.cache
def numpys_blas() -> Blas | None:
    """Return NumPy's OpenBLAS; None if it has another BLAS."""
    from pathlib import Path  # takes longer to import than most of the package

    package = Path(np.__file__).parent
    for file in [*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")]:
        try:
            library = ctypes.CDLL(str(file))
        except OSError:  # not a library for this machine; NumPy's own is another of these files
            continue
        for before, after in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
            get, put = (getattr(library, f"{before}openblas_{do}_num_threads{after}", None) for do in ("get", "set"))
            if get is not None and put is not None:
                core = getattr(library, f"{before}openblas_get_corename{after}", None)
                return Blas(get, put, _products(library, before, after), _text(core))
    return None


def _text(function: Any) -> str:
    """Return the text that a C function returns, or "" without a function."""
    if function is None:
        return ""
    function.restype = ctypes.c_char_p
    return (function() or b"").decode()


def _products(library: ctypes.CDLL, before: str, after: str) -> dict[str, int]:
    names = {char: f"{before}{name}_{after}" for char, name in (("f", "sgemm"), ("d", "dgemm"))}
    found = {char: getattr(library, name) for char, name in names.items() if hasattr(library, name)}
    return {char: ctypes.cast(one, ctypes.c_void_p).value or 0 for char, one in found.items()}


@functools.cache
def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_MOST, thread_name_prefix="glassgrad")


if hasattr(os, "register_at_fork"):
    # A forked process has the pool but not its threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


class Shares:
    """Runs shares of work, one caller at a time.

    Args:
        blas: returns the BLAS whose threads the shares take.
        least: fewest multiplications for which handing work to a thread saves time.
    """

    def __init__(self, blas: Callable[[], Blas | None] = numpys_blas, least: int = least("samples")) -> None:
        self.blas, self.least = blas, least
        # Held while shares run. A second caller runs its shares itself: otherwise it would restore the first one's
        # setting.
        self.busy = threading.Lock()

    def threads(self) -> int | None:
        """Return how many threads the BLAS may take; None if unknown."""
        blas = self.blas()
        return None if blas is None else blas.get()

    def run(self, work: Callable[[int, int], None], count: int, multiplications: int) -> None:
        """Call ``work(start, stop)`` for shares of `count` samples, side by side where that is worth it.

        The threads of BLAS sleep meanwhile: otherwise they would spin for milliseconds, waiting for the next product.
        """
        blas = self.blas()
        before = 1 if blas is None else blas.get()
        if blas is None or before < 2 or not self.busy.acquire(blocking=False):
            work(0, count)
            return
        threads = min(before, count, _MOST) if multiplications >= self.least else 1
        try:
            blas.set(1)
            edges = [count * at // threads for at in range(threads + 1)]
            # Each thread runs in a copy of the caller's context, so it treats overflows as the caller's
            # `numpy.errstate` does.
            tasks = [functools.partial(work, *share) for share in pairwise(edges[1:])]
            rest = [_pool().submit(contextvars.copy_context().run, task) for task in tasks]
            try:
                work(edges[0], edges[1])
            finally:
                for share in rest:
                    share.exception()  # all shares have ended before the setting is restored
            for share in rest:
                share.result()
        finally:
            blas.set(before)
            self.busy.release()


shares = Shares()
"""The shares of this process."""


# --- large arrays -----------------------------------------------------------------------------------

LARGE = least("sums and joined arrays")
"""The number of elements from which passing a share to a thread costs a fraction of the time that it saves."""

# Multiplications of BLAS in the time that NumPy takes for an element: a share pays from half a million of them.
_WORTH = 40


def add(x: Array, y: Array, out: Array | None = None) -> Array:
    """Return ``x + y``, in `out` if given; large NumPy arrays of one shape and dtype are shared among the cores."""
    alike = type(x) is type(y) is np.ndarray and x.shape == y.shape and x.dtype == y.dtype
    if not alike or x.size < LARGE:
        return x + y if out is None else np.add(x, y, out=out)
    total = np.empty_like(x) if out is None else out

    def work(first: int, last: int) -> None:
        np.add(x[first:last], y[first:last], out=total[first:last])

    shares.run(work, len(x), _WORTH * x.size)
    return total


def joined(xp: Any, xs: tuple[Array, ...], axis: int) -> Array:
    """Return ``xp.concat(xs, axis=axis)``; rows of large arrays are shared among the cores."""
    if axis <= 0 or not _are_large(xs):
        return xp.concat(xs, axis=axis)
    first, others = xs[0], [(*x.shape[:axis], *x.shape[axis + 1 :]) for x in xs]
    # NumPy refuses rows that do not fit together, and handles any other order of the axes.
    if others.count(others[0]) < len(xs) or not all(x.dtype == first.dtype and x.flags.c_contiguous for x in xs):
        return xp.concat(xs, axis=axis)
    shape = (*first.shape[:axis], sum(x.shape[axis] for x in xs), *first.shape[axis + 1 :])
    whole = np.empty(shape, first.dtype)

    def work(low: int, high: int) -> None:
        np.concatenate([x[low:high] for x in xs], axis=axis, out=whole[low:high])

    shares.run(work, len(whole), _WORTH * whole.size)
    return whole


def _are_large(xs: tuple[Array, ...]) -> bool:
    total = 0
    for x in xs:
        if type(x) is not np.ndarray:
            return False
        total += x.size
    return total >= LARGE
