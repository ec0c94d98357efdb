"""Touch memory before its use: a second thread does it while the step that will use it is compiled.

The system provides a page at the first write: it clears the page and, in a virtual machine, the hypervisor must find
one first. For a large step that takes as long as the step. Compilation mostly keeps one core busy, so another core can
touch the memory at the same time. Only memory that the step will write to is touched, and only if twice as much is
free.
"""

from __future__ import annotations

import _thread
import ctypes
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from glassgrad.compile.native import runtime
from glassgrad.ops.core import Array

LEAST = 32 << 20  # bytes; less memory is not worth starting a thread
_Touch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int8)


class Ahead:
    """Touches memory while a ``with`` statement runs; memory not reached by then is left to the user of the memory.

    Args:
        cores: the number of cores that this process may use, by default the available ones.
        free: free bytes, by default as the system reports.

    Attributes:
        touched: bytes assigned to threads so far.
    """

    def __init__(self, cores: int | None = None, free: int | None = None) -> None:
        self.touched = 0
        self._cores, self._free = cores, free
        self._stop = np.zeros(1, np.int64)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Leave the rest to the step, whose threads would otherwise compete with this one."""
        self._stop[0] = 1

    def touch(self, arrays: Sequence[Array]) -> bool:
        """Begin to touch arrays that a step will write to; return whether that is worth a thread and possible.

        The arrays are kept alive until the thread is done. They may be used at the same time.
        """
        size = sum(array.nbytes for array in arrays)
        if not self.fits(size):
            return False
        self.touched += size
        touch = _Touch(runtime.support_code().address("touch"))
        _thread.start_new_thread(_work, (touch, list(arrays), self._stop))
        return True

    def fits(self, size: int) -> bool:
        """Tell whether `size` more bytes are worth a thread, and twice the total touched memory is free."""
        if size < LEAST or (self._cores or runtime.available_cores()) < 2:
            return False
        return (free_bytes() if self._free is None else self._free) >= 2 * (self.touched + size)

    def place(self, size: int) -> Array:
        """Allocate `size` bytes for the values between a step's kernels, and begin to touch them."""
        self.stop()
        self._stop = np.zeros(1, np.int64)
        memory = runtime.space(size)
        self.touch([memory])
        return memory


def _work(touch: Callable[..., None], arrays: list[Array], stop: Array) -> None:
    table = np.array([(array.ctypes.data, array.nbytes) for array in arrays], np.int64)
    touch(int(table.ctypes.data), len(arrays), int(stop.ctypes.data), 0)


def free_bytes() -> int:
    """Return the available memory of the system; 0 if it does not report it."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
