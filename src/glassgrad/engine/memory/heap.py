"""Freed memory that the C library keeps, so that the arrays of the next step can reuse it.

Each step of eager mode allocates the activations again that the previous step freed. By default glibc returns large
blocks to the system at once; the pages of the next blocks are then mapped and cleared one by one, on first touch. For
the GPT of benchmark W3 that took 18 of the 97 ms of a step. Two options of `mallopt(3)` let such blocks come from the
heap, and let the heap keep some free memory at its end.
"""

from __future__ import annotations

import ctypes  # already loaded by NumPy
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # from malloc.h
KEPT = 256 << 20  # bytes of free memory at the end of the heap that the process keeps
_LARGEST = 32 << 20  # bytes of the largest block on the heap; the highest value that glibc accepts
_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Set the two options if the C library is glibc; tell whether they are set now.

    Options set in the environment take precedence; `GLASSGRAD_KEEP_MEMORY=0` sets none.
    """
    chosen = os.environ.get("GLASSGRAD_KEEP_MEMORY", "") == "0" or any(name in os.environ for name in _VARIABLES)
    if chosen or sys.platform != "linux":
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):  # musl has its own allocator
        return False
    return bool(library.mallopt(_MMAP_THRESHOLD, _LARGEST) and library.mallopt(_TRIM_THRESHOLD, KEPT))


keep_freed_memory()
