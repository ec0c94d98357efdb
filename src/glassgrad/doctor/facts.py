"""The facts of a check-up of one batch, as plain data: tensors, forward pass, loss and gradients."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from glassgrad.doctor.graphs.graph import UNKNOWN, Graph
from glassgrad.doctor.library import Array
from glassgrad.doctor.quantities.statistics import Summary, summarise

_VARIANTS = re.compile(r" of the (model|loss)$|(?<= in the step) of .*$")
"""Parts of a title that differ from run to run."""
Evidence = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Facts:
    """One tensor: its name, shape and dtype, and a summary of its values.

    `first_bad` is the index of the first NaN or infinity in memory order, `bad_value` the value there.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    summary: Summary
    first_bad: tuple[int, ...] | None = None
    bad_value: float = 0.0

    @classmethod
    def of(cls, name: str, array: Array) -> Facts:
        """Summarise an array."""
        summary = summarise(array if array.dtype.kind in "fc" else array.astype(np.float64))
        if not summary.nonfinite:
            return cls(name, array.shape, str(array.dtype), summary)
        place = tuple(int(at) for at in np.argwhere(~np.isfinite(array))[0])
        return cls(name, array.shape, str(array.dtype), summary, place, float(np.real(array[place])))

    @property
    def bad(self) -> str:
        """Describe the place of the first NaN or infinity; empty if there is none."""
        if self.first_bad is None:
            return ""
        value = "NaN" if np.isnan(self.bad_value) else "inf" if self.bad_value > 0 else "-inf"
        place = ", ".join(map(str, self.first_bad))
        return f"{value} at [{place}], {self.summary.nonfinite:,} of {self.summary.count:,}"


@dataclass(frozen=True)
class Targets:
    """The labels. `classes` is the number of classes of the output, 0 if the targets are not classes.

    `fractions` tells whether class numbers are not integers.
    """

    facts: Facts
    classes: int = 0
    distinct: int = 0
    outside: int = 0


@dataclass(frozen=True)
class Layer:
    """One place in the forward pass, in the order of the calls: its output, and the gradient of its output."""

    name: str
    kind: str
    output: Facts
    input_bad: bool = False
    input_made_by: str = ""
    """The op that made its input, with the user's line if the library knows it."""
    gradient: Facts | None = None
    dead: float = float("nan")
    saturated: float = float("nan")


@dataclass(frozen=True)
class Gradient:
    """One parameter: its values, its gradient if it has one, and whether it requires one."""

    name: str
    values: Facts
    gradient: Facts | None
    trainable: bool
    dims: int
    order: int
    """Position of its layer in the forward pass; -1 if the layer was never called."""


@dataclass(frozen=True)
class Finding:
    """One fault or suspected fault.

    Attributes:
        rule: its title.
        severity: "error" if training cannot work, "warning" if it suffers, "info" if it is just worth knowing.
        what: the observation, in a sentence with its numbers.
        advice: what to do about it.
        where: the user's file and line, or the layer; empty if there is no place.
        value: the measured value, compared with `threshold`; NaN if there is none. `source`: the threshold's origin.
        evidence: (step, value) pairs, if it was measured over time.
        remedy: the line of code that helps.
        because: the title of the finding that explains this one; empty for a cause.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(2, 3)
        >>> batch = 100 * gg.ones(8, 2), gg.tensor([0, 1, 2, 0, 1, 2, 0, 1])
        >>> finding = gg.doctor.check_up(model, batch, gg.nn.functional.cross_entropy).findings[0]
        >>> finding.rule, finding.severity
        ('inputs constant', 'error')
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
    because: str = ""

    @property
    def name(self) -> str:
        """Its stable name, which is also its place on the page of all findings.

        Example:
            >>> Finding("NaN in the step of Adam", "error", "", "").name
            'nan-in-the-step'
        """
        title = _VARIANTS.sub("", self.rule).lower()
        title = f"nan{title.removeprefix('inf')}" if title.startswith("inf in ") else title
        return re.sub(r"[^\w-]+", "-", title)

    @property
    def page(self) -> str:
        """The place in the documentation that explains it."""
        return f"findings.html#{self.name}"

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where and self.where not in self.what else ""
        return f"{self.severity}: {self.rule}: {self.what}{place}"

    def _repr_html_(self) -> str:
        from glassgrad.engine.reports import notebook

        return notebook.finding(self)


@dataclass(frozen=True)
class CheckUp:
    """The results of a check-up of one batch.

    Attributes:
        model: class of the model; `parameters`: the number of its trainable elements.
        inputs: facts about each input tensor; `targets`: about the labels, None without any.
        layers: the forward pass, in the order of the calls.
        output: the model's output.
        loss: its value; `expected`: that of a constant guess, such as log K for K classes, NaN if unknown, with
            `expected_why` in words.
        loss_kind: "cross entropy", "binary cross entropy", "squared error" or "".
        gradients: one entry per parameter; `total_norm`: the norm of all together.
        same_output: whether the output is the same for every example.
        probabilities: whether the rows of the output are probabilities that add up to 1.
        training: whether the model was in training mode.
        failure: the exception raised instead of a loss or a gradient, empty if none.
        graph: the ops from the parameters to the loss, without any if unknown.
        findings: the findings of the rules, the worst first.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(2, 3)
        >>> batch = gg.randn(8, 2), gg.tensor([0, 1, 2, 0, 1, 2, 0, 1])
        >>> found = gg.doctor.check_up(model, batch, gg.nn.functional.cross_entropy)
        >>> [layer.kind for layer in found.layers], round(found.expected, 4)
        (['Linear'], 1.0986)
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
    graph: Graph = UNKNOWN
    findings: tuple[Finding, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether there are no errors or warnings."""
        return all(finding.severity == "info" for finding in self.findings)


__all__ = ["Finding"]
