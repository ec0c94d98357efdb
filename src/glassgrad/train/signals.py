"""Stop a run from outside: the first signal requests it, the second interrupts, and neither interrupts a save."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Self

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # those that the system has; the last is Ctrl-Break on Windows


class StopSignals:
    """While entered, Ctrl-C, SIGTERM and SIGHUP set `requested` to their number instead of ending the process.

    The loop checks `requested` after every step. A second signal raises `KeyboardInterrupt` at once, since a step may
    take long. While a file is being saved (`protected`), it raises only when the file is complete. Outside the main
    thread Python delivers no signals, so no handlers are installed; use `request` to stop.

    Example:
        >>> from glassgrad.train import StopSignals
        >>> with StopSignals() as signals:
        ...     signals.requested
        0
    """

    def __init__(self) -> None:
        self.requested = 0
        self.at_once = False
        """Raise at the first signal: for work after the last save, which can be interrupted without loss."""
        self.by_file = False
        """Whether a file in the run directory requested the stop, and not a signal to the process."""
        self._expected = 0  # a signal that another rank has already received
        self._depth = 0
        self._overdue = False
        self._former: dict[int, Any] = {}

    def request(self, number: int = signal.SIGINT) -> None:
        """Ask the loop to save and stop after its current step."""
        self.requested = self.requested or int(number)

    def join(self, number: int) -> None:
        """Stop because another rank received a signal; if it arrives here later, it counts as the first."""
        self._expected = number
        self.request(number)

    def look_for(self, file: Path) -> None:
        """Ask the loop to stop if a file exists, and remove the file if possible."""
        if self.requested or not file.exists():
            return
        with contextlib.suppress(OSError):
            file.unlink()
        self.by_file = True
        self.request(signal.SIGTERM)

    @contextlib.contextmanager
    def protected(self) -> Iterator[None]:
        """Defer interruption until the end of the block."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._overdue and not self._depth:
            self._overdue = False
            raise KeyboardInterrupt

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if number == self._expected:
            self._expected = 0
            return
        insist = self.at_once or bool(self.requested)
        self.requested = self.requested or number
        if insist and self._depth:
            self._overdue = True
        elif insist:
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for name in _NAMES:
                number = getattr(signal, name, None)
                # A signal that is already ignored (by nohup) stays ignored.
                if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                    self._former[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former.clear()


__all__ = ["StopSignals"]
