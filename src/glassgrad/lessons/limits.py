"""A time limit for code of a learner's: a loop that does not end is ended."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TooLongError", "limited"]


class TooLongError(BaseException):
    """Raised inside a computation that takes longer than it may. `except Exception` does not hold it up."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what runs in the block after some seconds, with a `TooLongError` at the line that is being run.

    Works in every thread and on every system, but only between two steps of Python: a single call that never returns
    goes on.

        >>> with limited(60):
        ...     sum(range(10))
        45
    """
    thread = ctypes.c_ulong(threading.get_ident())
    lock, running = threading.Lock(), [True]

    def end() -> None:
        with lock:  # what has ended is not to be ended once more
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
