"""Check every gradient of a derivation separately, so that one mistake does not hide the next."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from glassgrad.ops.core import Array
from glassgrad.verify.check_my_backward import BackwardReport, checked, names_for
from glassgrad.verify.derivation import Derivation, Step, parse
from glassgrad.verify.spy import Spy
from glassgrad.verify.truth import Truth, find_truth
from glassgrad.verify.words import speaking

__all__ = ["Each"]


class Each:
    """A derivation whose gradients are judged one by one, each with the true gradients of the other variables.

    Args:
        source_or_function: the derivation, as for `check_my_backward`.
        forward: the forward pass.
        inputs: its arguments, by name.
    """

    def __init__(
        self, source_or_function: str | Callable[..., Any], forward: Callable[..., Any], inputs: Mapping[str, Array]
    ) -> None:
        self._forward, self._inputs = speaking(forward), inputs
        self._found: Truth | None = None
        self.derivation = parse(source_or_function, self._truth().gradients)

    def _truth(self) -> Truth:
        if self._found is not None:
            return self._found
        spy = Spy()
        truth = find_truth(self._forward, self._inputs, spy)
        truth.applied = spy.applied
        self._found = truth
        return truth

    def _checked(self, part: Derivation, names: Mapping[str, Any]) -> BackwardReport:
        report = checked(part, self._truth(), names)
        if any(line.kink for line in report.lines):
            self._found = None  # it contains the slope at a kink, which is valid only for this derivation
        return report

    def steps_of(self, variable: str) -> list[Step]:
        """Return the statements that assign or change the gradient of a variable."""
        return [step for step in self.derivation.steps if any(name == variable for _, name in step.targets)]

    def check(self, variable: str) -> BackwardReport:
        r"""Check the gradient of one variable.

        Example:
            >>> def forward(x):
            ...     y = x * x
            ...     loss = y.sum()
            ...     return loss
            >>> each = Each("dy = 2.0 * y\ndx = dy * 2 * x", forward, {"x": np.array([1.0, 2.0])})
            >>> bool(each.check("y")), bool(each.check("x"))
            (False, True)
        """
        truth = self._truth()
        own = self.steps_of(variable)
        kept = [step for step in self.derivation.steps if step in own or not step.targets]
        steps = [dataclasses.replace(step, number=number) for number, step in enumerate(kept)]
        part: Derivation = dataclasses.replace(self.derivation, steps=steps)
        true = {
            spelling: np.array(truth.gradients[name][-1].total)
            for step in self.derivation.steps
            for spelling, name in step.targets
            if name != variable
        }
        return self._checked(part, {**names_for(part, self._forward), **true})

    def check_all(self) -> BackwardReport:
        """Check the derivation as a whole, like `check_my_backward`."""
        return self._checked(self.derivation, names_for(self.derivation, self._forward))
