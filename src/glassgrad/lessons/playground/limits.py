"""What a program may use, and where its output goes: the inside of a process of the playground.

A thread ends a process that takes too long, and on macOS too much; the server kills it a little later, if even this
thread does not come to run. Other limits are those of all lessons, in `lessons/limits.py`.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import TextIO

from glassgrad.lessons.limits import MEMORY, line_in, peak

Event = Mapping[str, object]
SECONDS, BYTES = 10.0, MEMORY
"""The limits of a run, unless a test asks for others."""
MOST_TEXT = 200_000
"""Characters of output that a run may show; the rest is left out."""
_PAUSE = 0.02  # seconds between two events of output
TIME, TOO_MUCH = 101, 102
"""Exit codes of a process that ended itself."""


class Sender:
    """Writes events as lines of JSON; a forked copy of the process writes none."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._process = os.getpid()
        self.run = 0
        self.rename = ("", "")

    def __call__(self, event: Event) -> None:
        """Send an event of the present run."""
        if os.getpid() != self._process:
            return
        text = json.dumps({**event, "run": self.run}, allow_nan=False)
        with self._lock:
            self._stream.write(f"{text.replace(*self.rename) if self.rename[0] else text}\n")
            self._stream.flush()

    @property
    def is_forked(self) -> bool:
        """Whether this process is a copy that the program made."""
        return os.getpid() != self._process


class Output(io.TextIOBase):
    """What a program sees as its output: each write is an event, up to a limit."""

    def __init__(self, send: Sender, stream: str) -> None:
        self._send = send
        self._stream = stream
        self._held: list[str] = []
        self._sent = 0
        self._last = 0.0

    encoding = "utf-8"

    def writable(self) -> bool:
        """Tell that it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Keep a text; send what is kept at most fifty times a second."""
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        room = MOST_TEXT - self._sent
        if room > 0:
            self._held.append(text[:room])
            self._sent += len(text)
            if room <= len(text):
                self._held.append("\n... more output is left out ...\n")
            if time.monotonic() - self._last > _PAUSE:
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what is kept."""
        if self._held:
            text, self._held = "".join(self._held), []
            self._last = time.monotonic()
            self._send({"event": "output", "text": text, "stream": self._stream})


class Guard:
    """Ends this process if a run takes too long, or on macOS too much."""

    def __init__(self, send: Sender) -> None:
        self._send = send
        self._until: float | None = None
        self._seconds, self._bytes = SECONDS, BYTES
        self._file = ""
        self._main = threading.get_ident()
        self._condition = threading.Condition()
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self, file: str, seconds: float, most: int) -> None:
        """Start the clock for the program of a file."""
        self._file, self._seconds, self._bytes = file, seconds, most
        self.alive()

    def alive(self) -> None:
        """Start the clock anew."""
        with self._condition:
            self._until = time.monotonic() + self._seconds
            self._condition.notify()

    def pause(self) -> None:
        """Stop the clock."""
        with self._condition:
            self._until = None

    def _watch(self) -> None:
        while True:
            with self._condition:
                self._condition.wait(0.05 if self._until is not None else None)
                late = self._until is not None and time.monotonic() > self._until
            if late:
                line = line_in(self._main, self._file)
                place = "" if line is None else f", in line {line}"
                self._end(TIME, "time", f"stopped after {self._seconds:g} s{place}")
            if sys.platform == "darwin" and self._until is not None and peak() > self._bytes:
                self._end(TOO_MUCH, "memory", f"stopped: it took more than {self._bytes >> 20:,} MB")

    def _end(self, code: int, reason: str, message: str) -> None:
        self._send({"event": "stopped", "reason": reason, "message": message})
        os._exit(code)
