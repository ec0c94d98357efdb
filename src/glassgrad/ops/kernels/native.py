"""Native code for the eager ops where NumPy leaves a factor of two or more on the table.

The compiler's kernels for convolutions and max pooling go over windows in full SIMD width, without NumPy calls in
between; activations that take NumPy ten passes take one. The first call with given sizes compiles such a kernel (about
0.2 s, far less once it is in the disk cache); later calls reuse it. Small work would never earn that back and stays
with NumPy, as does everything where llvmlite is not installed or ``GLASSGRAD_NATIVE`` is ``0`` in the environment.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base.kept import Cache, free_in_children
from glassgrad.ops.kernels import blocks, parallel, parts, products, recurrent

Array = Any
Shape = tuple[int, ...]
Kernel = Any  # a `compile.eager_kernel.Kernel`: called, it returns a new array; `into` writes to those given
Formula = Callable[..., Array]
Types = tuple[Any, ...]  # (shape, dtype) of an array; anything else is handed to a formula as it is

# By name: ops lie below the compiler, and eager mode loads it only here.
_MAKER = ("glassgrad.compile.eager_kernel", "kernel_for")
_JOBS = "glassgrad.compile.native.products"
_MOST = 4096  # kernels that are kept


class Kernels:
    """Kernels by op, types and parameters.

    Data whose sizes change from call to call would wait for a new kernel each time. So after the first
    `made_freely` kernels, another one is made only when the existing ones have been reused often enough.

    Args:
        least_work: fewest nanoseconds of NumPy's work for which a kernel is made; it takes a half to a tenth of them.
        made_freely: how many kernels are made unconditionally.
        uses_for_another: how many uses pay for one more.
        maker: module and name of the function that makes one.

    Attributes:
        off: whether everything is left to NumPy.
    """

    def __init__(
        self,
        least_work: float = 1_000_000,
        made_freely: int = 128,
        uses_for_another: int = 16,
        maker: tuple[str, str] = _MAKER,
    ) -> None:
        self.least_work, self.made_freely, self.uses_for_another = least_work, made_freely, uses_for_another
        self.maker = maker
        self.off = os.environ.get("GLASSGRAD_NATIVE", "") == "0"
        self._known: Cache[Any, Kernel] = Cache("kernels", _MOST)  # False marks a combination without native code
        self._uses = 0
        self._lock = free_in_children(threading.RLock())

    def find(
        self, op: str | Formula, types: Types, shape: Shape, params: dict[str, Any], threads: int | None = None
    ) -> Kernel:
        """Return the kernel for arrays of such types, of an op or of a formula; the first request makes it.

        It runs on so many threads, by default on those that BLAS has.
        """
        threads = threads or parallel.shares.threads()
        key = (op, types, tuple(params.values()), threads)
        kernel = self._known.get(key)
        if kernel is None:
            with self._lock:
                kernel = self._known.get(key)  # another thread may have made it meanwhile
                if kernel is None:
                    if len(self._known) >= self.made_freely + self._uses // self.uses_for_another:
                        return None
                    kernel = self._made(op, types, shape, params, threads) or False
                    self._known.put(key, kernel)
        self._uses += 1
        return kernel or None

    def _made(
        self, op: str | Formula, types: Types, shape: Shape, params: dict[str, Any], threads: int | None
    ) -> Kernel:
        try:
            maker = getattr(importlib.import_module(self.maker[0]), self.maker[1])
            made = maker(op, types, shape, params, threads)
        except ImportError:  # no llvmlite: NumPy computes everything, as documented
            self.off = True
            return None
        except (OSError, RuntimeError) as error:
            self.off = True
            name = op if isinstance(op, str) else op.__name__.strip("_")
            warnings.warn(errors.NO_NATIVE_OP.text(op=name, reason=str(error)), errors.CompileWarning, stacklevel=2)
            return None
        return made


kernels = Kernels()
"""The kernels of this process."""


WINDOWS = 5
"""How much less work pays for kernels of convolutions and of pooling: they take a fifth of NumPy's time and less."""


def pays(work: float) -> bool:
    """Tell whether native code is worth asking for, where NumPy takes about `work` nanoseconds."""
    return work >= kernels.least_work and not kernels.off


def result(op: str, arrays: tuple[Array, ...], shape: Shape, params: dict[str, Any]) -> Array | None:
    """Return the result of a primitive from native code; None if NumPy should compute it.

    `params` are the primitive's own, `shape` is its result's.
    """
    if not all(_is_plain(array, arrays[0]) for array in arrays):
        return None
    types = tuple([(array.shape, array.dtype) for array in arrays])
    kernel = kernels.find(op, types, shape, params)
    return None if kernel is None else kernel(*[np.require(array, requirements=["C", "A"]) for array in arrays])


def _is_plain(array: Array, first: Array) -> bool:
    return type(array) is np.ndarray and array.dtype is first.dtype and array.dtype.char in "fd"


