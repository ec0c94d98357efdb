"""Judge clipping of gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from glassgrad.lessons.exercise import Answer, Steps, Verdict
from glassgrad.lessons.hints import close, judged

STEPS = Steps()


def _model() -> list[Any]:
    return [np.array([[3.0, -4.0], [0.0, 12.0]]), np.array([84.0])]  # lengths 13 and 84, together 85


def _arrays(found: object, name: str, gradients: list[Any]) -> Verdict:
    """Return what is wrong with the form of a result."""
    if not isinstance(found, list | tuple):
        return f"{name} is of type {type(found).__name__}, expected a list of arrays: is a `return` missing?"
    if len(found) != len(gradients):
        return f"{name} has {len(found)} arrays, expected {len(gradients)}: one for each that was given."
    return None


def _flat(arrays: Any) -> Any:
    return np.concatenate([np.ravel(one) for one in arrays])


@STEPS("clipping by norm", section="Two kinds")
def _norm(clip_by_norm: Answer) -> Iterator[Verdict]:
    gradients = _model()
    found = clip_by_norm(gradients, 17.0)
    yield _arrays(found, "clip_by_norm(gradients, 17.0)", gradients)
    flat = _flat(_model())
    if not close(_flat(gradients), flat):
        yield "The given arrays were changed. Somebody else may still need them: make new ones."
    each = np.concatenate([_flat([one]) * min(1.0, 17.0 / np.linalg.norm(one)) for one in _model()])
    yield judged(
        _flat(found),
        flat * 0.2,
        (each, "Each array was clipped by itself. The norm is taken over all of them, so that proportions survive."),
        (np.clip(flat, -17, 17), "That is by value: it turns the gradient. By norm, all entries are scaled alike."),
        (flat / 85.0, "Its length is 1 now; `limit` is the length that is wanted."),
        (flat * 17.0 / 85.0**2, "It is divided by the square of the length. A root is missing."),
        (
            flat * 17.0 / np.abs(flat).max(),
            "It is divided by the largest entry. The length is the root of the sum of squares.",
        ),
        (
            flat * 17.0 / np.abs(flat).sum(),
            "It is divided by the sum of the entries. The length is the root of the sum of squares.",
        ),
        (flat, "It is as long as before, 85."),
        what="the clipped gradient",
    )


@STEPS("short gradients", section="Two kinds", gaps=("clip_by_norm",))
def _short(clip_by_norm: Answer) -> Iterator[Verdict]:
    short = [np.array([0.3, 0.0]), np.array([[0.4]])]
    found = clip_by_norm([one.copy() for one in short], 1.0)
    yield _arrays(found, "clip_by_norm(gradients, 1.0)", short)
    if [np.shape(one) for one in found] != [one.shape for one in short]:
        yield "The arrays have other shapes than before."
    yield judged(
        _flat(found),
        _flat(short),
        (_flat(short) * 2, "A gradient shorter than the limit was made longer. Leave it as it is."),
        what="a gradient of length 0.5, clipped to 1,",
        tolerance=1e-12,
    )


@STEPS("a gradient of zeros", section="Two kinds", gaps=("clip_by_norm",))
def _zeros(clip_by_norm: Answer) -> Iterator[Verdict]:
    found = clip_by_norm([np.zeros(2), np.zeros((1, 3))], 1.0)
    yield _arrays(found, "clip_by_norm(zeros, 1.0)", [0, 0])
    if np.isnan(_flat(found)).any():
        yield "0 / 0: a gradient of zeros has length 0, and dividing by it gives nan."
    yield judged(_flat(found), np.zeros(5), what="a gradient of zeros, clipped,")


@STEPS("clipping by value", section="Two kinds")
def _value(clip_by_value: Answer) -> Iterator[Verdict]:
    gradients = _model()
    found = clip_by_value(gradients, 3.5)
    yield _arrays(found, "clip_by_value(gradients, 3.5)", gradients)
    flat = _flat(_model())
    if not close(_flat(gradients), flat):
        yield "The given arrays were changed. Somebody else may still need them: make new ones."
    yield judged(
        _flat(found),
        np.clip(flat, -3.5, 3.5),
        (np.minimum(flat, 3.5), "Large negative entries are cut too: the range is from -limit to limit."),
        (np.abs(np.clip(flat, -3.5, 3.5)), "The signs are gone."),
        (np.clip(flat, 0, 3.5), "The range begins at -limit, not at 0."),
        (flat * 3.5 / 85, "That is by norm. By value, every entry is cut by itself."),
        what="the clipped gradient",
    )


@STEPS("the angle", section="Two kinds")
def _angle(angle: Answer) -> Iterator[Verdict]:
    first, second = [np.array([3.0, 0.0]), np.array([[0.0]])], [np.array([2.0, 2.0]), np.array([[0.0]])]
    yield judged(
        angle(first, second),
        45.0,
        (np.pi / 4, "That is in radians; degrees are asked for."),
        (np.sqrt(0.5), "That is the cosine of the angle."),
        (6.0, "That is the product of the two. Which part of it is due to their lengths?"),
        what="angle([3, 0, 0], [2, 2, 0])",
    )
    if not close(angle([np.array([0.1, 0.2]), np.array([0.3])], [np.array([0.3, 0.6]), np.array([0.9])]), 0.0, 1e-4):
        yield "Gradients in the same direction should be at 0 degrees; rounding can bring a cosine above 1."
    yield judged(angle(first, [np.array([0.0, 0.0]), np.array([[4.0]])]), 90.0, what="angle([3, 0, 0], [0, 0, 4])")


@STEPS("usable gradients", section="What it does not do")
def _usable(usable: Answer) -> Verdict:
    cases = (
        ([np.ones(3), np.ones((2, 2))], True, "ordinary numbers"),
        ([np.ones(3), np.array([1.0, np.nan])], False, "a nan in the last array"),
        ([np.array([np.nan, 1.0]), np.ones(3)], False, "a nan in the first array"),
        ([np.array([1.0, np.inf])], False, "an infinity"),
        ([np.array([np.inf, -np.inf])], False, "two infinities of opposite sign"),
        ([np.zeros(2)], True, "zeros"),
        ([np.array([1e200, 1e200])], True, "large numbers, whose squares overflow"),
    )
    for gradients, right, words in cases:
        found = usable(gradients)
        if found is None:
            return "usable(gradients) is None: is a `return` missing?"
        if np.ndim(found):
            return "usable(gradients) is an array, expected one answer for all entries of all arrays."
        if bool(found) is not right:
            return f"usable is {bool(found)} for {words}."
    return None
