"""The steps of an exercise whose gap is a derivation: one for each gradient, and one for all of them together."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from glassgrad.lessons.exercise import OPEN, Names, Step, Steps, Verdict
from glassgrad.lessons.gaps import has_gap
from glassgrad.lessons.hints import ELSE, KINDS
from glassgrad.verify import edits
from glassgrad.verify.check_my_backward import BackwardReport
from glassgrad.verify.diagnose import FAILS
from glassgrad.verify.each import Each

__all__ = ["Hints", "add_derivation"]

# Hints: for a kind of mistake in one gradient, for any mistake in one gradient, for a kind of mistake in any gradient.
Hints = Mapping[tuple[str, str] | str, str]


def add_derivation(
    steps: Steps,
    function: str,
    gradients: Sequence[str],
    *,
    section: str,
    forward: str = "forward",
    inputs: str = "inputs",
    hints: Hints | None = None,
) -> None:
    """Add the steps of a derivation that the learner writes as a function.

    Args:
        steps: where they are added.
        function: the learner's function; its statements are read and checked one gradient at a time.
        gradients: the variables of the forward pass whose gradients are derived, in this order.
        section: the heading of the lesson below which the answer is.
        forward, inputs: names in the starter: the forward pass and its arguments.
        hints: hints of this exercise. Keys are (variable, kind of mistake), a variable, or a kind.
    """
    said = dict(hints or {})
    read = _Reader(function, forward, inputs)
    for variable in gradients:
        steps.add(Step(f"d{variable}", _one(read, variable, said), (function, "given"), (), section))
    if len(gradients) > 1:
        judge = _all(read, gradients, said)
        steps.add(Step(f"{function} as a whole", judge, (function, "given"), (), section))


def _one(read: _Reader, variable: str, hints: Hints) -> Callable[..., Verdict]:
    def judge(given: Names, **names: Any) -> Verdict:
        each = read(given, names)
        own = [] if each is None else each.steps_of(variable)
        if each is None or not own or any(has_gap(step.node) for step in own):
            return OPEN
        return hint_for(each.check(variable), variable, hints)

    return judge


def _all(read: _Reader, gradients: Sequence[str], hints: Hints) -> Callable[..., Verdict]:
    def judge(given: Names, **names: Any) -> Verdict:
        each = read(given, names)
        if each is None or any(not each.steps_of(name) for name in gradients):
            return OPEN
        if any(has_gap(step.node) for step in each.derivation.steps):
            return OPEN
        report = each.check_all()
        wrong = {name for step in each.derivation.steps for said, name in step.targets if said == report.wrong_name}
        if any(not each.check(name) for name in wrong):
            return OPEN  # the gradient's own step reports it; this step judges the derivation as a whole
        return hint_for(report, None, hints)

    return judge


class _Reader:
    """Reads a learner's derivation, once for all of its steps."""

    def __init__(self, function: str, forward: str, inputs: str) -> None:
        self.function, self.forward, self.inputs = function, forward, inputs
        self._last: tuple[Any, Each | None] = None, None

    def __call__(self, given: Names, names: Names) -> Each | None:
        """Return the derivation; None if it assigns no gradient yet."""
        function = names[self.function]
        if function is not self._last[0]:
            body = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
            begun = any(isinstance(part, ast.Assign | ast.AugAssign | ast.Call) for part in ast.walk(body))
            each = Each(function, given[self.forward], given[self.inputs]) if begun else None
            self._last = function, each
        return self._last[1]


def hint_for(report: BackwardReport, variable: str | None, hints: Hints) -> Verdict:
    """Return a hint about the first wrong line of a report, without the correction."""
    diagnosis = report.diagnosis
    if diagnosis is None:
        return None
    line = f"line {report.wrong_line}: {report.wrong_source}"
    if report.error is not None:
        line += f"\n{type(report.error).__name__}: {report.error}"
        if diagnosis.kind == FAILS or isinstance(report.error, NameError | AttributeError):
            return line
    shapes = report.lines[-1].comparison.shapes if report.lines else ((), ())
    if report.error is None and shapes[0] != shapes[1]:
        line += f"\nIts shape is {shapes[0]}, that of the value is {shapes[1]}."
        if not shapes[0] or diagnosis.kind == edits.SHAPE:
            return f"{line} {KINDS[edits.SHAPE]}"
    about = variable or (report.wrong_name or "").removeprefix("d")
    for key in ((about, diagnosis.kind), about, diagnosis.kind):
        if key in hints:
            return f"{line}\n{hints[key]}"
    if diagnosis.kind not in KINDS:
        return f"{line}\n{ELSE}"
    return f"{line}\n{diagnosis.kind[0].upper()}{diagnosis.kind[1:]}. {KINDS[diagnosis.kind]}"
