"""Compare a Jacobian by the rule with finite differences, and study disagreements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from glassgrad.ops.narrow import finfo
from glassgrad.verify.differences import STEPS, Finding, Line, Tolerance, study
from glassgrad.verify.subjects import Subject
from glassgrad.verify.verdict import NOISE, RIGHT, WRONG, Entry

Array = Any
UNIT_ROWS = 32  # up to this many results, compare the whole Jacobian; beyond, random combinations of its rows
LOCATED = 256  # up to this many results, try them one by one to name the wrong one
STUDIED = 40  # study at most this many suspicious entries, once one is known to be wrong

Probe = tuple[int, tuple[int, ...] | None, Array]  # variable, position or None, direction


def probes(subject: Subject, samples: int) -> Iterator[Probe]:
    """Yield every entry of small variables; for large ones some entries, and random directions."""
    rng = np.random.default_rng(5)
    for number, variable in enumerate(subject.variables):
        shape, size = variable.value.shape, variable.value.size
        chosen = range(size) if size <= samples else np.sort(rng.choice(size, samples, replace=False))
        for flat in chosen:
            position = tuple(int(index) for index in np.unravel_index(int(flat), shape))
            yield number, position, _unit(shape, position)
        if size > samples:
            for _ in range(2):
                yield number, None, rng.normal(size=shape)


def _unit(shape: tuple[int, ...], position: tuple[int, ...]) -> Array:
    direction = np.zeros(shape)
    direction[position] = 1.0
    return direction


class Check:
    """One comparison of a subject's Jacobian with differences, in one precision."""

    def __init__(self, subject: Subject, eps: float | None, tolerance: Tolerance) -> None:
        self.subject = subject
        self.tolerance = tolerance
        self.values = [subject.seen(at, variable.value) for at, variable in enumerate(subject.variables)]
        self.results = subject.evaluate(self.values)
        self.weights, self.outputs = _rows_of_weights(self.results)
        self.jacobian = [self._row(weights) for weights in self.weights]
        if len(self.weights) > 1 and not all(np.isfinite(g).all() for row in self.jacobian for g in row):
            # A cotangent of 0 times an infinite slope is NaN, which says nothing about the slope.
            self.weights, self.outputs = _rows_of_weights(self.results, units=0)
            self.jacobian = [self._row(weights) for weights in self.weights]
        digits = finfo(np.float64 if subject.exact else subject.lowest).eps
        self.spacing = float(digits)
        self.eps = eps
        self.base = eps or (1e-6 if self.spacing < 1e-10 else float(np.cbrt(self.spacing)))
        self._suspects: dict[int, tuple[Entry, Line, int, Array]] = {}

    def _row(self, weights: Array) -> list[Array]:
        """Return the gradient of one combination of the results."""
        cotangents, start = [], 0
        for y in self.results:
            cotangents.append(weights[start : start + y.size].reshape(y.shape))
            start += y.size
        return self.subject.gradient(self.values, cotangents)

    def line(self, number: int, direction: Array) -> Line:
        """Return the function along a direction of one variable."""
        value = self.values[number]
        moved_most = np.unravel_index(int(np.argmax(np.abs(direction))), direction.shape)

        def moved(t: float) -> tuple[Array, float]:
            values = list(self.values)
            values[number] = self.subject.seen(number, value + t * direction)
            results = self.subject.evaluate(values)
            taken = float((values[number] - value)[moved_most] / direction[moved_most])
            return np.concatenate([y.ravel() for y in results]), taken or t

        scale = max(1.0, float(np.max(np.abs(value) * (direction != 0))))
        return Line(moved, self.weights, scale, self.spacing)

    def analytic(self, row: int, number: int, position: tuple[int, ...] | None, direction: Array) -> float:
        """Return the derivative by the rule: an entry of the Jacobian, or its product with a direction."""
        gradient = self.jacobian[row][number]
        # A product with a unit vector would hide this entry if another one is infinite: 0 * inf.
        return float(gradient[position]) if position is not None else float(np.sum(gradient * direction))

    def compare(self, number: int, position: tuple[int, ...] | None, direction: Array) -> Iterator[Entry]:
        """Yield an entry for every row of the Jacobian, judged with a single step."""
        line = self.line(number, direction)
        central, left, right = line.slopes(self.base)
        for row, output in enumerate(self.outputs):
            analytic = self.analytic(row, number, position, direction)
            finding = Finding(RIGHT, float(central[row]), float(left[row]), float(right[row]))
            entry = self._entry(number, position, output, analytic, finding)
            limit = self.tolerance.of(max(abs(entry.left), abs(entry.right)))
            smooth = abs(entry.left - entry.right) <= limit and np.isfinite(line.combine(line.at(0.0)[0])[row])
            if not (entry.absolute <= self.tolerance.of(entry.numeric) and smooth):
                # Keep only these for further study: a line stores all results along it.
                entry = replace(entry, status=WRONG)
                self._suspects[id(entry)] = (entry, line, row, direction)
            yield entry

    def _entry(
        self, number: int, position: tuple[int, ...] | None, output: Array, analytic: float, finding: Finding
    ) -> Entry:
        name = self.subject.variables[number].name
        return Entry(
            name,
            number,
            position,
            output,
            analytic,
            finding.numeric,
            finding.left,
            finding.right,
            finding.status,
            finding.note,
        )

    def look_closely(self, entries: list[Entry]) -> list[Entry]:
        """Study the suspicious entries over many steps; if there are very many, only the worst."""
        suspects = sorted(self._suspects.values(), key=lambda found: -self.badness(found[0]))
        judged: dict[int, Entry] = {}
        for count, (entry, line, row, direction) in enumerate(suspects):
            if count >= STUDIED and any(known.status == WRONG for known in judged.values()):
                break
            finding = self._study(entry, line, row)
            found = self._entry(entry.variable, entry.position, entry.output, entry.analytic, finding)
            if found.status == WRONG and entry.position is None:
                found = self._narrow(found, row, direction)
            judged[id(entry)] = found
        return [judged.get(id(entry), entry) for entry in entries]

    def _study(self, entry: Entry, line: Line, row: int) -> Finding:
        """Study one entry over many steps; for a tiny value, try small steps first, unless they are inconclusive."""
        steps = STEPS if self.eps is None else (self.eps * 10, self.eps, self.eps / 10)
        if entry.position is not None and self.eps is None:
            size = abs(float(self.values[entry.variable][entry.position]))
            if 0 < size < 1e-3:
                finding = study(line.scaled(size), row, entry.analytic, steps, self.tolerance)
                if finding.status != NOISE:
                    return finding
        return study(line, row, entry.analytic, steps, self.tolerance)

    def badness(self, entry: Entry) -> float:
        """The error in units of the tolerance; NaN is the worst."""
        return float(np.nan_to_num(entry.absolute / self.tolerance.of(entry.numeric), nan=np.inf))

    def _narrow(self, found: Entry, row: int, direction: Array) -> Entry:
        """Find a wrong entry in a wrong direction by bisection: the half with the larger error contains one."""
        chosen = np.argwhere(direction != 0)
        while len(chosen) > 1:
            halves = (chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :])
            chosen = max(halves, key=lambda half: self._error_of(found.variable, row, direction, half))
        position = tuple(int(index) for index in chosen[0])
        unit = _unit(direction.shape, position)
        line = self.line(found.variable, unit)
        analytic = float(self.jacobian[row][found.variable][position])
        start = replace(found, position=position, analytic=analytic)
        entry = self._entry(found.variable, position, found.output, analytic, self._study(start, line, row))
        return entry if entry.status == WRONG else found

    def _error_of(self, number: int, row: int, direction: Array, half: Array) -> float:
        part = np.zeros_like(direction)
        part[tuple(half.T)] = direction[tuple(half.T)]
        analytic = float(np.sum(self.jacobian[row][number] * part))
        return abs(analytic - float(self.line(number, part).slopes(self.base)[0][row]))

    def locate(self, found: Entry) -> Entry:
        """Name the wrong result in a wrong combination of results, if there are few enough to try."""
        total = sum(y.size for y in self.results)
        alone = found.output is not None or found.position is None or not np.isfinite(found.analytic)
        if found.status == RIGHT or alone or total > LOCATED:
            return found
        assert found.position is not None
        line = self.line(found.variable, _unit(self.values[found.variable].shape, found.position))
        line = Line(line.moved, np.eye(total), line.scale, line.spacing)
        candidates = []
        for at, output in enumerate(_places(self.results)):
            analytic = float(self._row(line.weights[at])[found.variable][found.position])
            entry = replace(found, output=output, analytic=analytic)
            finding = self._study(entry, line, at)
            if finding.status == found.status:
                candidates.append(self._entry(found.variable, found.position, output, analytic, finding))
        return max(candidates, key=self.badness, default=found)


