"""Native code for eager ops where NumPy is slower by a factor of two or more.

The compiler's kernels for convolutions and max pooling process windows in full SIMD width, without NumPy calls in
between. An activation takes one pass instead of NumPy's ten. The first call with given sizes compiles such a kernel
(about 0.2 s, far less once it is in the disk cache); later calls reuse it. Small work would not repay the compilation,
so NumPy does it (`ways`). NumPy does everything without llvmlite or with ``GLASSGRAD_NATIVE=0`` in the environment.
"""

from __future__ import annotations

import functools
import importlib
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base.kept import Cache, free_in_children
from glassgrad.ops.kernels import parallel
from glassgrad.ops.kernels.ways import Array, Params, least

Shape = tuple[int, ...]
Kernel = Any  # a `compile.eager_kernel.Kernel`: called, returns a new array; `into` writes to given arrays
Formula = Callable[..., Array]
Types = tuple[object, ...]  # (shape, dtype) of an array; a formula gets anything else unchanged

MODULES: dict[str, str] = {}
"""The compiler's modules for eager ops, by the kind of kernel that they make. `compiled` enters their names."""
_MOST = 4096  # kernels kept at most


class Kernels:
    """Kernels by op, types and parameters.

    Data whose sizes change from call to call would wait for a new kernel each time. So after the first `made_freely`
    kernels, another one is made only when the existing ones have been reused often enough.

    Args:
        least_work: fewest nanoseconds of NumPy's work for which a kernel is made; the kernel takes a tenth to half.
        made_freely: how many kernels are made unconditionally.
        uses_for_another: how many uses pay for one more.
        maker: module and name of the function that makes a kernel; by default the compiler's.

    Attributes:
        off: whether NumPy computes everything.
    """

    def __init__(
        self,
        least_work: float = least("formula"),
        made_freely: int = 128,
        uses_for_another: int = 16,
        maker: tuple[str, str] | None = None,
    ) -> None:
        self.least_work, self.made_freely, self.uses_for_another = least_work, made_freely, uses_for_another
        self.maker = maker
        self.off = os.environ.get("GLASSGRAD_NATIVE", "") == "0"
        # False marks a combination without native code.
        self._known: Cache[tuple[object, ...], Kernel] = Cache("kernels", _MOST)
        self._uses = 0
        self._lock = free_in_children(threading.RLock())

    def find(self, op: str | Formula, types: Types, shape: Shape, params: Params, threads: int | None = None) -> Kernel:
        """Return the kernel of an op or a formula for arrays of these types; the first request makes it.

        It runs on `threads` threads, by default as many as BLAS has.
        """
        if self.maker is None and not MODULES:
            return None
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

    def _made(self, op: str | Formula, types: Types, shape: Shape, params: Params, threads: int | None) -> Kernel:
        try:
            name, function = self.maker or (MODULES["kernels"], "kernel_for")
            made = getattr(importlib.import_module(name), function)(op, types, shape, params, threads)
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


WINDOWS = least("formula") / least("convolution or pooling")
"""The factor by which less work suffices for convolutions and pooling: kernels take at most a fifth of NumPy's time."""


def pays(work: float) -> bool:
    """Tell whether native code is worth requesting for work that takes NumPy about `work` nanoseconds."""
    return work >= kernels.least_work and not kernels.off


def result(op: str, arrays: tuple[Array, ...], shape: Shape, params: Params) -> Array | None:
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


def load(what: str) -> Any:
    """Return one of the compiler's modules; raise `ImportError` without llvmlite, or before they are registered."""
    if what not in MODULES:
        raise ImportError(what)
    return importlib.import_module(MODULES[what])


def job(function: str, shares: int) -> Any:
    """Return a job of native code for the threads of the pool; None where there is no compiler.

    `function` is one of `glassgrad.compile.native.products`, which keeps its jobs, and forgets them in forked children.
    """
    found = library(function)
    return None if found is None else found.job(function, shares)


@functools.cache
def library(function: str) -> Any:
    """Return the module of jobs, with the code of a function loaded; None where there is no compiler."""
    try:
        found = load("jobs")
        found.job(function, 1)  # whatever is missing shows here
    except (ImportError, OSError, RuntimeError):  # no llvmlite, or one that cannot
        return None
    return found
