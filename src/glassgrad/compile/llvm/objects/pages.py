"""Memory for machine code: written first, executable afterwards, never both."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import sys

import numpy as np

READ, EXECUTE = 1, 4
"""PROT_READ and PROT_EXEC, which have these values on every system with `mprotect`."""


class Pages:
    """Fresh memory in whole pages, freed when neither this object nor its content is referenced.

    Attributes:
        address: of the first byte.
        content: the memory as bytes, to be filled before it is protected.

    Raises:
        OSError: if no memory of this kind is available.
    """

    def __init__(self, size: int) -> None:
        if sys.platform == "win32":
            raise OSError("no pages of this kind on this system")
        # Private, so that a forked child has its own copy.
        memory = mmap.mmap(-1, up(max(size, 1)), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.content: np.ndarray = np.frombuffer(memory, np.uint8)
        self.address = int(self.content.ctypes.data)

    def protect(self, start: int, stop: int, rights: int) -> None:
        """Restrict the pages from `start` to `stop` to these rights. Raises `OSError` if the system refuses."""
        if stop > start and process().mprotect(
            ctypes.c_void_p(self.address + start), ctypes.c_size_t(up(stop) - start), rights
        ):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def up(size: int, multiple: int = mmap.PAGESIZE) -> int:
    """Round up to a multiple, by default of the page size."""
    return -(-size // multiple) * multiple


@functools.cache
def process() -> ctypes.CDLL:
    """Return the functions of this process, from its program and the libraries it was started with."""
    return ctypes.CDLL(None, use_errno=True)
