"""The sampling of a watch: which steps are sampled, which quantities are measured, and at what cost."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.library import Array
from glassgrad.doctor.observers.calls import scaling
from glassgrad.doctor.quantities import directions, gradients, histograms, norms, parameters, updates
from glassgrad.doctor.quantities.statistics import BINS, norm
from glassgrad.doctor.record import Sample

Parameters = list[tuple[str, Any]]


@dataclass(frozen=True)
class Preset:
    """How much a watch inspects.

    Attributes:
        share: the share of the time that it may take; this limits how often steps are sampled.
        early: the number of first steps that are sampled if the time allows.
        free: seconds that it may take beyond its share, so that small loops are seen from the start: three quarters
            of it at first, and half of it for late steps.
        statistics: means, deviations and shares of zeros; without them only norms.
        activations: outputs of the modules.
        directions: the gradient compared with that of the previous step.
        counts: histograms.
    """

    name: str
    share: float
    early: int
    free: float
    statistics: bool
    activations: bool
    directions: bool
    counts: bool


PRESETS = {
    preset.name: preset
    for preset in (
        # A sample of W2 costs two or three times the thread time counted here, because it leaves the caches cold.
        Preset("economy", 0.006, 2, 0.02, False, False, False, False),
        Preset("standard", 0.06, 6, 0.1, True, True, True, False),
        Preset("full", math.inf, 6, math.inf, True, True, True, True),
    )
}
EVERYTHING = replace(PRESETS["full"], directions=False)
"""The preset of a monitor, which measures single steps."""

_clock = time.perf_counter if sys.platform == "win32" else time.thread_time  # Windows' thread_time ticks at 64 Hz
_ALWAYS = 4
"""The number of steps that are sampled at any cost; the first one includes one-time work."""
_BETWEEN = 4
"""Steps between two samples, or pairs of samples, and between two decisions on sampling."""
_LATER, _AHEAD = 1.4, 0.75
"""The number of a step relative to that of the last sample, from which time is set aside for it, and the part of the
free time that other steps may take."""


class Schedule:
    """Decides which steps are sampled: as many as the time allows, most of them early, or every K-th if requested.

    The first four steps are sampled. Another step is sampled if the time spent so far plus the cost of the previous
    sample stays within the share. Time is this thread's processor time, so other load on the machine does not matter.

    Attributes:
        asks: the step for which to call `due` next; until then the answer stays the same.
    """

    def __init__(self, preset: Preset, every: int | None) -> None:
        self._preset = preset
        self._every = every
        self._began = _clock()
        self._spent = 0.0
        self._entered = 0.0
        self._depth = 0
        self._latest = 0
        self._pair = False
        self.asks = 0
        self._before: float | None = None
        self._cost = 0.0

    def __enter__(self) -> None:
        """Start counting time as spent by the watch."""
        if not self._depth:
            self._entered = _clock()
        self._depth += 1

    def __exit__(self, *raised: object) -> None:
        """Stop counting it."""
        self._depth -= 1
        if not self._depth:
            self._spent += _clock() - self._entered

    @property
    def seconds(self) -> float:
        """The processor time that was spent."""
        return self._spent

    @property
    def spent(self) -> bool:
        """Whether the budget of time is used up."""
        return not self._affords(0)

    def _affords(self, samples: int, *, late: bool = False) -> bool:
        """Return whether the budget has room for `samples` more like the last one; there is more for `late` ones."""
        allowed = self._preset.free * (_AHEAD + late / 2) + self._preset.share * (_clock() - self._began)
        return self._spent + samples * self._cost <= allowed

    def due(self, step: int) -> bool:
        """Tell whether a step, counted from 0, is to be sampled."""
        if self._every is not None:
            due, between = step % self._every == 0, self._every - step % self._every
        else:
            if self._before is not None:  # the previous step was sampled
                self._cost, self._before = self._now() - self._before, None
            due = step < _ALWAYS or math.isinf(self._preset.share) or self._is_time(step)
            between = 1 if step < self._preset.early else _BETWEEN
            if due:
                self._before, self._latest = self._now(), step
        self.asks = step + (1 if due else between)
        return due

    def _is_time(self, step: int) -> bool:
        """Return whether a sample is due, and there is time for it."""
        if step < self._preset.early:
            return self._affords(1)
        if self._pair:  # the step after a sampled one, to compare the two
            self._pair = False
            return True
        late = step >= _LATER * self._latest  # quick loops use up their free time early, and are seen later too
        samples = 2 if self._preset.directions else 1
        if step - self._latest < _BETWEEN or not self._affords(samples, late=late):
            return False
        self._pair = self._preset.directions
        return True

    def _now(self) -> float:
        """Return the time spent, including the measurement under way."""
        return self._spent + (_clock() - self._entered if self._depth else 0.0)


def flat_norm(array: Array) -> float:
    """Return the norm of an array in its own precision, without a copy if it is contiguous."""
    flat = array.reshape(-1)
    if flat.dtype.kind != "f" or flat.dtype.itemsize < 4:
        return norm(array)
    squares = float(flat @ flat)
    return math.sqrt(squares) if math.isfinite(squares) else norm(array)


def values_of(named: Parameters, *, copied: bool = True) -> list[Array]:
    """Return the values of parameters, copied by default."""
    held = [library.values(parameter) for _, parameter in named]
    return [np.array(values) for values in held] if copied else held


def measured(named: Parameters, *, statistics: bool, counts: bool) -> dict[str, Any]:
    """Return the fields about the gradients and the values of parameters in their current state, by name.

    Args:
        named: the parameters with their names.
        statistics: means, deviations and the like; without them only norms.
        counts: histograms too.

    If no parameter has a gradient, there is no "total_norm".
    """
    names = (*gradients.FIELDS, *parameters.FIELDS)
    table = {entry.name: np.full(len(named), np.nan) for entry in names}
    bins = {"bins": BINS, "signed": histograms.SIGNED_BINS}
    histogram = {entry.name: np.zeros((len(named), bins[entry.kind]), np.uint32) for entry in histograms.FIELDS}
    held = []
    with np.errstate(all="ignore"):  # a NaN is recorded
        for at, (_, parameter) in enumerate(named):
            g = scaling.gradient(parameter)
            found = (_statistics if statistics else _sizes)(library.values(parameter), g)
            for name, value in found.items():
                table[name][at] = value
            if g is not None:
                held.append(at)
            if counts:
                for name, one in histograms.measure(g, library.values(parameter), found).items():
                    histogram[name][at] = one
    entries: dict[str, Any] = dict(table)
    if held:
        entries["total_norm"] = norms.total(table["gradient_norm"][held])
    if counts:
        entries |= histogram
    return entries


def _statistics(values: Array, g: Array | None) -> dict[str, float]:
    return parameters.measure(values) | ({} if g is None else gradients.measure(g))


def _sizes(values: Array, g: Array | None) -> dict[str, float]:
    found = {"parameter_norm": flat_norm(values)}
    if g is not None:
        size = flat_norm(g)
        found |= {"gradient_norm": size, "gradient_nonfinite": 0.0 if math.isfinite(size) else 1.0}
    return found


_SHARES = 4
"""The number of samples that a share of lost updates needs."""


@dataclass
class _Past:
    """The gradients of a step, None for a parameter without, and the distance by which it then moved the weights."""

    step: int
    gradients: list[Array | None]
    moved: list[Array] | None = None


class Sampler:
    """Fills samples from the parameters of a model."""

    def __init__(self, named: Parameters, preset: Preset) -> None:
        self._named = named
        self._preset = preset
        self._past: _Past | None = None
        self._weights: list[Array] | None = None
        self._half = [at for at, (_, parameter) in enumerate(named) if library.is_half(parameter)]
        self._lost: dict[str, list[float]] = {}

    def before(self) -> None:
        """Keep the weights at the beginning of the step."""
        self._weights = values_of(self._named)

    def after(self, sample: Sample) -> None:
        """Measure how far the step moved the weights."""
        weights, self._weights = self._weights, None
        if weights is None:
            return
        moved = updates.between(weights, values_of(self._named, copied=False))
        sample.values["update_norm"] = updates.measure(moved)
        for at in self._half:
            name, parameter = self._named[at]
            g = scaling.gradient(parameter)
            if g is not None and (g != 0).any():
                self._lost.setdefault(name, []).append(float((moved[at][g != 0] == 0).mean()))
        if self._past is not None and self._past.step == sample.step:
            self._past.moved = [one.reshape(-1) for one in moved]

    def rounded(self) -> dict[str, float]:
        """Return for weights of 16 bits the median share of the numbers with a gradient that a step leaves alone."""
        return {name: float(np.median(shares)) for name, shares in self._lost.items() if len(shares) >= _SHARES}

    def sizes(self) -> list[float]:
        """Return the norms of the weights."""
        return [flat_norm(values) for values in values_of(self._named, copied=False)]

    def total(self) -> float:
        """Return the norm of all existing gradients as one vector; NaN without any."""
        held = [g for _, parameter in self._named if (g := scaling.gradient(parameter)) is not None]
        with np.errstate(all="ignore"):
            return norms.total(flat_norm(g) for g in held) if held else math.nan

    def any_gradient(self) -> bool:
        """Tell whether any parameter has a gradient."""
        return any(library.gradient(parameter) is not None for _, parameter in self._named)

    def any_gradient_object(self) -> bool:
        """Tell whether any parameter has a gradient during tracing, when gradients have no numbers."""
        return any(getattr(parameter, "_grad", None) is not None for _, parameter in self._named)

    def gradients(self, sample: Sample) -> None:
        """Measure gradients and weights in their current state."""
        preset = self._preset
        sample.values |= measured(self._named, statistics=preset.statistics, counts=preset.counts)
        if not preset.directions:
            return
        held = [scaling.gradient(parameter) for _, parameter in self._named]
        flat = [None if g is None else np.array(g, np.promote_types(g.dtype, np.float32)).reshape(-1) for g in held]
        past, self._past = self._past, _Past(sample.step, flat)
        if past is not None and past.step == sample.step - 1:
            with np.errstate(all="ignore"):
                sample.values |= directions.measure(past.gradients, flat, past.moved)
