"""Memory asked for ahead of its use: a second thread touches it while the step that will use it is made.

The system gives a page when it is first written to: it clears the page, and where it is a virtual machine itself, its
host has to find one first. For a large step that takes as long as the step. Making a step keeps one core busy most of
the time, so another one can do it meanwhile. What is touched is what the step will write to and nothing else, and only
where twice as much is free.
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

LEAST = 32 << 20  # bytes: less is touched in the time that a thread takes to be of use
_Touch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int8)


class Ahead:
    """Touches memory while a ``with`` statement runs; what is not done at its end is left to who uses the memory.

    Args:
        cores: that this process may use, by default those of the machine that it has.
        free: bytes that the system could give, by default what it says.

    Attributes:
        touched: bytes given to threads so far.
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
        """Leave the rest to the step, whose threads would have to wait for this one; or there is none."""
        self._stop[0] = 1

    def touch(self, arrays: Sequence[Array]) -> bool:
        """Begin to touch arrays that a step will write to; return whether that is worth a thread and possible.

        The arrays are kept alive until the thread has done with them. They may be used meanwhile.
        """
        size = sum(array.nbytes for array in arrays)
        if not self.fits(size):
            return False
        self.touched += size
        touch = _Touch(runtime.support_code().address("touch"))
        _thread.start_new_thread(_work, (touch, list(arrays), self._stop))
        return True

    def fits(self, size: int) -> bool:
        """Tell whether so many bytes more are worth a thread, and free twice with what is touched already."""
        if size < LEAST or (self._cores or runtime.available_cores()) < 2:
            return False
        return (free_bytes() if self._free is None else self._free) >= 2 * (self.touched + size)

    def place(self, size: int) -> Array:
        """Return memory of so many bytes for the values between a step's kernels, which is being touched."""
        self.stop()
        self._stop = np.zeros(1, np.int64)
        memory = runtime.space(size)
        self.touch([memory])
        return memory


def _work(touch: Callable[..., None], arrays: list[Array], stop: Array) -> None:
    table = np.array([(array.ctypes.data, array.nbytes) for array in arrays], np.int64)
    touch(int(table.ctypes.data), len(arrays), int(stop.ctypes.data), 0)


def free_bytes() -> int:
    """Return the memory that the system could give without taking it from somebody; 0 where it does not say."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
