"""Whether the main thread of this process gets on, and where it is."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

from glassgrad import provenance

_STANDARD = str(Path(os.__file__).parent) + os.sep


class Life:
    """Whether the main thread gets on: another place in the program, processor time, or bytes of files."""

    def __init__(self) -> None:
        self._main = threading.main_thread().ident or 0
        self._place: tuple[int, int] = (0, 0)
        self._spent = 0.0
        self._since = time.monotonic()
        self._checked = self._since

    def signs(self) -> dict[str, object]:
        """Return for how long nothing has happened, and where the main thread is."""
        frame = sys._current_frames().get(self._main)
        now = time.monotonic()
        place = (id(frame), frame.f_lasti) if frame is not None else (0, 0)
        spent = time.process_time() - time.thread_time() + _of_children_and_files()
        if place != self._place or spent - self._spent > 0.02 * (now - self._checked):
            self._since = now
        self._place, self._spent, self._checked = place, spent, now
        return {"idle": round(now - self._since, 2), "at": _shown(frame)}


def _of_children_and_files() -> float:
    """Return the seconds that child processes have computed, those of a loader, and 1 for each MB of files."""
    total = 0.0
    with suppress(OSError, ValueError, AttributeError):
        ticks = os.sysconf("SC_CLK_TCK")
        for task in Path("/proc/self/task").glob("*/children"):
            for child in task.read_text(encoding="ascii").split():
                with suppress(OSError):
                    fields = (
                        Path(f"/proc/{child}/stat")
                        .read_text(encoding="utf-8", errors="replace")
                        .rpartition(")")[2]
                        .split()
                    )
                    total += (int(fields[11]) + int(fields[12])) / ticks
        for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines():
            name, _, count = line.partition(":")
            if name in {"read_bytes", "write_bytes"}:
                total += int(count) / 1e6
    return total


def _is_of_a_library(file: str) -> bool:
    return provenance.is_internal(file) or file.startswith((_STANDARD, "<frozen"))


def _shown(frame: FrameType | None) -> str:
    """Return the user's line that the main thread is in; the innermost where there is none."""
    inner = frame
    while frame is not None and _is_of_a_library(frame.f_code.co_filename):
        frame = frame.f_back
    frame = frame or inner
    if frame is None:
        return "its end"
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
