"""Numerical slopes of a function of one number, with its noise, kinks and jumps.

A difference quotient has two errors: truncation, which shrinks with the step, and noise, which grows as the step
shrinks. Both are measured, to distinguish a disagreement from noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from glassgrad.verify.verdict import KINK, NOISE, RIGHT, WRONG

Array = Any
STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
# One 4th difference of values with independent errors of variance s**2 has the variance 70 s**2.
_FOURTH = (1.0, -4.0, 6.0, -4.0, 1.0)
_FOURTH_NORM = 70.0


@dataclass(frozen=True)
class Tolerance:
    """The criterion of equality: |a - n| <= absolute + relative * |n|."""

    absolute: float
    relative: float

    def of(self, numeric: Array) -> Array:
        return self.absolute + self.relative * np.abs(numeric)


class Line:
    """A function along one direction: ``moved(t)`` returns (results as a flat array, the t after rounding)."""

    def __init__(
        self, moved: Callable[[float], tuple[Array, float]], weights: Array, scale: float, spacing: float
    ) -> None:
        self.moved = moved
        self.weights = weights  # one row per combination of results to check
        self.scale = scale
        self.spacing = spacing  # the relative distance of adjacent floats
        self._known: dict[float, tuple[Array, float]] = {}

    def scaled(self, scale: float) -> Line:
        """Return the same line with scaled steps."""
        line = Line(self.moved, self.weights, scale, self.spacing)
        line._known = self._known
        return line

    def at(self, t: float) -> tuple[Array, float]:
        if t not in self._known:
            self._known[t] = self.moved(t)
        return self._known[t]

    def slopes(self, step: float) -> tuple[Array, Array, Array]:
        """Return the central, left and right difference quotients, one number per row of the weights."""
        h = step * self.scale
        (ahead, forth), (here, _), (behind, back) = self.at(h), self.at(0.0), self.at(-h)
        right = self.combine(ahead - here) / forth
        left = self.combine(here - behind) / -back
        # Use the outer points, not the mean of both sides: the function may be undefined in the middle.
        return self.combine(ahead - behind) / (forth - back), left, right

    def combine(self, results: Array) -> Array:
        if np.isfinite(results).all():
            return self.weights @ results
        # Ignore results with weight 0, even NaN.
        return (self.weights * np.where(self.weights == 0, 0.0, results)).sum(axis=1)

    @cached_property
    def noise(self) -> Array:
        """The standard deviation of the function's rounding errors, per row of the weights.

        Estimated with high-order differences of values at close points (Moré and Wild 2011), which vanish for smooth
        functions. Each side is estimated separately, so a kink or a jump does not count as noise. A function that
        returns float32 numbers has at least their rounding error, even if it seems constant.
        """
        delta = max(2e-5, 64 * self.spacing) * self.scale
        sides = []
        for side in (1, -1):
            values = np.stack([self.combine(self.at(side * k * delta)[0]) for k in range(1, 15)])
            fourth = sum(c * values[at : at + 10] for at, c in enumerate(_FOURTH))
            sides.append(np.sqrt(np.mean(np.square(fourth), axis=0) / _FOURTH_NORM))
        low, high = np.fmin(*sides), np.fmax(*sides)
        measured = np.where(high < 30 * low, np.sqrt((low * low + high * high) / 2), low)
        here, aside = self.at(0.0)[0], self.at(delta)[0]
        size = np.abs(self.weights) @ np.where(np.isfinite(here), np.abs(here), 0.0)
        rounded = np.array_equal(aside, aside.astype(np.float32), equal_nan=True)
        floor = size * float(np.finfo(np.float32 if rounded else np.float64).eps) / 4
        return np.fmax(np.where(np.isfinite(measured), measured, 0.0), floor)


Measured = tuple[float, float, float, float]  # the step; the central, left and right slope


@dataclass(frozen=True)
class Finding:
    """The verdict of finite differences about one derivative."""

    status: str
    numeric: float
    left: float
    right: float
    note: str = ""


def study(line: Line, row: int, analytic: float, steps: Sequence[float], tolerance: Tolerance) -> Finding:
    """Compare an analytic derivative with differences over a sweep of steps."""
    here = line.combine(line.at(0.0)[0])[row]
    measured = [_measure(line, row, step) for step in sorted(steps)]
    if not np.isfinite(here):
        return Finding(KINK, *measured[0][1:], f"the function itself is {here:g} here")
    finite = [entry for entry in measured if np.isfinite(entry[1:]).all()]
    if not finite:
        return _edge(measured, analytic, tolerance)
    noise = 5 * float(line.noise[row]) / line.scale
    reliable = [entry for entry in finite if noise / entry[0] <= tolerance.of(max(abs(entry[2]), abs(entry[3])))]
    if not reliable:
        return _too_noisy(finite, noise, analytic)
    return _decide(reliable, noise, analytic, tolerance)


def _measure(line: Line, row: int, step: float) -> Measured:
    central, left, right = line.slopes(step)
    return step, float(central[row]), float(left[row]), float(right[row])


def _decide(reliable: list[Measured], noise: float, analytic: float, tolerance: Tolerance) -> Finding:
    """Judge by the shortest steps with small enough rounding errors."""
    shortest = reliable[:3]
    best = min(shortest, key=lambda entry: _off(analytic, entry[1], tolerance))
    _, central, left, right = shortest[0]
    if _is_kink(shortest, noise, tolerance):
        low, high = min(left, right), max(left, right)
        if low - tolerance.of(low) <= analytic <= high + tolerance.of(high):
            return Finding(KINK, central, left, right, f"{analytic:.6g} lies between the slopes on the two sides")
        return Finding(
            WRONG, central, left, right, "there is a kink, and the rule's value is outside of its two slopes"
        )
    if _off(analytic, best[1], tolerance) <= 1:
        return Finding(RIGHT, *best[1:])
    return Finding(WRONG, *best[1:], note=_hint(analytic, best[1]))


def _off(analytic: float, numeric: float, tolerance: Tolerance) -> float:
    """The difference in units of the tolerance; NaN counts as infinite."""
    difference = abs(analytic - numeric) / float(tolerance.of(numeric))
    return difference if np.isfinite(difference) else np.inf


def _is_kink(shortest: list[Measured], noise: float, tolerance: Tolerance) -> bool:
    """Tell whether the slopes of the two sides stay apart as the step shrinks, unlike those of a smooth function."""
    if len(shortest) < 2:
        return False
    (step, _, left, right), (_, _, wider_left, wider_right) = shortest[:2]
    gap, wider = abs(left - right), abs(wider_left - wider_right)
    return bool(gap > tolerance.of(max(abs(left), abs(right))) + noise / step and gap > 0.3 * wider)


def _edge(measured: list[Measured], analytic: float, tolerance: Tolerance) -> Finding:
    """Judge a function that is defined only on one side."""
    _, central, left, right = measured[0]
    for side, value in (("left", left), ("right", right)):
        if np.isfinite(value):
            note = f"the function is defined on the {side} only"
            wrong = np.isnan(analytic) or (np.isfinite(analytic) and _off(analytic, value, tolerance) > 1)
            return Finding(WRONG if wrong else KINK, value, left, right, note)
    return Finding(KINK, central, left, right, "the function is not defined next to this point")


def _too_noisy(finite: list[Measured], noise: float, analytic: float) -> Finding:
    """Judge if no step is both long enough to exceed the noise and short enough to approximate a derivative."""
    step, central, left, right = min(finite, key=lambda entry: noise / entry[0] + abs(entry[2] - entry[3]))
    allowed = noise / step + abs(left - right)
    note = f"the function's rounding errors alone change the numeric value by {noise / step:.1e}"
    close = abs(analytic - central) <= allowed
    return Finding(NOISE if close else WRONG, central, left, right, note)


def _hint(analytic: float, numeric: float) -> str:
    """Name the mistake if the two numbers show it."""
    if np.isnan(analytic):
        return "the rule gives NaN"
    if analytic == 0:
        return "the rule gives no gradient here"
    if abs(analytic + numeric) <= 1e-4 * abs(numeric):
        return "the sign"
    return f"the rule gives {analytic / numeric:.6g} times the numeric value" if numeric else ""


__all__ = ["STEPS", "Finding", "Line", "Tolerance", "study"]
