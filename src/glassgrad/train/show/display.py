"""Showing a run: lines when the output is a pipe or a file, a live display when it is a terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import IO

from glassgrad.train.show.progress import Progress, duration, number, speed

_SILENCE = 10.0
"""Seconds after which a line is printed even between milestones."""


class Display:
    """The display of a training loop; this one shows nothing."""

    def start(self, progress: Progress) -> None:
        """Training begins."""

    def update(self, progress: Progress) -> None:
        """Called about ten times a second."""

    def milestone(self, progress: Progress) -> None:
        """The validation loss was evaluated."""

    def stop(self) -> None:
        """Training is over for now, also after an error. May be called twice."""

    def say(self, text: str = "") -> None:
        """Print permanent text."""


class PlainDisplay(Display):
    """One line per milestone, and some in between.

    `on_closed` is called once when the output is closed (the reader of a pipe has ended).
    """

    def __init__(self, output: IO[str], on_closed: Callable[[], None] = lambda: None) -> None:
        self._output = output
        self._on_closed = on_closed
        self._closed = False
        self._last_line = 0.0

    def start(self, progress: Progress) -> None:
        self._last_line = time.monotonic()

    def update(self, progress: Progress) -> None:
        if time.monotonic() - self._last_line >= _SILENCE:
            self.milestone(progress)

    def milestone(self, progress: Progress) -> None:
        width = len(f"{progress.steps:,}")
        self.say(
            f"step {progress.step:{width},} / {progress.steps:,}"
            f"   loss {number(progress.loss)}   {progress.held_out} {progress.measured}"
            f"   {speed(progress.steps_per_second)}   {duration(progress.seconds_left)} left"
        )
        self._last_line = time.monotonic()

    def say(self, text: str = "") -> None:
        if self._closed:
            return
        try:
            print(text, file=self._output, flush=True)
        except OSError:
            self._closed = True
            silence(self._output)
            self._on_closed()


def silence(output: IO[str]) -> None:
    """Discard the buffer of a closed output, so that Python does not complain about it at exit."""
    try:
        descriptor = output.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
