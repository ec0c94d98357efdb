"""Native code for the few eager ops where NumPy leaves a factor of two or more on the table: windows of large images.

The compiler has kernels for convolutions and for pooling by the maximum already, which go over windows with the
processor's full width and without NumPy's calls in between. The first call with some sizes makes such a kernel (about
0.2 s, and little once it is on the disk), every later one uses it. Small work stays with NumPy, where it would never
earn that back, and so does everything where llvmlite is not installed or the environment variable ``GLASSGRAD_NATIVE``
is ``0``.
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
    """Kernels by op, types and parameters; None stands for what has no native code.

    Data whose sizes change from call to call would wait for a kernel each time. So many are made in any case, and
    further ones as long as those that were made are used again.

    Args:
        least_work: from so many nanoseconds of NumPy's work on, of which native code takes a half to a tenth.
        made_freely: how many are made in any case.
        uses_for_another: how many uses pay for a further one.
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
        """Return the kernel for such arrays, which is made when it is asked for first."""
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
"""Those of this process."""


def pays(work: float) -> bool:
    """Tell whether native code is worth asking for, where NumPy takes about `work` nanoseconds."""
    return work >= kernels.least_work and not kernels.off


def result(op: str, arrays: tuple[Array, ...], shape: Shape, params: dict[str, Any]) -> Array | None:
    """Return the result of a primitive from native code; None where NumPy is to compute it.

    `params` are the primitive's own, `shape` is its result's.
    """
    if not all(_is_plain(array, arrays[0]) for array in arrays):
        return None
    kernel = kernels.find(op, arrays, shape, params)
    return None if kernel is None else kernel(*[np.require(array, requirements=["C", "A"]) for array in arrays])


def _is_plain(array: Array, first: Array) -> bool:
    return type(array) is np.ndarray and array.dtype is first.dtype and array.dtype.char in "fd"
