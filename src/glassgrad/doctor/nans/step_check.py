"""The common part of the guards of both libraries: options, findings, and whether an optimizer may make a NaN."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from glassgrad import errors
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.library import Module, Optimizer
from glassgrad.doctor.nans.allowed import checked
from glassgrad.doctor.observers.events import Check

SHARE = 0.002
"""The share of time that copies of the state may take, before harmless eager steps and between compiled ones."""
ALL_BACK = "Weights, optimizer, running statistics and random numbers are as they were before the step."
_HUGE = 1e9
"""The size of options above which a product may overflow single precision."""


class StepCheck(Check):
    """The base of the guards of both libraries: it collects findings and raises them.

    Args:
        model, optimizers: the model and optimizers of the loop.
        inf: report infinities as well.
        allow: names of ops and modules whose NaN and infinities are intended.

    Attributes:
        found: the findings, one for each kind and location.
        steps: number of steps checked.
        named: the parameters by their names.
    """

    def __init__(self, model: Module, optimizers: Sequence[Optimizer], *, inf: bool, allow: Collection[str]) -> None:
        self.model, self.optimizers, self.inf = model, list(optimizers), inf
        self.allow = checked(model, allow)
        self.steps = 0
        self.named = dict(model.named_parameters())
        self.found: list[Finding] = []
        self._began, self._spent = time.perf_counter(), 0.0

    def is_good(self) -> bool:
        """Tell whether the weights and their gradients hold no NaN."""
        raise NotImplementedError  # gradients of the two libraries are read differently

    def report(self, found: Finding, step: int, kept: str) -> None:
        """Keep a finding and raise it."""
        if not any((one.rule, one.where) == (found.rule, found.where) for one in self.found):
            self.found.append(found)  # a loop that continues raises it again
        advice = found.advice if found.remedy in found.advice else f"{found.advice} {found.remedy}"
        what = found.what.rstrip(".") + (f", at {found.where}" if found.where not in found.what else "")
        raise errors.NAN_IN_STEP(step=step, rule=found.rule, what=what, kept=kept, advice=advice)


def divides(optimizer: Optimizer, known: str = "glassgrad.optim") -> bool:
    """Return whether an optimizer may divide by 0, has an extreme option, or is not from package `known`."""
    if not type(optimizer).__module__.startswith(known):
        return True
    for group in optimizer.param_groups:
        numbers = [value for value in group.values() if isinstance(value, int | float)]
        eps = group.get("eps", 1.0)
        eps = min(eps) if isinstance(eps, tuple | list) else eps
        if not (isinstance(eps, int | float) and eps > 1e-30) or any(not abs(value) < _HUGE for value in numbers):
            return True
    return False
