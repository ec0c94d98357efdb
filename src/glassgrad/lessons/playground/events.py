"""What goes between the server and a process that runs programs: requests, and events as lines of JSON."""

from __future__ import annotations

import io
import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from glassgrad.lessons.limits import MEMORY

Event = Mapping[str, object]
SECONDS, BYTES = 10.0, MEMORY
"""The limits of a run, unless a test asks for others."""
PANES = ("values", "graph", "backward", "derivation", "check", "kernels", "cost", "doctor")
MOST_TEXT = 200_000
"""Characters of output that a run may show; the rest is left out."""
_PAUSE = 0.02  # seconds between two events of output


@dataclass(frozen=True)
class Request:
    """A run that is asked for.

    Attributes:
        text: the program.
        panes: the names of the panes to compute.
        run: its number, which every event repeats.
        name, folder: of the program's file, beside which it may import others.
        seconds, most: its limits: time without progress, and bytes.
    """

    text: str
    panes: list[str]
    run: int = 0
    name: str = "playground.py"
    folder: str = ""
    seconds: float = SECONDS
    most: int = BYTES


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
        if self.is_forked:
            return
        text = json.dumps({**event, "run": self.run}, allow_nan=False)
        with self._lock:
            self._stream.write(f"{text.replace(*self.rename) if self.rename[0] else text}\n")
            self._stream.flush()

    @property
    def is_forked(self) -> bool:
        """Whether this process is a copy that the program made."""
        return os.getpid() != self._process


class Output(io.StringIO):
    """What a program sees as its output: each write is an event, up to a limit."""

    def __init__(self, send: Sender, stream: str) -> None:
        super().__init__()
        self._send = send
        self._stream = stream
        self._room = MOST_TEXT
        self._last = 0.0

    def write(self, text: str) -> int:
        """Keep a text; send what is kept at most fifty times a second."""
        super().write(text[: self._room])
        if 0 < self._room <= len(text):
            super().write("\n... more output is left out ...\n")
        self._room = max(self._room - len(text), 0)
        if time.monotonic() - self._last > _PAUSE:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what is kept."""
        if text := "" if self.closed else self.getvalue():
            self.seek(0)
            self.truncate()
            self._last = time.monotonic()
            self._send({"event": "output", "text": text, "stream": self._stream})

    def close(self) -> None:
        """Send what is kept; more cannot be written."""
        self.flush()
        super().close()
