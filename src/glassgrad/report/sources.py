"""Data for a picture from all kinds of sources, and the choice of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.doctor.monitor import GradientMonitor
from glassgrad.doctor.record import MonitorData
from glassgrad.doctor.watching import Watch


def data_of(source: Any, owner: str) -> MonitorData:
    """Return the data of a monitor or a watch, of its file, or of a model's current gradients."""
    if isinstance(source, str | Path):
        source = MonitorData.load(source)
    elif isinstance(source, GradientMonitor | Watch):
        source = source.data
    elif hasattr(source, "named_parameters"):
        monitor = GradientMonitor(source, activations=False)
        monitor.update()
        source = monitor.data
    if not isinstance(source, MonitorData):
        raise errors.PICTURE_SOURCE(owner=owner, given=type(source).__name__)
    if not len(source):
        raise errors.PICTURE_EMPTY(owner=owner, reason="no step was sampled", next="call monitor.update() in each step")
    return source


def chosen(names: Sequence[str], wanted: Sequence[str] | str | None, owner: str, what: str) -> list[int]:
    """Return the positions of the wanted names, given as names or patterns such as "*.weight"; None for all.

    Raises `ArgumentError` if one matches nothing.
    """
    if wanted is None:
        return list(range(len(names)))
    places = []
    for pattern in [wanted] if isinstance(wanted, str) else wanted:
        found = [place for place, name in enumerate(names) if name == pattern or fnmatchcase(name, pattern)]
        if not found:
            shown = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
            raise errors.PICTURE_NAMES(owner=owner, what=what, given=pattern, known=shown)
        places += [place for place in found if place not in places]
    return places


FEW = 12
"""The largest number of parameters of which all are drawn; beyond, too many lines to distinguish, only matrices are."""


def matrices_of_many(data: MonitorData, places: list[int], named: bool) -> list[int]:
    """Return only the matrices if there are more than `FEW` parameters and the user named none; else all."""
    if named or len(places) <= FEW:
        return places
    return [place for place in places if data.dims[place] > 1] or places


def evenly(places: list[int], most: int) -> list[int]:
    """Return at most `most` of the places, evenly spaced."""
    if len(places) <= most:
        return places
    return [places[at] for at in np.linspace(0, len(places) - 1, most).round().astype(int)]


def at_step(data: MonitorData, step: int | None) -> int:
    """Return the position of the last sample, or of the last one up to and including a step."""
    if step is None:
        return len(data) - 1
    return max(int((data.steps <= step).sum()) - 1, 0)
