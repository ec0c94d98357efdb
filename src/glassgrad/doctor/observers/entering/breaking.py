"""Find the line of a model at which the values of an example begin to depend on the others, or those of a place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor import library
from glassgrad.doctor.library import Array

FAR = 1e-3
"""The change of a value relative to the largest one, above any rounding."""
_MOST = 1 << 25
"""The number of numbers that are kept of a call."""
Kept = tuple[str, Array]


class Lines:
    """Keeps the tensors that each line of the user's functions binds to a name or returns, in their order.

    Attributes:
        found: the user's line of each tensor, and its numbers.
    """

    def __init__(self) -> None:
        self.found: list[Kept] = []
        self._room = _MOST
        self._bound: dict[FrameType, dict[str, object]] = {}
        self._line: dict[FrameType, int] = {}

    def of(self, call: Callable[[], object]) -> list[Kept]:
        """Return what the lines of a call made. A debugger that follows the program goes on behind it."""
        before = sys.gettrace()
        sys.settrace(self._enters)
        try:
            call()
        finally:
            sys.settrace(before)
        return self.found

    def _enters(self, frame: FrameType, event: str, value: object) -> Callable[..., Any] | None:
        file = frame.f_code.co_filename
        if provenance.is_internal(file) or "-packages" in file or file.startswith(("<frozen", "<string")):
            return None
        self._bound[frame], self._line[frame] = dict(frame.f_locals), frame.f_lineno
        return self._goes_on

    def _goes_on(self, frame: FrameType, event: str, value: object) -> Callable[..., Any]:
        bound, line = dict(frame.f_locals), f"{provenance.shorten(frame.f_code.co_filename)}:{self._line[frame]}"
        before = self._bound[frame]
        made = [one for name, one in bound.items() if before.get(name) is not one]
        self._keep(line, [*made, value] if event == "return" else made)
        self._bound[frame], self._line[frame] = bound, frame.f_lineno
        return self._goes_on

    def _keep(self, line: str, values: Sequence[object]) -> None:
        for one in values:
            for part in one if isinstance(one, tuple | list) else [one]:
                is_tensor = library.is_tensor(part) and hasattr(part, "shape")
                numbers = library.numbers(part) if is_tensor else None
                if numbers is not None and numbers.size <= self._room:
                    self.found.append((line, numbers.copy()))  # before it is written to
                    self._room -= numbers.size


def first_line(run: Callable[[Array], object], inputs: Array, cases: Sequence[Array], axis: int) -> str:
    """Return the user's line whose value for an example is the first to change with the other examples.

    Args:
        run: calls the model.
        inputs: a batch; `axis` is that of its examples, or of places whose first half must not see the second.
        cases: other examples in the second half of the batch and, if its order must not matter, its examples moved on
            by one place.

    Returns:
        "file.py:12", or "" if no line of the user's shows it.
    """
    count = inputs.shape[axis]
    runs: list[list[Kept]] = [Lines().of(partial(run, given)) for given in (inputs, *cases)]
    for kept in zip(*runs, strict=False):
        line: str = kept[0][0]
        before = kept[0][1]
        if any(other != line or one.shape != before.shape for other, one in kept):
            return ""  # another branch was taken
        if not _is_separate(before, [one for _, one in kept[1:]], count):
            return line
    return ""


def _is_separate(before: Array, after: Sequence[Array], count: int) -> bool:
    """Tell whether each example has its own part of a value, or no example any."""
    if before.dtype.kind not in "fiub" or all(_is_near(before, one) for one in after):
        return True
    return any(all(_follows(before, one, by, at) for at, one in enumerate(after)) for by in _orders(before, count))


def _orders(value: Array, count: int) -> Iterator[Callable[[Array], Array]]:
    """Yield functions that bring the axis of the examples to the front, for each axis that may hold it."""
    for axis, length in enumerate(value.shape):
        if length % count == 0 and length:
            rest = length // count
            head, tail = value.shape[:axis], value.shape[axis + 1 :]
            for inner, at in ((count, rest), axis), ((rest, count), axis + 1):
                yield partial(_by_example, shape=(*head, *inner, *tail), axis=at)


def _by_example(value: Array, shape: tuple[int, ...], axis: int) -> Array:
    return np.moveaxis(value.reshape(shape), axis, 0)


def _follows(before: Array, after: Array, by: Callable[[Array], Array], case: int) -> bool:
    """Tell whether the examples that are the same kept their values (case 0), or moved on with them (case 1)."""
    one, other = by(before), by(after)
    half = len(one) // 2
    return _is_near(one[:half], other[:half]) if case == 0 else _is_near(np.roll(one, 1, axis=0), other)


def _is_near(one: Array, other: Array) -> bool:
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    with np.errstate(invalid="ignore"):
        far = np.abs(one - other)
    far = far[np.isfinite(far)]
    return not far.size or float(far.max()) <= FAR * max(float(np.abs(one[np.isfinite(one)]).max(initial=0)), 1e-30)
