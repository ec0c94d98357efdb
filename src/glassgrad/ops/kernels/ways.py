"""Three ways to compute an eager op, and the table that chooses among them.

- ``numpy``: NumPy's functions, on whole arrays, on blocks that stay in the cache (`blocks`), or on samples shared
  among Python threads (`parallel`). This is the way of everything without a row in the table.
- ``kernel``: native code that the compiler makes from a primitive or a formula (`native`): for images, for blocks of
  elements (`blocks`), for rows (`parts`) or for the parameters of an optimizer (`optim.native_update`).
- ``function``: native functions, each written once for arrays of every size: products (`products`), attention,
  recurrent layers, and work by channels.

Kernels and functions run on the threads of one pool. Without llvmlite, or with ``GLASSGRAD_NATIVE=0``, NumPy computes
everything. Each mechanism reads its threshold here, and checks dtype, layout and processor as its row says. A row
without a dtype or layout accepts any.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = Any
"""An ndarray, a Symbol, a batched array, a Tensor or a number: what an interpreter accepts."""

Dtype = np.dtype[Any]
Params = dict[str, Any]
"""Parameters of an op, by name."""

NUMPY, KERNEL, FUNCTION = "numpy", "kernel", "function"


class Way(NamedTuple):
    """A row of the table: the threshold from which a way is taken, and its conditions.

    Attributes:
        how: the way, `NUMPY`, `KERNEL` or `FUNCTION`.
        least: the threshold, in `unit`.
        unit: what is counted. ``ns`` are nanoseconds that NumPy would take, as the op estimates them.
        dtypes: NumPy's characters of the dtypes; empty for any.
        layout: the required layout of the arrays.
        machine: what the processor or BLAS must support.
    """

    how: str
    least: int
    unit: str
    dtypes: str = ""
    layout: str = ""
    machine: str = ""


TABLE: dict[str, Way] = {
    # NumPy's functions, on parts of arrays
    "formula in passes": Way(NUMPY, 72_000, "elements", "", "dense, axes in any order"),
    "sums and joined arrays": Way(NUMPY, 1 << 19, "elements", "", "one shape", "OpenBLAS, two threads"),
    "samples": Way(NUMPY, 20_000_000, "multiplications", "", "", "OpenBLAS, two threads"),
    # kernels, which the first call with given sizes compiles
    "formula": Way(KERNEL, 25_000, "ns", "fd", "dense, axes in any order"),
    "convolution or pooling": Way(KERNEL, 60_000, "ns", "fd"),
    "rows": Way(KERNEL, 16_384, "elements", "fd"),
    "update": Way(KERNEL, 48_000, "elements", "fd", "contiguous, memory of its own"),
    # functions for all sizes
    "batch norm": Way(FUNCTION, 250_000, "elements", "fd", "C order, three axes or more"),
    "step": Way(FUNCTION, 250_000, "elements", "fd", "dense, axes in any order"),
    "attention": Way(FUNCTION, 200_000, "multiplications", "f", "rows contiguous", "32- or 64-byte vectors"),
    "recurrent layer": Way(FUNCTION, 2_000_000, "multiplications", "fd"),
    "sum": Way(FUNCTION, 1_024, "elements", "fd", "C order", "OpenBLAS"),
    "product with a vector": Way(FUNCTION, 9_216, "elements", "fd", "", "OpenBLAS"),
    "product": Way(FUNCTION, 262_144, "multiplications", "fd", "rows or columns contiguous", "OpenBLAS, two threads"),
    # products by our own code, which is faster than BLAS
    "product, narrow BLAS": Way(FUNCTION, 3 << 18, "multiplications", "f", "fills 0.75 of tiles", "64-byte vectors"),
    "batch of products": Way(FUNCTION, 6 << 18, "multiplications", "f", "fills 0.9 of tiles", "64-byte vectors"),
    "product with columns": Way(FUNCTION, 16 << 18, "multiplications", "f", "fills 0.9 of tiles", "64-byte vectors"),
    "product with rows": Way(FUNCTION, 32 << 18, "multiplications", "f", "fills 0.9 of tiles", "64-byte vectors"),
}
"""The bounds by the kind of work, measured on the processors of `benchmarks/RESULTS.md`."""


def least(work: str) -> int:
    """Return the threshold of a kind of work, from its row."""
    return TABLE[work].least


__all__ = ["FUNCTION", "KERNEL", "NUMPY", "TABLE", "Array", "Dtype", "Params", "Way", "least"]
