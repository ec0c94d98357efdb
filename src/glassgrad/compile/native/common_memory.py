"""Memory that the kernels of eager mode share, so that none keeps its own between calls.

A network has a kernel for each size of its convolutions, and each needs a few MB for columns, transformed tiles or
partial sums. They run one after another, so they can use the same memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from glassgrad.base.kept import free_in_children
from glassgrad.compile.native import runtime
from glassgrad.ops.core import Array


class CommonMemory:
    """Memory for one kernel at a time, as large as the largest request so far.

    Attributes:
        memory: the shared memory; None before the first kernel.
    """

    def __init__(self) -> None:
        self.memory: Array | None = None
        self._lock = free_in_children(threading.Lock())

    @contextmanager
    def lent(self, size: int) -> Iterator[Array]:
        """Yield at least `size` bytes: the shared ones, or new ones while another thread's kernel uses them."""
        if not self._lock.acquire(blocking=False):
            yield runtime.space(size)
            return
        try:
            if self.memory is None or self.memory.nbytes < size:
                self.memory = None  # free it before allocating the larger one
                self.memory = runtime.space(size)
            yield self.memory
        finally:
            self._lock.release()


COMMON = CommonMemory()
