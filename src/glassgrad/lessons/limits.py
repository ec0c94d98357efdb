"""Limits of time, memory and processes for a learner's code.

The code is the learner's own, so these limits protect from accidents, not from malice. On Linux the system refuses more
address space, and Python raises MemoryError. macOS tells only the peak of a process; Windows tells neither.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from glassgrad.errors.packages import present

__all__ = ["FORKS", "MEMORY", "TooLongError", "Watchdog", "count_forks", "limited", "line_in", "memory_limited", "peak"]

MEMORY = 2 << 30
"""Bytes that a learner's program may take."""
FORKS = 103
"""The exit code of a process that started too many others."""
_MOST_FORKS = 6
_LOOK = 0.05  # seconds between two looks at the clock


class TooLongError(BaseException):
    """Raised in a computation that exceeds its time limit. `except Exception` does not catch it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stop the block after some seconds, with a `TooLongError` at the running line.

    Works in every thread and on every system, but only between Python instructions: it cannot stop a single call that
    never returns.

        >>> with limited(60):
        ...     sum(range(10))
        45
    """
    thread = ctypes.c_ulong(threading.get_ident())
    lock, running = threading.Lock(), [True]

    def end() -> None:
        with lock:  # the block has ended already
            if running:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TooLongError))

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            running.clear()


class Watchdog:
    """Ends the process if it is not reset for too long, or on macOS if it takes too much memory.

    Args:
        ended: called with "time" or "memory" and the line of the file that runs, None outside of it. It has to end the
            process: a call that never returns to Python cannot be stopped alone.
        file: the learner's program.
        seconds: the longest time without a `reset`.
        most: bytes.
        hard: whether Python's own watchdog, a little later, ends a call that blocks all threads.
    """

    def __init__(
        self,
        ended: Callable[[str, int | None], object],
        file: str = "",
        seconds: float = 0.0,
        most: int = MEMORY,
        *,
        hard: bool = False,
    ) -> None:
        self.file, self.seconds, self.most = file, seconds, most
        self._ended, self._hard = ended, hard
        self._thread = threading.get_ident()
        self._until: float | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._watch, daemon=True).start()

    def reset(self) -> None:
        """Restart the countdown."""
        with self._changed:
            self._until = time.monotonic() + self.seconds
            self._changed.notify()
        if self._hard and sys.__stderr__ is not None:
            faulthandler.dump_traceback_later(1.5 * self.seconds, exit=True, file=sys.__stderr__)

    def stop(self) -> None:
        """Stop watching."""
        with self._changed:
            self._until = None
        if self._hard:
            faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(None if self._until is None else _LOOK)
                until = self._until
            if until is not None:
                if sys.platform == "darwin" and peak() > self.most:
                    self._ended("memory", line_in(self._thread, self.file))
                if time.monotonic() > until:
                    self._ended("time", line_in(self._thread, self.file))


def line_in(thread: int, file: str) -> int | None:
    """Return the line of a file that a thread is in; None if it is elsewhere."""
    frame: FrameType | None = sys._current_frames().get(thread)
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return None if frame is None else frame.f_lineno


@contextmanager
def memory_limited(most: int = MEMORY) -> Iterator[None]:
    """Refuse more address space than `most` bytes above what is taken now, on Linux, in the block.

    >>> with memory_limited():
    ...     sum(range(10))
    45
    """
    if sys.platform != "linux":
        yield
        return
    import resource

    taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + most if hard < 0 else min(taken + most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def peak() -> int:
    """Return the most memory that this process has held, in bytes; 0 on systems that do not tell."""
    if not present("resource"):
        return 0
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


def count_forks() -> Callable[[], int]:
    """Return a function that tells how often this process has forked; end a process that forks without end."""
    count = [0]

    def before() -> None:
        count[0] += 1
        if count[0] > _MOST_FORKS:
            os._exit(FORKS)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before)
    return lambda: count[0]
