"""A time limit for a learner's code, which stops endless loops."""

from __future__ import annotations

import ctypes
import faulthandler
import linecache
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TooLongError", "Watchdog", "limited"]


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
        frame = sys._current_frames().get(self._thread)
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        if frame is not None:
            line = linecache.getline(self._file, frame.f_lineno).strip()
            sys.stdout.write(f"  ERROR  line {frame.f_lineno}: {line}\n")
        sys.stdout.write("This call does not come to an end, and cannot be stopped alone: the check ends here.\n")
        sys.stdout.flush()
        os._exit(1)
