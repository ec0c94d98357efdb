"""One operation cut into shares of samples, one for each core.

A convolution spends as long copying windows as multiplying. BLAS divides only the products among the cores, so that
the copies run on one core. Here every core takes some samples through the whole operation, while BLAS is set to one
thread. NumPy releases the GIL while it copies and multiplies.

This needs OpenBLAS, whose number of threads can be read and set; with another BLAS, or with one thread, everything is
one share.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_MOST = 16


class Blas(NamedTuple):
    """How to read and set the number of threads of NumPy's BLAS.

    `products` are the addresses of its Fortran products of matrices, by NumPy's character of the dtype.
    """

    get: Callable[[], int]
    set: Callable[[int], None]
    products: dict[str, int] = {}  # noqa: RUF012 -- a field of a tuple, which nobody writes to


@functools.cache
def numpys_blas() -> Blas | None:
    """Return NumPy's OpenBLAS; None if it has another BLAS."""
    from pathlib import Path  # takes longer to import than most of the package

    package = Path(np.__file__).parent
    for file in [*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")]:
        try:
            library = ctypes.CDLL(str(file))
        except OSError:  # not a library for this machine; NumPy's own is among the others
            continue
        for before, after in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
            get, put = (getattr(library, f"{before}openblas_{do}_num_threads{after}", None) for do in ("get", "set"))
            if get is not None and put is not None:
                return Blas(get, put, _products(library, before, after))
    return None


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

    def __init__(self, blas: Callable[[], Blas | None] = numpys_blas, least: int = 20_000_000) -> None:
        self.blas, self.least = blas, least
        # Held while shares run: a second caller works alone, or it would restore the first one's setting at its end.
        self.busy = threading.Lock()

    def threads(self) -> int | None:
        """Return how many threads the BLAS may take; None if unknown."""
        blas = self.blas()
        return None if blas is None else blas.get()

    def run(self, work: Callable[[int, int], None], count: int, multiplications: int) -> None:
        """Call ``work(start, stop)`` for shares of `count` samples, side by side where that is worth it."""
        blas = self.blas() if multiplications >= self.least and count > 1 else None
        threads = 1 if blas is None else min(blas.get(), count, _MOST)
        if blas is None or threads < 2 or not self.busy.acquire(blocking=False):
            work(0, count)
            return
        before = blas.get()
        try:
            blas.set(1)
            edges = [count * at // threads for at in range(threads + 1)]
            rest = [_pool().submit(work, *share) for share in pairwise(edges[1:])]
            try:
                work(edges[0], edges[1])
            finally:
                for share in rest:
                    share.exception()  # all have ended before the setting goes back
            for share in rest:
                share.result()
        finally:
            blas.set(before)
            self.busy.release()


shares = Shares()
"""The shares of this process."""
