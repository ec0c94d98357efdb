"""Score the outputs of passes without gradients: their targets are looked for among the user's variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FrameType, ModuleType

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor import library
from glassgrad.doctor.library import Array
from glassgrad.doctor.observers.entering.compared import targets
from glassgrad.doctor.parts import Score
from glassgrad.doctor.scores import score

_PASSES, _FRAMES, _ROWS, _BYTES = 24, 3, 256, 8 << 20
"""The passes and the frames that are looked at, the examples of a pass, and the bytes that are kept."""
_TARGETS = re.compile(r"(^|_)(ys?|yb|yt|t|gt|truth|class(es)?|answers?)(\d|_|$)|label|target", re.IGNORECASE)
_OTHERS = re.compile(r"pred|out|logit|idx|index|order|perm|rows?$|mask|weight|prob|score", re.IGNORECASE)
Variables = list[tuple[str, Array]]


class Held:
    """The scores of passes without gradients, with some of their examples.

    Attributes:
        scores: (step, kind, score); `examples`: inputs and targets of the passes.
    """

    def __init__(self) -> None:
        self.scores: list[Score] = []
        self.examples: list[tuple[Array, Array]] = []
        self._passes, self._room = 0, _BYTES

    @property
    def full(self) -> bool:
        """Whether enough passes were checked."""
        return self._passes >= _PASSES

    def look(self, step: int, frame: FrameType, inputs: Array, output: Array, kind: str) -> None:
        """Look for the targets of a pass from `frame` outward, if training has targets of a kind."""
        if self.full or not kind or len(inputs) != len(output) or len(inputs) < 4:
            return
        self._passes += 1
        read = (one.reshape(-1) if kind == "classes" else one for one in targets(frame))
        found = next((one for one in read if _is_target(one, output, kind)), None)
        if found is None and kind != "numbers":  # predictions may be scaled back before they are compared
            found = _fitting(list(_variables(frame)), inputs, output, kind)
        if found is None:
            return
        value = score(output, found, kind)
        if np.isfinite(value):
            self.scores.append(Score(step, kind, value))
            if self._room > 0 and inputs.ndim > 1:
                rows = inputs[:_ROWS].reshape(min(len(inputs), _ROWS), -1)
                self._room -= rows.nbytes
                self.examples.append((rows.copy(), found[:_ROWS].copy()))


def of_training(frame: FrameType | None, inputs: Array, output: Array) -> tuple[str, Array] | None:
    """Return the kind and the targets of a training step from the user's variables, if its loss does not define them.

    This finds only classes and signs, because any variable could be the target of a regression.
    """
    if frame is None or len(inputs) != len(output) or len(inputs) < 4 or output.dtype.kind != "f":
        return None
    variables = list(_variables(frame))
    beside = list(_beside(variables, inputs))
    known = [(name, _plain(one, output)) for name, one in beside]
    found = _best(known, output, "classes")
    if found is not None and found.max() + 1 == output.shape[1]:
        return "classes", found
    bounded = output.min() < 0 < output.max() or (output.min() >= 0 and 0.5 < output.max() <= 1)
    found = _best(known, output, "binary") if bounded else None
    if found is None and bounded:  # accept signs under any name if there are no classes
        signs = [_plain(one, output).reshape(-1) for _, one in beside if _is_of_signs(one, output)]
        found = signs[0] if signs and all(np.array_equal(one, signs[0]) for one in signs) else None
    return None if found is None else ("binary", found)


def _plain(target: Array, output: Array) -> Array:
    """Return class numbers for one-hot rows, and zeros and ones for signs."""
    if target.shape == output.shape and target.ndim == 2 and target.shape[1] > 1:
        one_of_each = np.isin(target, (0, 1)).all() and (target.sum(1) == 1).all()
        return target.argmax(1) if one_of_each else target
    return (target > 0).astype(np.float32) if _is_of_signs(target, output) else target


def _is_of_signs(target: Array, output: Array) -> bool:
    signs = target.dtype.kind in "if" and target.size == output.size and bool(np.isin(target, (-1, 1)).all())
    return signs and target.min() != target.max()


def _beside(variables: Variables, inputs: Array) -> Iterator[tuple[str, Array]]:
    """Yield variables with a value for each example, and the rows that an index selects from longer variables."""
    yield from ((name, one) for name, one in variables if len(one) == len(inputs))
    indices = [one for _, one in variables if one.ndim == 1 and one.dtype.kind in "iu" and len(one) == len(inputs)]
    wholes = [one for _, one in variables if one.shape[1:] == inputs.shape[1:] and len(one) > len(inputs)]
    for rows in indices:
        for whole in wholes:
            fits = rows.min() >= 0 and rows.max() < len(whole)
            if fits and np.array_equal(whole[rows[:2]], inputs[:2]) and np.array_equal(whole[rows], inputs):
                yield from ((name, one[rows]) for name, one in variables if len(one) == len(whole))
                return


def _variables(frame: FrameType | None) -> Iterator[tuple[str, Array]]:
    """Yield the arrays among the variables of a frame and of those that called it, the inner ones first."""
    seen: set[int] = set()
    left = _FRAMES
    while frame is not None and left:
        if not provenance.is_internal(frame.f_code.co_filename):
            left -= 1
            for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
                if id(value) not in seen and not isinstance(value, ModuleType) and hasattr(value, "shape"):
                    seen.add(id(value))
                    array = library.numbers(value)
                    if array is not None and array.ndim and array.dtype.kind in "fiub":
                        yield name, array
        frame = frame.f_back


def _fitting(variables: Variables, inputs: Array, output: Array, kind: str) -> Array | None:
    """Return the targets of a batch: a variable of its length, or the rows of a longer one beside its inputs."""
    direct = [(name, value) for name, value in variables if len(value) == len(inputs)]
    found = _best(direct, output, kind)
    if found is not None:
        return found
    for _, whole in variables:
        begin = _begin_of(inputs, whole)
        if begin is not None:
            parts = [(name, one[begin : begin + len(inputs)]) for name, one in variables if len(one) == len(whole)]
            return _best(parts, output, kind)
    return None


def _begin_of(inputs: Array, whole: Array) -> int | None:
    """Return the first row of a batch in a larger array, if its rows follow one another there."""
    if whole.shape[1:] != inputs.shape[1:] or len(whole) <= len(inputs) or whole.dtype != inputs.dtype:
        return None
    first = inputs[0].reshape(-1)
    flat = whole.reshape(len(whole), -1)
    for begin in np.flatnonzero(flat[:, 0] == first[0])[:64]:
        same = begin + len(inputs) <= len(whole) and np.array_equal(flat[begin], first)
        if same and np.array_equal(whole[begin + len(inputs) - 1], inputs[-1]):
            return int(begin)
    return None


def _best(candidates: Variables, output: Array, kind: str) -> Array | None:
    """Return the candidate that looks like targets of these outputs; None if that is not certain."""
    fits = [(name, value) for name, value in candidates if not _OTHERS.search(name) and _is_target(value, output, kind)]
    named = [value for name, value in fits if _TARGETS.search(name)]
    if not named or not all(np.array_equal(one, named[0]) for one in named[1:]):
        return None
    return named[0] if kind == "numbers" else named[0].reshape(-1)


def _is_target(value: Array, output: Array, kind: str) -> bool:
    if kind == "classes":
        whole = value.dtype.kind in "iu" and value.size == len(output) and output.ndim == 2
        return whole and value.min() >= 0 and value.max() < output.shape[1] and value.min() != value.max()
    if value.size != output.size or value.min() == value.max():
        return False
    return bool(np.isin(value, (0, 1)).all()) if kind == "binary" else value.dtype.kind == "f" and value is not output
