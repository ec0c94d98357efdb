"""The ways by which an eager op reaches its arithmetic, and the table that chooses among them.

There are three:

- ``numpy``: NumPy's functions, on whole arrays, on blocks that stay in the cache (`blocks`), or on samples that
  threads of Python's share (`parallel`). Everything that no row takes is computed in this way.
- ``kernel``: native code that the compiler makes of a primitive or a formula (`native`), for images, for blocks of
  elements (`blocks`), for rows (`parts`) or for the parameters of an optimizer (`optim.native_update`).
- ``function``: native functions that are written once for arrays of every size: products (`products`), attention,
  recurrent layers, and what goes by channels.

Kernels and functions run on the threads of one pool. Where llvmlite is missing, or with ``GLASSGRAD_NATIVE=0``, all is
NumPy's. Each mechanism reads its bound here, and looks at dtype, layout and processor as its row says. A row without a
dtype or layout takes any.
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
    """A row of the table: from how much work on a way is taken, and for what.

    Attributes:
        how: the way, `NUMPY`, `KERNEL` or `FUNCTION`.
        least: the least work, in `unit`.
        unit: what is counted. ``ns`` are nanoseconds that NumPy would take, as the op estimates them.
        dtypes: NumPy's characters of the dtypes, nothing for any.
        layout: how the arrays have to lie.
        machine: what the processor or BLAS needs.
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
    "convolution or pooling": Way(KERNEL, 200_000, "ns", "fd"),
    "rows": Way(KERNEL, 65_536, "elements", "fd"),
    "update": Way(KERNEL, 48_000, "elements", "fd", "contiguous, memory of its own"),
    # functions, which serve all sizes
    "batch norm": Way(FUNCTION, 250_000, "elements", "fd", "C order, three axes or more"),
    "step": Way(FUNCTION, 250_000, "elements", "fd", "dense, axes in any order"),
    "attention": Way(FUNCTION, 200_000, "multiplications", "f", "rows contiguous", "32- or 64-byte vectors"),
    "recurrent layer": Way(FUNCTION, 2_000_000, "multiplications", "fd"),
    "sum": Way(FUNCTION, 1_024, "elements", "fd", "C order", "OpenBLAS"),
    "product with a vector": Way(FUNCTION, 9_216, "elements", "fd", "", "OpenBLAS"),
    "product": Way(FUNCTION, 262_144, "multiplications", "fd", "rows or columns contiguous", "OpenBLAS, two threads"),
    # products by code of our own, which takes less time than BLAS
    "product, narrow BLAS": Way(FUNCTION, 3 << 18, "multiplications", "f", "fills 0.75 of tiles", "64-byte vectors"),
    "batch of products": Way(FUNCTION, 6 << 18, "multiplications", "f", "fills 0.9 of tiles", "64-byte vectors"),
    "product with columns": Way(FUNCTION, 16 << 18, "multiplications", "f", "fills 0.9 of tiles", "64-byte vectors"),
    "product with rows": Way(FUNCTION, 32 << 18, "multiplications", "f", "fills 0.9 of tiles", "64-byte vectors"),
}
"""By the kind of work. The bounds were measured on the processors of `benchmarks/RESULTS.md`."""


def least(work: str) -> int:
    """Return the least work of a kind that takes the way of its row."""
    return TABLE[work].least


__all__ = ["FUNCTION", "KERNEL", "NUMPY", "TABLE", "Array", "Dtype", "Params", "Way", "least"]