# --- formulas in blocks ---------------------------------------------------------------------------

_NUMBERS = (int, float, np.floating)
_NS = 3  # about what an element takes NumPy in a formula marked `native`
_PRODUCTS = 48  # multiplications of matrices that take as long as an element in native code
BLOCK = 65_536  # elements that a kernel is made for; a power of two divides most sizes of batches


def _in_blocks(formula: Formula, params: dict[str, Any], parts: list[Any], out: Array, product: bool) -> bool:
    """Compute a formula of flat arrays into `out`, with `product` times the first of them; False if NumPy should."""
    if out.size < BLOCK or not pays(_NS * out.size) or out.dtype.char not in "fd":
        return False
    if parts[0] is np:  # the forward of an op, for which the compiler has code
        what, parts = formula.op, parts[1:]  # type: ignore[attr-defined]  # `entitle` has set it
    else:
        what = _product(formula) if product else formula
    # A number is filled in like an array: a kernel for each number would be made again and again.
    parts = [np.asarray(part, out.dtype) if isinstance(part, _NUMBERS) else part for part in parts]
    given = [part for part in parts if type(part) is np.ndarray]
    if any(part.dtype is not out.dtype for part in given):
        return False
    # What the formula does not read is a placeholder, such as a node: no kernel is for it alone or keeps it alive.
    types = tuple([((BLOCK,), part.dtype) if type(part) is np.ndarray else None for part in parts])
    kernel = kernels.find(what, types, (BLOCK,), params, 1)
    if kernel is None or not all(part.flags.aligned for part in given):
        return False
    arrays = [part if part.ndim else np.full(BLOCK, part) for part in given]
    steps = [part.ndim * BLOCK * out.itemsize for part in given]
    count = out.size // BLOCK
    kernel.along([*arrays, out], [*steps, BLOCK * out.itemsize], count, products.shares(_PRODUCTS * out.size))
    if out.size % BLOCK:  # the last block repeats some of the one before
        last = [array[-BLOCK:] for array in arrays]
        return bool(kernel.into(tuple(last), (out[-BLOCK:],)))
    return True


@functools.lru_cache(maxsize=1024)
def _product(formula: Formula) -> Formula:
    def product(c: Array, *args: Any, **params: Any) -> Array:
        return c * formula(*args, **params)

    return product


def _in_use() -> Kernels | None:
    return None if kernels.off else kernels


def job(function: str, shares: int) -> Any:
    """Return a job of native code for the threads of the pool; None where there is no compiler.

    `function` is one of `glassgrad.compile.native.products`, which keeps its jobs, and forgets them in forked children.
    """
    library = _library(function)
    return None if library is None else library.job(function, shares)


@functools.cache
def _blas_is_narrow() -> bool:
    """Tell whether NumPy's BLAS computes with half of what this processor's vectors could."""
    blas = parallel.numpys_blas()
    if blas is None or blas.core not in _NARROW_CORES:
        return False
    library = _library("packed")
    return library is not None and bool(library.multiplies_whole_lines())


_NARROW_CORES = frozenset({"Haswell", "Zen"})  # of OpenBLAS's kinds of code, those for vectors of 32 bytes


@functools.cache
def _library(function: str) -> Any:
    try:
        library = importlib.import_module(_JOBS)
        library.job(function, 1)  # whatever is missing shows here
    except (ImportError, OSError, RuntimeError):  # no llvmlite, or one that cannot
        return None
    return library


@functools.cache
def _jobs() -> products.Threads | None:
    """Return what multiplies matrices; None without OpenBLAS or a compiler, or where it would gain nothing."""
    blas = parallel.numpys_blas()
    if blas is None or len(blas.products) < 2 or sys.byteorder != "little":
        return None
    try:
        library = importlib.import_module(_JOBS)
        most, packs, lanes = library.runtime.available_cores(), library.packs(), library.lanes()
        if packs:
            library.job("packed", 1)  # whatever is missing shows here
        if most > 1:
            library.job("product", 2)
    except (ImportError, OSError, RuntimeError):  # no llvmlite, or one that cannot
        return None
    return products.Threads(library.job, blas, most, packs, lanes)


def _multiplying(packs: bool = False) -> products.Threads | None:
    if kernels.off:
        return None
    if (parallel.shares.threads() or 1) > 1:
        return _jobs()
    # On one thread there is nothing to cut, and only products of our own code gain.
    return _jobs() if packs else None


@functools.cache
def _cores() -> int:
    return int(importlib.import_module(_JOBS).runtime.available_cores())


@functools.cache
def _recurrent_layers() -> Any:
    library = _library("recurrent_rnn_f32")
    return None if library is None else (job, library.host().vector_bytes)


blocks.compute_natively = _in_blocks
recurrent.source = lambda: None if kernels.off else _recurrent_layers()
parts.source = _in_use
products.source = _multiplying
products.cores = _cores
products.narrow = _blas_is_narrow
