"""Check a backward pass that was derived by hand, line by line, and name the first line that is wrong."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad.tensor import Tensor
from glassgrad.verify.compare import Comparison, as_array, compare
from glassgrad.verify.derivation import Derivation, Step, parse
from glassgrad.verify.diagnose import (
    FAILS,
    UNKNOWN,
    Diagnosis,
    WrongLine,
    acceptable,
    after,
    close,
    copied,
    diagnose,
    surroundings,
)
from glassgrad.verify.edits import all_edits
from glassgrad.verify.truth import Gradient, Truth, find_truth


@dataclass(frozen=True)
class CheckedLine:
    """A line that assigned a gradient, and how it compares; where it is not `complete`, later lines add the rest."""

    line: int
    source: str
    comparison: Comparison
    complete: bool


def _note(checked: CheckedLine, report: BackwardReport) -> str:
    if checked.complete:
        return ""
    return "  <- wrong" if checked.line == report.wrong_line else "  (so far)"


@dataclass
class BackwardReport:
    """What `check_my_backward` found. True when every line is right.

    `wrong_line`, `wrong_source`, `wrong_name` and `diagnosis` describe the first wrong line, and are None
    when there is none. `missing` are inputs whose gradient was not derived.
    """

    lines: list[CheckedLine] = field(default_factory=list)
    wrong_line: int | None = None
    wrong_source: str | None = None
    wrong_name: str | None = None
    diagnosis: Diagnosis | None = None
    missing: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.wrong_line is None

    def __str__(self) -> str:
        out = [f"line {checked.line:>3} | {checked.comparison}{_note(checked, self)}" for checked in self.lines]
        if self.diagnosis is not None:
            out += ["", f"The first wrong line is line {self.wrong_line}:", f"    {self.wrong_source}"]
            out += [f"{self.wrong_name}: {self.diagnosis.kind}. {self.diagnosis.words}."]
        else:
            out += ["", f"All {len(self.lines)} gradients are right."]
        if self.missing:
            out += [f"Not derived: {', '.join(f'd{name}' for name in self.missing)}."]
        return "\n".join(out)


def check_my_backward(
    source_or_function: str | Callable[..., Any],
    forward: Callable[..., Any],
    inputs: Mapping[str, Any] | Sequence[Any],
    *,
    show: bool = True,
) -> BackwardReport:
    """Run a derivation by hand line by line, compare every gradient with the true one, and report.

    `forward` is a function of `inputs` that returns the loss; write it one named step per line. The
    derivation, text or a function, assigns `dNAME` for variables NAME of the forward pass, all of which it
    can use as NumPy arrays (or as Tensors, if it is spelled like PyTorch). A variable used several
    times may be assigned first and added to later. Everything runs in float64. The report is printed
    unless `show` is False.

        >>> import numpy as np
        >>> def forward(x, w, b):
        ...     h = x @ w + b
        ...     loss = (h * h).sum()
        ...     return loss
        >>> rng = np.random.default_rng(0)
        >>> inputs = {"x": rng.normal(size=(4, 3)), "w": rng.normal(size=(3, 2)), "b": rng.normal(size=2)}
        >>> report = check_my_backward('''
        ... dh = 2 * h
        ... dw = x.T @ dh
        ... db = dh
        ... ''', forward, inputs, show=False)
        >>> report.wrong_line, report.diagnosis.kind
        (4, 'a missing sum over a broadcast axis')
    """
    truth = find_truth(forward, inputs)
    derivation = parse(source_or_function, truth.gradients)
    names = {
        "np": np,
        **derivation.names,
        **getattr(forward, "__globals__", {}),
        **inspect.getclosurevars(forward).nonlocals,
    }
    report, failed = _check(derivation, truth, {**names, **_values(truth, as_tensors=False)})
    if failed:
        # A line in PyTorch's spelling fails on arrays; if Tensors get further, the spelling was the reason.
        again, _ = _check(derivation, truth, {**names, **_values(truth, as_tensors=True)})
        if len(again.lines) > len(report.lines) or again:
            report = again
    derived = {name for step in derivation.steps for _, name in step.targets}
    report.missing = [name for name in _input_names(forward, truth) if name not in derived]
    if show:
        print(report)  # noqa: T201 - printing is what it is for
    return report


def _input_names(forward: Any, truth: Truth) -> list[str]:
    code = forward.__code__
    return [name for name in code.co_varnames[: code.co_argcount] if name in truth.gradients]


def _values(truth: Truth, as_tensors: bool) -> dict[str, Any]:
    """The variables of the forward pass, copied, so that a derivation may overwrite them."""
    if as_tensors:
        return {
            name: Tensor(value.copy()) if isinstance(value, np.ndarray) else value
            for name, value in truth.values.items()
        }
    return {name: copied(value) for name, value in truth.values.items()}


def _check(derivation: Derivation, truth: Truth, names: dict[str, Any]) -> tuple[BackwardReport, bool]:
    """Run the steps up to the first wrong one. Returns the report, and whether a line failed to run."""
    report = BackwardReport()
    history: list[tuple[Step, dict[str, Any]]] = []  # each step that ran, with the names before it
    for step in derivation.steps:
        before = {key: copied(value) for key, value in names.items()}
        error = _execute(step, names, derivation.file)
        if error is not None and not step.targets:
            _blame(report, step, None, Diagnosis(FAILS, f"{type(error).__name__}: {error}"))
            return report, True
        for spelling, name in step.targets:
            later = any((spelling, name) in other.targets for other in derivation.steps[step.number + 1 :])
            mine = None if error is not None else names[spelling]
            gradients = truth.gradients[name]
            lost = later and _overwrites(step, spelling, before)
            if error is None and acceptable(mine, gradients, later=later and not lost):
                report.lines.append(_compared(step, spelling, mine, gradients))
                continue
            wrong = WrongLine(step, name, spelling, before, mine, error, later, truth, gradients)
            if error is None:
                report.lines.append(_compared(step, spelling, mine, gradients))
            _blame(report, *_explain(wrong, history))
            return report, error is not None
        history.append((step, before))
    return report, False


def _overwrites(step: Step, spelling: str, before: Mapping[str, Any]) -> bool:
    """Tell whether a plain assignment throws away a share that an earlier line had put there."""
    node = step.node
    if not isinstance(node, ast.Assign) or not any(isinstance(t, ast.Name) and t.id == spelling for t in node.targets):
        return False
    reads = any(isinstance(part, ast.Name) and part.id == spelling for part in ast.walk(node.value))
    return not reads and bool(np.any(as_array(before.get(spelling, 0))))


def _execute(step: Step, names: dict[str, Any], file: str) -> Exception | None:
    code = compile(ast.Module([step.node], []), file, "exec")
    try:
        exec(code, names)  # noqa: S102 - running the user's lines is what it is for
    except Exception as error:  # noqa: BLE001 - reported with the line
        return error
    return None


def _compared(step: Step, spelling: str, mine: Any, gradients: list[Gradient]) -> CheckedLine:
    totals = [gradient.total for gradient in gradients]
    best = min((compare(spelling, mine, total, show=False) for total in totals), key=lambda result: result.maxdiff)
    right = any(close(mine, gradient.total, gradient.scale) for gradient in gradients)
    return CheckedLine(step.line, step.source, best, right)


def _blame(report: BackwardReport, step: Step, name: str | None, diagnosis: Diagnosis) -> None:
    report.wrong_line, report.wrong_source, report.wrong_name = step.line, step.source, name
    report.diagnosis = diagnosis


def _explain(wrong: WrongLine, history: list[tuple[Step, dict[str, Any]]]) -> tuple[Step, str | None, Diagnosis]:
    """Find the guilty line: this one, or a helper before it that assigns no gradient known by name."""
    diagnosis = diagnose(wrong)
    if diagnosis.kind in {UNKNOWN, FAILS}:
        for position, (step, _) in enumerate(history):
            if not step.targets:
                found = _repair_helper(wrong, history[position:])
                if found is not None:
                    return step, None, found
    return wrong.step, wrong.spelling, diagnosis


def _repair_helper(wrong: WrongLine, path: list[tuple[Step, dict[str, Any]]]) -> Diagnosis | None:
    """Try the edits of the first step of `path`, running what follows up to the wrong line."""
    (helper, before), *rest = path
    for edit in all_edits(helper.node, surroundings(wrong.truth, before)):
        names = after(edit.node, before)
        for node in (*(step.node for step, _ in rest), wrong.step.node):
            names = None if names is None else after(node, names)
        if names is not None and acceptable(names.get(wrong.spelling, ()), wrong.gradients, wrong.later):
            return Diagnosis(edit.kind, edit.words)
    return None
