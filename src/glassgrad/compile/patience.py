"""A message in terminals that a step is being compiled, if that takes long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from glassgrad import errors

SECONDS = 2.0


@contextmanager
def told_if_long(name: str, instructions: int) -> Iterator[None]:
    """Print on stderr that `name` is being compiled, if the block takes longer than `SECONDS`.

    For pipes and files nothing is printed and no thread is started.
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