def as_given(exact: Check, given: Check) -> Entry | None:
    """Return the entry where low precision differs most from a verified Jacobian, if it differs too much.

    Either the rule loses digits, or the function does, so no step gives its slope to within one percent.
    """
    worst: tuple[float, Entry] | None = None
    largest = [max(float(np.max(np.abs(g), initial=0.0)) for g in row) for row in exact.jacobian]
    steps = (given.eps,) if given.eps else tuple(given.base * factor for factor in (0.3, 1, 3))
    for number, position, direction in probes(given.subject, 25):
        line = given.line(number, direction)
        slopes = [line.slopes(step)[0] for step in steps]
        for row, output in enumerate(exact.outputs):
            right, rule = (check.analytic(row, number, position, direction) for check in (exact, given))
            numeric = min((float(slope[row]) for slope in slopes), key=lambda slope: _distance(slope, right))
            allowed = exact.tolerance.absolute + exact.tolerance.relative * (abs(right) + 0.01 * largest[row])
            by_rule = _distance(rule, right) / allowed
            by_slope = _distance(numeric, right) / (exact.tolerance.absolute + 0.01 * (abs(right) + largest[row]))
            if max(by_rule, by_slope) <= max(1.0, worst[0] if worst is not None else 0.0):
                continue
            note = "the numeric value is that of float64" if by_rule > 1 else f"in float64 both are {right:.10g}"
            finding = Finding(NOISE, right if by_rule > 1 else numeric, np.nan, np.nan, note)
            worst = max(by_rule, by_slope), given._entry(number, position, output, rule, finding)
    return None if worst is None else worst[1]


def _distance(one: float, other: float) -> float:
    return float(np.nan_to_num(abs(one - other), nan=np.inf))


def _rows_of_weights(results: Sequence[Array], units: int = UNIT_ROWS) -> tuple[Array, list[Array]]:
    """Return the combinations of results to compare, and the place of each if it is a single result, else None."""
    total = sum(y.size for y in results)
    if total <= units or total == 1:
        return np.eye(total), list(_places(results))
    rng = np.random.default_rng(3)
    return rng.uniform(0.5, 1.5, (2, total)) * rng.choice((-1.0, 1.0), (2, total)), [None, None]


def _places(results: Sequence[Array]) -> Iterator[tuple[int, tuple[int, ...]]]:
    for number, y in enumerate(results):
        for position in np.ndindex(y.shape):
            yield number, position


__all__ = ["Check", "probes"]
