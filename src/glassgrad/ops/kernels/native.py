"""Native code for the few eager ops where NumPy leaves a factor of two or more on the table: windows of large images.

The compiler's kernels for convolutions and max pooling go over windows in full SIMD width, without NumPy calls in
between. The first call with given sizes compiles such a kernel (about 0.2 s, far less once it is in the disk cache);
later calls reuse it. Small work would never earn that back and stays with NumPy, as does everything where llvmlite is
not installed or the environment variable ``GLASSGRAD_NATIVE`` is ``0``.
"""

from __future__ import annotations

import importlib
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.ops.core import Array
from glassgrad.ops.kernels import parallel

Shape = tuple[int, ...]
Kernel = Callable[..., Array]

# By name: ops lie below the compiler, and eager mode loads it only here.
_MAKER = ("glassgrad.compile.eager_kernel", "kernel_for")


class Kernels:
    """Kernels by op, types and parameters; None marks a combination without native code.

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
        self._known: dict[Any, Kernel | None] = {}
        self._uses = 0
        self._lock = threading.RLock()

    def find(self, op: str, arrays: tuple[Array, ...], shape: Shape, params: dict[str, Any]) -> Kernel | None:
        """Return the kernel for such arrays; the first request makes it."""
        threads = parallel.shares.threads()
        types = tuple([(array.shape, array.dtype) for array in arrays])
        key = (op, types, tuple(params.values()), threads)
        if key not in self._known:
            with self._lock:
                if key not in self._known:
                    if len(self._known) >= self.made_freely + self._uses // self.uses_for_another:
                        return None
                    self._known[key] = self._made(op, types, shape, params, threads)
        self._uses += 1
        return self._known[key]

    def _made(self, op: str, types: Any, shape: Shape, params: dict[str, Any], threads: int | None) -> Kernel | None:
        try:
            maker = getattr(importlib.import_module(self.maker[0]), self.maker[1])
            made: Kernel | None = maker(op, types, shape, params, threads)
        except ImportError:  # no llvmlite: NumPy computes everything, as documented
            self.off = True
            return None
        except (OSError, RuntimeError) as error:
            self.off = True
            warnings.warn(errors.NO_NATIVE_OP.text(op=op, reason=str(error)), errors.CompileWarning, stacklevel=2)
            return None
        return made


kernels = Kernels()
"""The kernels of this process."""


def pays(work: float) -> bool:
    """Tell whether native code is worth asking for, where NumPy takes about `work` nanoseconds."""
    return work >= kernels.least_work and not kernels.off


def result(op: str, arrays: tuple[Array, ...], shape: Shape, params: dict[str, Any]) -> Array | None:
    """Return the result of a primitive from native code; None if NumPy should compute it.

    `params` are the primitive's own, `shape` is its result's.
    """
    if not all(_is_plain(array, arrays[0]) for array in arrays):
        return None
    kernel = kernels.find(op, arrays, shape, params)
    return None if kernel is None else kernel(*[np.require(array, requirements=["C", "A"]) for array in arrays])


def _is_plain(array: Array, first: Array) -> bool:
    return type(array) is np.ndarray and array.dtype is first.dtype and array.dtype.char in "fd"
