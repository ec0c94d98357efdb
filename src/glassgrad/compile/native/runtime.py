"""The runtime of compiled code: the pool of threads, memory and cores."""

from __future__ import annotations

import _thread
import atexit
import ctypes
import os
import threading
import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from glassgrad.compile.llvm.module import support
from glassgrad.compile.llvm.module.target import LoadedCode, host
from glassgrad.compile.native import cache
from glassgrad.engine.tensors import devices
from glassgrad.ops.core import Array

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_HUGE_PAGE = 2 << 20
_Work = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
_Wake = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@lru_cache(maxsize=1)
def support_code() -> LoadedCode:
    """Return the native half of the runtime."""
    header = host().header()

    def text() -> str:
        return f"{header}\n{support.support_text()}"

    return LoadedCode(cache.code_of("support", (header,), text, host().compile))


def aligned(count: int, dtype: DTypeLike = np.uint8, alignment: int = 64) -> Array:
    """Return an array of zeros whose memory starts at a multiple of `alignment` bytes."""
    size = np.dtype(dtype).itemsize * count
    raw = np.zeros(size + alignment, np.uint8)
    start = -int(raw.ctypes.data) % alignment
    return raw[start : start + size].view(dtype)


def space(size: int) -> Array:
    """Return memory for the values between the kernels of a step and for scratch, in huge pages if it is large."""
    return aligned(size, alignment=_HUGE_PAGE if size >= 4 * _HUGE_PAGE else 64)


def available_cores() -> int:
    """Return how many cores this process may use: its affinity, limited by the control group's quota.

    Processes that compute together and are not bound to separate cores get equal parts.
    """
    return max(1, _cores() // devices.sharers)


def _cores() -> int:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()[:2]
    except (OSError, ValueError):
        return count
    return count if quota == "max" else max(1, min(count, round(int(quota) / int(period))))


class Pool:
    """Worker threads that wait in native code, without the interpreter lock, for steps to take part in.

    Attributes:
        lock: held while a step runs on several threads; only one step does at a time.
        left: contexts to forget, with the objects that they need until then.
    """

    def __init__(self) -> None:
        self.memory = aligned(support.POOL_BYTES)
        # Never free these: the threads read the pool and run their code until the process ends, even after the
        # interpreter has freed other objects at exit.
        for needed in (self.memory, support_code()):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(needed))
        self.address = int(self.memory.ctypes.data)
        self.lock = threading.Lock()
        self.left: list[tuple[int, object]] = []
        self.workers = 0
        self._work = _Work(support_code().address("work"))
        self._wake = _Wake(support_code().address("wake_all"))

    def ensure(self, workers: int) -> None:
        """Start threads until there are `workers`."""
        while self.workers < workers:
            self.workers += 1
            _thread.start_new_thread(self._work, (self.address, self.workers))

    def word(self, offset: int) -> Array:
        """Return a counter of the pool as an array of one element."""
        return self.memory[offset : offset + 8].view(np.int64)

    def forget(self, context: int, alive: object) -> None:
        """Ensure that no worker accesses a context again, and keep `alive` until then.

        The garbage collector may call this at any moment, even in a thread that holds the lock during another step, so
        it must not wait.
        """
        self.left.append((context, alive))
        self.sweep()

    def sweep(self) -> None:
        """Forget contexts, unless a step is running, which then sweeps at its end."""
        if not self.lock.acquire(blocking=False):
            return
        try:
            while self.left:
                context, _alive = self.left.pop()
                if int(self.word(support.JOB)[0]) == context:
                    self.expel()
        finally:
            self.lock.release()

    def expel(self) -> None:
        """Withdraw the job and wait until no worker is in it. The caller holds the lock."""
        self.word(support.JOB)[0] = 0
        while int(self.word(support.INSIDE)[0]):
            time.sleep(0)

    def stop(self) -> None:
        """Stop the threads; called once, when the process ends."""
        self.word(support.STOP)[0] = 1
        self._wake(self.address)


_pool: Pool | None = None
_pool_guard = threading.Lock()


def pool() -> Pool:
    """Return the pool of this process."""
    global _pool
    with _pool_guard:
        if _pool is None:
            _pool = Pool()
        return _pool


def _forget_pool_after_fork() -> None:
    # The child has the memory of the threads but not the threads.
    global _pool, _pool_guard
    _pool, _pool_guard = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool_after_fork)


def _stop() -> None:
    if _pool is not None:
        _pool.stop()


atexit.register(_stop)
