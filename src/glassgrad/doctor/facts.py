"""What a check-up of one batch found, as plain data: about tensors, the forward pass, the loss and the gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad.doctor.graph import Graph
from glassgrad.doctor.statistics import Summary, summarise

Array = Any
Evidence = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Facts:
    """One tensor: its name, shape and dtype, and what its numbers are.

    `first_bad` is the index of the first NaN or infinity in the order of memory, `bad_value` what stands there.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    summary: Summary
    first_bad: tuple[int, ...] | None = None
    bad_value: float = 0.0

    @classmethod
    def of(cls, name: str, array: Array) -> Facts:
        """Look at an array."""
        summary = summarise(array if array.dtype.kind in "fc" else array.astype(np.float64))
        if not summary.nonfinite:
            return cls(name, array.shape, str(array.dtype), summary)
        place = tuple(int(at) for at in np.argwhere(~np.isfinite(array))[0])
        return cls(name, array.shape, str(array.dtype), summary, place, float(np.real(array[place])))

    @property
    def bad(self) -> str:
        """Say where the first NaN or infinity is; empty if there is none."""
        if self.first_bad is None:
            return ""
        value = "NaN" if np.isnan(self.bad_value) else "inf" if self.bad_value > 0 else "-inf"
        place = ", ".join(map(str, self.first_bad))
        return f"{value} at [{place}], {self.summary.nonfinite:,} of {self.summary.count:,}"


@dataclass(frozen=True)
class Targets:
    """The labels. `classes` is how many the output has room for, 0 where the targets are no classes.

    `fractions` tells that numbers which should be classes are no whole ones.
    """

    facts: Facts
    classes: int = 0
    distinct: int = 0
    outside: int = 0


@dataclass(frozen=True)
class Layer:
    """One place in the forward pass, in the order of the calls: its output, and the gradient that came back to it."""

    name: str
    kind: str
    output: Facts
    input_bad: bool = False
    input_made_by: str = ""
    """The op that made what enters it, with the user's line in our library."""
    gradient: Facts | None = None
    dead: float = float("nan")
    saturated: float = float("nan")


@dataclass(frozen=True)
class Gradient:
    """One parameter: its values, its gradient if it has one, and whether one is wanted."""

    name: str
    values: Facts
    gradient: Facts | None
    trainable: bool
    dims: int
    order: int
    """Place of its layer in the forward pass, -1 for one that was never called."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or looks it.

    Attributes:
        rule: its title.
        severity: "error" where training cannot work, "warning" where it suffers, "info" for what is worth knowing.
        what: what was seen, in a sentence with its numbers.
        advice: what to do about it.
        where: the user's file and line, or the layer; empty where there is no place.
        value: what was measured, held against `threshold`; NaN where nothing was. `source`: who set that threshold.
        evidence: (step, value) pairs, where it was measured over time.
        remedy: the line of code that helps.
    """

    rule: str
    severity: str
    what: str
    advice: str
    where: str = ""
    value: float = math.nan
    threshold: float = math.nan
    source: str = ""
    evidence: Evidence = ()
    remedy: str = ""

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where and self.where not in self.what else ""
        return f"{self.severity}: {self.rule}: {self.what}{place}"


@dataclass(frozen=True)
class CheckUp:
    """Everything a check-up of one batch found.

    Attributes:
        model: class of the model; `parameters`: how many trainable numbers it has.
        inputs: facts about each tensor that goes in; `targets`: about the labels, None without any.
        layers: the forward pass, in the order of the calls.
        output: what the model returned.
        loss: its value; `expected`: of a model that knows nothing, such as log K for K classes, NaN where unknown, and
            `expected_why` in words.
        loss_kind: "cross entropy", "binary cross entropy", "squared error" or "".
        gradients: one entry a parameter; `total_norm` of all together.
        same_output: the output is the same for every example.
        probabilities: the rows of the output are shares that add up to 1.
        training: the model was in training mode.
        failure: what was raised instead of a loss or a gradient, empty if nothing was.
        graph: the ops from the parameters to the loss, None where they are not known.
        findings: what the rules make of it, the worst first.
    """

    model: str
    parameters: int
    inputs: tuple[Facts, ...]
    targets: Targets | None
    layers: tuple[Layer, ...]
    output: Facts | None
    loss: float
    expected: float
    expected_why: str
    loss_kind: str
    gradients: tuple[Gradient, ...]
    total_norm: float
    same_output: bool = False
    probabilities: bool = False
    training: bool = True
    failure: str = ""
    graph: Graph | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether no rule found anything that is wrong; what is merely worth knowing does not count."""
        return all(finding.severity == "info" for finding in self.findings)
