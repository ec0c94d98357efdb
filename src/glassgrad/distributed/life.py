"""Observe whether the main thread of this process makes progress, and where it is."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

from glassgrad.base import provenance
from glassgrad.engine.reports import announced

_CLOSE = 0.025  # seconds between two samples of a main thread that may be in an endless loop
_SELDOM = 0.25  # seconds between samples while it reaches collectives
_FEW = 8  # at most this many instructions of one function count as a loop
_STANDARD = str(Path(os.__file__).parent) + os.sep


class Life:
    """The progress of the main thread, measured by its place in the program, processor time, or bytes of files.

    A thread that computes may still be in an endless loop; `look` detects this.
    """

    def __init__(self) -> None:
        self._main = threading.main_thread().ident or 0
        self._place: tuple[int, int] = (0, 0)
        self._spent = 0.0
        self._since = time.monotonic()
        self._checked = self._since
        self._passed = -1
        self._round: FrameType | None = None
        self._seen: set[int] = set()
        self._round_since = self._since
        self._looks = (0, 0.0)  # the sampling thread, and the processor time that it has used

    def look(self, passed: int) -> float:
        """Check whether the main thread is still in the same call of a function, at only a few of its instructions.

        A thread that makes progress will sooner or later be seen in another function, or in another call of the same
        one. The frame object is kept, so that a later call cannot be mistaken for it.

        Args:
            passed: the number of collectives that this rank has reached.

        Returns:
            The number of seconds until the next look.
        """
        self._looks = (threading.get_ident(), time.thread_time())
        frame = sys._current_frames().get(self._main)
        now = time.monotonic()
        if passed != self._passed or announced.NOW:
            self._passed, self._round, self._round_since = passed, None, now
            return _SELDOM
        if frame is not self._round or len(self._seen | {frame.f_lasti if frame else 0}) > _FEW:
            self._round, self._seen, self._round_since = frame, set(), now
        if frame is not None:
            self._seen.add(frame.f_lasti)
        return _CLOSE

    def signs(self) -> dict[str, object]:
        """Return the seconds in which the main thread has made no progress, and its place in the code."""
        frame = sys._current_frames().get(self._main)
        now = time.monotonic()
        place = (id(frame), frame.f_lasti) if frame is not None else (0, 0)
        spent = time.process_time() - self._watching() + _of_children_and_files()
        if place != self._place or spent - self._spent > 0.02 * (now - self._checked):
            self._since = now
        self._place, self._spent, self._checked = place, spent, now
        if announced.NOW:
            self._since = now
        circling = now - self._round_since if self._round is not None else 0.0
        return {"idle": round(now - self._since, 2), "circling": round(circling, 2), "at": _shown(frame)}

    def _watching(self) -> float:
        """Return the processor time of the watching threads, which does not count as progress."""
        looker, spent = self._looks
        return time.thread_time() + (spent if looker != threading.get_ident() else 0.0)


def _of_children_and_files() -> float:
    """Return the processor seconds of child processes, such as a loader's, plus 1 per MB read or written."""
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
    """Return the user's line that the main thread is in; the innermost line if there is none."""
    inner = frame
    while frame is not None and _is_of_a_library(frame.f_code.co_filename):
        frame = frame.f_back
    frame = frame or inner
    if frame is None:
        return "its end"
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
