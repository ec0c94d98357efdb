"""Statistics of the outputs of modules, and of dead and saturated units of activation functions.

A unit of a ReLU is dead if it is zero for every example of the batch: no gradient passes it. GELU, SiLU and the like
approach zero from below: there a unit is dead if no output is above zero or further from it than `FAINT`. An entry is
saturated when a bounded function is so close to a bound that its slope is below 6 % of the steepest one:
|tanh(x)| > 0.97, and for functions with other bounds the same position between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from glassgrad.doctor.library import Array, Module
from glassgrad.doctor.quantities.field import Field
from glassgrad.doctor.quantities.statistics import summarise
from glassgrad.doctor.reading.names import named

FIELDS = (
    Field("activation_mean", "activation", "mean of the output", "forward"),
    Field("activation_std", "activation", "standard deviation of the output", "forward"),
    Field("activation_abs_max", "activation", "largest |output|", "forward"),
    Field("activation_nonfinite", "activation", "number of entries that are NaN or infinite", "forward"),
    Field("activation_dead", "activation", "share of units that are zero for the whole batch (ReLU, GELU)", "forward"),
    Field("activation_saturated", "activation", "share of entries close to a bound (tanh, sigmoid, ...)", "forward"),
)

SATURATED = 0.97
"""Distance from the middle, relative to that of the bound, that counts as saturated; tanh has slope 0.059 there."""
FAINT = 1e-6
"""Outputs from -FAINT to 0 count as zero. There, the slope of a GELU is at most 5e-6 and that of a SiLU 1e-6."""


@dataclass(frozen=True)
class Kind:
    """How an activation function can fail: units that are never positive, or saturation near its bounds."""

    rectifies: bool = False
    low: float = math.nan
    high: float = math.nan

    @property
    def saturates(self) -> bool:
        return self.low < self.high


_RECTIFIER, _SYMMETRIC, _SHARE = Kind(rectifies=True), Kind(low=-1, high=1), Kind(low=0, high=1)

# By the names of classes and of ops in either library, in lower case.
KINDS = {
    **dict.fromkeys(named("relu threshold gelu silu mish hardswish"), _RECTIFIER),
    **dict.fromkeys(named("tanh softsign hardtanh"), _SYMMETRIC),
    **dict.fromkeys(named("sigmoid hardsigmoid"), _SHARE),
    "relu6": Kind(True, 0, 6),
}


def kind_of(name: str, module: Module = None) -> Kind | None:
    """Return the kind of a module's class or an op by its name, None if it is not an activation function."""
    kind = KINDS.get(name.lower())
    if name == "Hardtanh" and module is not None:
        return Kind(low=float(module.min_val), high=float(module.max_val))
    return kind


def living(output: Array, axes: tuple[int, ...]) -> Array:
    """Return which units of a rectifier are active somewhere along `axes`; NaN counts as active."""
    units: Array = np.logical_not(np.all((output <= 0) & (output >= -FAINT), axis=axes))
    return units


class Activation:
    """The outputs of one place in the model since the last sample, accumulated over all passes."""

    def __init__(self, kind: Kind | None, channels_first: bool = False) -> None:
        self.kind = kind
        self.channels_first = channels_first
        self._count = self._sum = self._squares = self._saturated = 0.0
        self._abs_max, self._nonfinite = 0.0, 0
        self.alive: Array | None = None
        self.axis = self.examples = 0

    def add(self, output: Array) -> None:
        """Add one output, whose first axis indexes the examples."""
        found = summarise(output)
        finite = found.count - found.nonfinite
        if finite:
            self._count += finite
            self._sum += found.mean * finite
            self._squares += (found.std**2 + found.mean**2) * finite
            self._abs_max = max(self._abs_max, found.abs_max)
        self._nonfinite += found.nonfinite
        if self.kind is None:
            return
        if self.kind.saturates:
            middle, reach = (self.kind.high + self.kind.low) / 2, (self.kind.high - self.kind.low) / 2
            far = output - middle if self.kind.rectifies else np.abs(output - middle)  # a rectifier is inactive at 0
            self._saturated += np.count_nonzero(far > SATURATED * reach)
        if self.kind.rectifies:
            self.examples += len(output) if output.ndim else 1
            alive = self._units(output)
            same = self.alive is not None and self.alive.shape == alive.shape
            self.alive = self.alive | alive if same else alive

    def _units(self, output: Array) -> Array:
        """Return which units are not zero in some example: channels of images, else the last axis."""
        images = output.ndim > 3 or (output.ndim == 3 and self.channels_first)
        self.axis = 1 if images else max(output.ndim - 1, 0)
        others = tuple(axis for axis in range(output.ndim) if axis != self.axis)
        return living(output, others)

    def measure(self) -> dict[str, float]:
        """Return the entries of this place."""
        count = self._count or math.nan
        mean = self._sum / count
        kind = self.kind or Kind()
        return {
            "activation_mean": mean,
            "activation_std": math.sqrt(max(self._squares / count - mean**2, 0.0)),
            "activation_abs_max": self._abs_max if self._count else math.nan,
            "activation_nonfinite": float(self._nonfinite),
            "activation_dead": math.nan if self.alive is None else 1 - float(self.alive.mean()),
            "activation_saturated": self._saturated / count if kind.saturates else math.nan,
        }
