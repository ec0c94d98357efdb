"""Two runs of one program beside each other: the losses, the printed text, the time."""

from __future__ import annotations

import math
import re
import statistics
from dataclasses import dataclass
from typing import Any

NEAR = 1e-3
TIMED = re.compile(
    r"time|elapsed|sec|minute|\bs/|it/s|\dms|\d ?s\b|ETA|duration|fps|SPS|0x[0-9a-f]+|version|\d\d:\d\d", re.IGNORECASE
)
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|\d+(?:e[-+]?\d+)?|nan\b|inf\b)", re.IGNORECASE)


@dataclass
class Curve:
    """How far the losses of two runs agree."""

    agreed: int  # steps before the first that differs by more than a thousandth
    common: int
    first: float  # the difference at the first step
    last: tuple[float, float]  # the means of the last tenth

    @property
    def verdict(self) -> str:
        """same, near, parts after some steps, or otherwise."""
        if self.common == 0:
            return "none"
        if self.agreed == self.common:
            return "same"
        if self.agreed >= 10:
            return "parts"
        low, high = sorted(abs(value) for value in self.last)
        return "near" if high <= 1.25 * low + 0.01 else "otherwise"


def apart(one: float, other: float) -> float:
    """Return the difference of two losses, relative where they exceed 1."""
    if math.isnan(one) or math.isnan(other):
        return 0.0 if math.isnan(one) and math.isnan(other) else math.inf
    return 0.0 if one == other else abs(one - other) / max(1.0, abs(other))


def curves(ours: list[float], theirs: list[float]) -> Curve:
    """Compare the losses of two runs."""
    pairs = list(zip(ours, theirs, strict=False))
    agreed = next((at for at, pair in enumerate(pairs) if not apart(*pair) <= NEAR), len(pairs))
    tail = pairs[-max(1, len(pairs) // 10) :]
    last = tuple(statistics.fmean(side) for side in zip(*tail, strict=True)) if tail else (0.0, 0.0)
    return Curve(agreed, len(pairs), apart(*pairs[0]) if pairs else 0.0, (last[0], last[1]))


def texts(ours: str, theirs: str) -> tuple[str, str] | None:
    """Return the first printed lines whose words or forms of numbers differ; numbers themselves may, and times."""
    for one, other in zip(ours.splitlines(), theirs.splitlines(), strict=False):
        if TIMED.search(other) or one == other:
            continue
        if _form(one) != _form(other):
            return one[:200], other[:200]
    return None


def _form(line: str) -> str:
    """Return a line with each number as its kind: whole, or with so many digits after the point up to six."""
    return re.sub(r"\s+", " ", NUMBER.sub("#", line)).strip()


def of_equal_draws(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Return the ratio of two runs with equal random numbers, if they did the same; else nothing.

    How long an episode lasts depends on what is drawn: runs as they are do not the same work in a step.
    """
    found = ratio(ours, theirs) if curves(ours["losses"], theirs["losses"]).verdict == "same" else None
    return "" if found is None else f"{found[0]:.2f} equal"


def ratio(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[float, str] | None:
    """Return the time of ours over that of theirs, and of what: the whole, or the common steps after the first ten."""
    if ours["end"] == theirs["end"] == "finished" and theirs["seconds"] > 0:
        return ours["seconds"] / theirs["seconds"], "whole"
    common = min(len(ours["times"]), len(theirs["times"]))
    start = min(10, common // 4)
    if common < 3:
        return None
    spans = [one["times"][common - 1] - one["times"][start] for one in (ours, theirs)]
    return (spans[0] / spans[1], "steps") if spans[1] > 0 else None
