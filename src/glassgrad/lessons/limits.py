"""Limits of time, memory and processes for a learner's code.

The code is the learner's own, so these limits protect from accidents, not from malice. On Linux the system refuses more
address space, and Python raises MemoryError. macOS tells only the peak of a process; Windows tells neither.
"""

from __future__ import annotations

import ctypes
import faulthandler
import linecache
import os
import sys
import threading
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
    """Ends the process if it is not reset for too long, because of a call that never returns to Python.

    Args:
        file: the learner's program, whose line is named.
        seconds: the longest time without a `reset`.
    """

    def __init__(self, file: str, seconds: float) -> None:
        self._file, self._seconds = file, seconds
        self._thread = threading.get_ident()
        self._timer: threading.Timer | None = None

    def reset(self) -> None:
        """Restart the countdown."""
        self.stop()
        self._timer = threading.Timer(self._seconds, self._end)
        self._timer.daemon = True
        self._timer.start()
        if sys.__stderr__ is not None:
            # Python's own watchdog, a little later, ends a call that blocks all threads.
            faulthandler.dump_traceback_later(1.5 * self._seconds, exit=True, file=sys.__stderr__)

    def stop(self) -> None:
        """Stop watching."""
        faulthandler.cancel_dump_traceback_later()
        if self._timer is not None:
            self._timer.cancel()

    def _end(self) -> None:
        number = line_in(self._thread, self._file)
        if number is not None:
            sys.stdout.write(f"  ERROR  line {number}: {linecache.getline(self._file, number).strip()}\n")
        sys.stdout.write("This call does not come to an end, and cannot be stopped alone: the check ends here.\n")
        sys.stdout.flush()
        os._exit(1)


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


def count_forks(forked: Callable[[], None]) -> None:
    """Call a function before each fork, and end a process that forks without end."""
    if not hasattr(os, "register_at_fork"):
        return
    count = [0]

    def before() -> None:
        count[0] += 1
        forked()
        if count[0] > _MOST_FORKS:
            os._exit(FORKS)

    os.register_at_fork(before=before)
