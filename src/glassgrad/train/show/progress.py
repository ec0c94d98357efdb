"""The progress of a run, as plain data and as text, without terminal code."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

_RECENT_SECONDS = 5.0


@dataclass(frozen=True)
class Progress:
    """A run at one moment. `loss` is the mean over the last logged window, `validation_loss` the last one measured."""

    step: int
    steps: int
    loss: float | None
    validation_loss: float | None
    steps_per_second: float | None
    history: Sequence[float] = ()
    held_out: str = "validation"
    accuracy: float | None = None

    @property
    def fraction(self) -> float:
        """Fraction of the steps that are done."""
        return self.step / self.steps if self.steps else 1.0

    @property
    def measured(self) -> str:
        """The last validation in words."""
        return number(self.validation_loss) + ("" if self.accuracy is None else f" ({self.accuracy:.2%})")

    @property
    def seconds_left(self) -> float | None:
        """Time left at the current speed."""
        if not self.steps_per_second:
            return None
        return (self.steps - self.step) / self.steps_per_second


class Speedometer:
    """Steps per second over the last few seconds, so it follows pauses and changes of load."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def mark(self, seconds: float, step: int) -> float | None:
        """Record a time and its step; return the speed, or None if there is too little data."""
        self._marks.append((seconds, step))
        while seconds - self._marks[0][0] > _RECENT_SECONDS and len(self._marks) > 2:
            self._marks.popleft()
        first_seconds, first_step = self._marks[0]
        if seconds - first_seconds < 0.05 or step == first_step:
            return None
        return (step - first_step) / (seconds - first_seconds)


class History:
    """The history of a number over a run of any length, with a bounded number of points."""

    _MOST = 256

    def __init__(self, values: Sequence[float] = ()) -> None:
        self.points: list[float] = []
        self._merged = 1
        self._pending: list[float] = []
        for value in values:
            self.add(value)

    def add(self, value: float) -> None:
        """Append a value; if there are too many points, average neighbours into one."""
        self._pending.append(value)
        if len(self._pending) < self._merged:
            return
        self.points.append(sum(self._pending) / len(self._pending))
        self._pending.clear()
        if len(self.points) >= self._MOST:
            self.points = [(left + right) / 2 for left, right in zip(self.points[::2], self.points[1::2], strict=True)]
            self._merged *= 2


def sparkline(values: Sequence[float], width: int, levels: str = "▁▂▃▄▅▆▇█") -> str:
    """Draw values as one line of characters, on a logarithmic scale if they allow it (losses fall steeply at first).

    Example:
        >>> sparkline([1, 2, 4, 8], 4)
        '▁▃▆█'
    """
    if not values or width < 1:
        return ""
    if min(values) > 0:
        values = [math.log(value) for value in values]
    count = min(width, len(values))
    edges = [round(place * len(values) / count) for place in range(count + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(levels) - 1) / (high - low) if high > low else 0.0
    return "".join(levels[round((mean - low) * scale)] for mean in means)


def duration(seconds: float | None) -> str:
    """Format a time for people.

    Example:
        >>> duration(7), duration(4000), duration(None)
        ('0:07', '1:06:40', '-:--')
    """
    if seconds is None:
        return "-:--"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def speed(steps_per_second: float | None) -> str:
    """Format a speed with its meaningful digits."""
    if steps_per_second is None:
        return "- steps/s"
    return f"{steps_per_second:,.0f} steps/s" if steps_per_second >= 10 else f"{steps_per_second:.1f} steps/s"


def number(value: float | None) -> str:
    """Format a loss, or a dash if there is none."""
    return "-" if value is None else f"{value:.4f}"
