"""A line for who waits: that a step is being compiled, once that has taken a while, and only in a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from glassgrad import errors

SECONDS = 2.0


@contextmanager
def told_if_long(name: str, instructions: int) -> Iterator[None]:
    """Say on stderr that `name` is being compiled if the block takes longer than `SECONDS`.

    Pipes and files get nothing, and no thread is started for them.
    """
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield
        return
    text = errors.STILL_COMPILING.text(name=name, instructions=f"{instructions:,}")
    timer = threading.Timer(SECONDS, print, (text,), {"file": stream, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


__all__ = ["SECONDS", "told_if_long"]
