"""Ctrl-C during a trace: delivered at once where that is safe, otherwise after state is restored.

While tracing, symbols replace the arrays of parameters. An interrupt while the arrays are being restored would leave
some symbols in place permanently.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from glassgrad.compile.front.calls.parameters import Function

SOON = 0.005  # seconds
_WEAK = ("weakref.py", "_weakrefset.py")


class _Shield:
    """Replaces the handler of Ctrl-C.

    Attributes:
        open: whether an interrupt is passed on at once; the first one closes it.
        pending: whether one is waiting.
    """

    def __init__(self, before: Function) -> None:
        self.before = before
        self.open = False
        self.pending = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.open and _in_callback(frame):
            again = threading.Timer(SOON, signal.raise_signal, (number,))
            again.daemon = True
            again.start()
        elif self.open:
            self.open = False
            self.before(number, frame)
        else:
            self.pending = True


def _in_callback(frame: FrameType | None) -> bool:
    """Tell whether a frame runs where Python drops what is raised: in the callback of a weak reference or of the
    garbage collection, or in a `__del__`.
    """
    collections = {getattr(one, "__code__", None) for one in gc.callbacks}
    while frame is not None:
        code = frame.f_code
        if code in collections or code.co_name == "__del__" or code.co_filename.endswith(_WEAK):
            return True
        frame = frame.f_back
    return False


_active: _Shield | None = None


@contextmanager
def shielded() -> Iterator[None]:
    """Defer interrupts to the end of the block, except in those parts of it that are `opened`."""
    global _active
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or _active is not None or not callable(before):
        yield
        return
    shield = _Shield(before)
    handle = shield.handle
    signal.signal(signal.SIGINT, handle)
    _active = shield
    try:
        yield
    finally:
        _active = None
        if signal.getsignal(signal.SIGINT) is handle:
            signal.signal(signal.SIGINT, before)
        if shield.pending:
            before(signal.SIGINT, None)


@contextmanager
def opened() -> Iterator[None]:
    """Deliver interrupts in this block; the surrounding code undoes partial changes."""
    shield = _active if threading.current_thread() is threading.main_thread() else None
    if shield is None:
        yield
        return
    shield.open = True
    try:
        if shield.pending:
            shield.pending = False
            shield.handle(signal.SIGINT, None)
        yield
    finally:
        shield.open = False
