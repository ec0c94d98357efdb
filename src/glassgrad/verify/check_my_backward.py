"""Check a hand-written backward pass line by line, and name the first line that is wrong."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array
from glassgrad.verify.compare import Comparison, as_array, compare
from glassgrad.verify.derivation import Derivation, Step, execute, parse
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
    kink_at,
    surroundings,
)
from glassgrad.verify.edits import ALIAS, all_edits
from glassgrad.verify.spy import Spy
from glassgrad.verify.truth import Gradient, Truth, find_truth
from glassgrad.verify.words import speaking, words


@dataclass(frozen=True)
class CheckedLine:
    """A line that assigned a gradient, and its comparison; if it is not `complete`, later lines add the rest.

    Example:
        >>> from glassgrad.verify import check_my_backward
        >>> def square(x):
        ...     return (x * x).sum()
        >>> line = check_my_backward("dx = 3 * x", square, {"x": [1.0, 2.0]}, show=False).lines[0]
        >>> line.line, line.comparison.exact
        (1, False)
    """

    line: int
    source: str
    comparison: Comparison
    complete: bool
    kink: str = ""  # why a gradient that differs from ours is equally valid


def _note(checked: CheckedLine, report: BackwardReport) -> str:
    if checked.kink:
        return f"  kink: {checked.kink}"
    if checked.complete:
        return ""
    return "  <- wrong" if checked.line == report.wrong_line else "  (so far)"


@dataclass
class BackwardReport:
    """The result of `check_my_backward`. True if every line is right.

    `wrong_line`, `wrong_source`, `wrong_name` and `diagnosis` describe the first wrong line, and are None if there is
    none; `error` is the exception if it could not be run. `missing` lists inputs without a derived gradient.

    Example:
        >>> from glassgrad.verify import check_my_backward
        >>> def square(x):
        ...     return (x * x).sum()
        >>> report = check_my_backward("dx = 3 * x", square, {"x": [1.0, 2.0]}, show=False)
        >>> bool(report), report.lines[0].source
        (False, 'dx = 3 * x')
    """

    lines: list[CheckedLine] = field(default_factory=list)
    wrong_line: int | None = None
    wrong_source: str | None = None
    wrong_name: str | None = None
    diagnosis: Diagnosis | None = None
    error: Exception | None = None
    missing: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.wrong_line is None

    def __str__(self) -> str:
        out = [f"line {checked.line:>3} | {checked.comparison}{_note(checked, self)}" for checked in self.lines]
        if self.diagnosis is not None:
            out += ["", f"The first wrong line is line {self.wrong_line}:", f"    {self.wrong_source}"]
            out += [f"{self.wrong_name}: {self.diagnosis.kind}. {self.diagnosis.words}."]
        else:
            out += ["", f"All {len({line.comparison.name for line in self.lines})} gradients are right."]
        if self.missing:
            out += [f"Not derived: {', '.join(f'd{name}' for name in self.missing)}."]
        return "\n".join(out)


def check_my_backward(
    source_or_function: str | Callable[..., Any],
    forward: Callable[..., Any],
    inputs: Mapping[str, Array] | Sequence[Array],
    *,
    show: bool = True,
) -> BackwardReport:
    """Run a hand-written derivation line by line, compare every gradient with the true one, and report.

    `forward` is a function of `inputs` that returns the loss; write it one named step per line. The derivation, text or
    a function, assigns `dNAME` (or `d_NAME`, `dL_dNAME`, `grad_NAME`) for variables NAME of the forward pass. It can
    use all these variables as NumPy arrays, or as Tensors if it is written for PyTorch: `torch` and `F` are then ours.
    A notebook cell may be given unchanged. A variable used several times may be assigned first and added to later.
    Everything runs in float64. The report is printed unless `show` is False.

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
    forward = speaking(forward)
    spy = Spy()
    truth = find_truth(forward, inputs, spy)
    truth.applied = spy.applied
    derivation = parse(source_or_function, truth.gradients)
    report = checked(derivation, truth, names_for(derivation, forward))
    derived = {name for step in derivation.steps for _, name in step.targets}
    report.missing = [name for name in _input_names(forward, truth) if name not in derived]
    if show:
        sys.stdout.write(f"{report}\n")
    return report


def names_for(derivation: Derivation, forward: Callable[..., Any]) -> dict[str, Any]:
    """Return the names available to a derivation besides the variables of the forward pass."""
    around = {**getattr(forward, "__globals__", {}), **inspect.getclosurevars(forward).nonlocals}
    return {"np": np, **words(), **derivation.names, **around}


def checked(derivation: Derivation, truth: Truth, names: Mapping[str, Any]) -> BackwardReport:
    """Run a derivation on arrays or on Tensors, depending on how it is written, and report."""
    run = _Run(derivation, truth, {**names, **_values(truth, as_tensors=derivation.in_torch)})
    report = run.report
    if run.failed:
        # A line with PyTorch's methods fails on arrays; if Tensors get further, that was the reason.
        again = _Run(derivation, truth, {**names, **_values(truth, as_tensors=not derivation.in_torch)}).report
        if len(again.lines) > len(report.lines) or again:
            report = again
    return report


def _input_names(forward: Any, truth: Truth) -> list[str]:
    code = forward.__code__
    return [name for name in code.co_varnames[: code.co_argcount] if name in truth.gradients]


def _values(truth: Truth, as_tensors: bool) -> dict[str, Any]:
    """Return copies of the variables of the forward pass, which a derivation may overwrite."""
    if as_tensors:
        return {
            name: Tensor(value.copy()) if isinstance(value, np.ndarray) else value
            for name, value in truth.values.items()
        }
    return {name: copied(value) for name, value in truth.values.items()}


class _Run:
    """Runs the steps up to the first wrong one. `failed` tells whether a line could not be run."""

    def __init__(self, derivation: Derivation, truth: Truth, names: dict[str, Any]) -> None:
        self.derivation, self.truth, self.names = derivation, truth, names
        self.report = BackwardReport()
        self.failed = False
        self.history: list[_Past] = []
        self.finished: dict[str, tuple[Any, int]] = {}  # right gradients, and the lines that computed them
        for step in derivation.steps:
            if not self.take(step):
                break

    def take(self, step: Step) -> bool:
        """Run one step and judge the gradients that it assigned; return False to end the run."""
        past = _Past(step, {key: copied(value) for key, value in self.names.items()}, judged=bool(step.targets))
        error = execute(step.node, self.names, self.derivation.file)
        self.failed, self.report.error = error is not None, error
        if error is not None and not step.targets:
            self.blame(step, None, Diagnosis(FAILS, f"{type(error).__name__}: {error}"))
            return False
        for spelling, name in step.targets:
            rest = [other for other in self.derivation.steps[step.number + 1 :] if (spelling, name) in other.targets]
            gradients = self.truth.gradients[name]
            mine = None if error is not None else self.names[spelling]
            if error is None:
                self.report.lines.append(_compared(step, spelling, mine, gradients))
            may_grow = bool(rest) and not _overwrites(step, spelling, past.before)
            if error is None and acceptable(mine, gradients, later=may_grow):
                continue
            if error is None and not rest and self.at_kink(name, mine):
                continue
            if error is None and any(_reworks(other, spelling) for other in rest):
                past.judged = False  # unfinished: judged after its last line has run
                continue
            wrong = WrongLine(step, name, spelling, past.before, mine, error, bool(rest), self.truth, gradients)
            self.blame(*_explain(wrong, self.history))
            return False
        self.history.append(past)
        return self.keeps_others(step)

    def at_kink(self, name: str, mine: Array) -> bool:
        """Tell whether a gradient differs from ours only at kinks; if so, judge what follows by this gradient."""
        found = kink_at(self.truth, name, as_array(mine))
        if found is None or not found.between:
            return False
        where = f"{found.entries} entries of {name} are where {', '.join(found.ops)} has no derivative"
        line = dataclasses.replace(self.report.lines[-1], kink=f"{where}; this slope is as good as ours", complete=True)
        self.report.lines[-1] = line
        self.truth.take_over(name, as_array(mine))
        return True

    def keeps_others(self, step: Step) -> bool:
        """Tell whether a step left the gradients of other names unchanged; blame it if not."""
        own = {spelling for spelling, _ in step.targets}
        for spelling, (was, made) in self.finished.items():
            now = as_array(self.names.get(spelling))
            if spelling not in own and now.shape == was.shape and not np.array_equal(now, was, equal_nan=True):
                same = [name for name in own if np.shares_memory(as_array(self.names[name]), now)]
                names = " and ".join([*same, spelling])
                words = (
                    f"it changes {spelling} too, which line {made} had right: {names} are one array; write a copy "
                    "where the second name is made, with .copy() or .clone()"
                )
                self.blame(step, spelling, Diagnosis(ALIAS, words))
                return False
        for spelling, name in step.targets:
            if any(close(self.names[spelling], one.total, one.scale) for one in self.truth.gradients[name]):
                self.finished[spelling] = np.array(as_array(self.names[spelling])), step.line
        return True

    def blame(self, step: Step, name: str | None, diagnosis: Diagnosis) -> None:
        report = self.report
        report.wrong_line, report.wrong_source, report.wrong_name = step.line, step.source, name
        report.diagnosis = diagnosis


@dataclass
class _Past:
    """A step that ran, with the names before it; `judged` if it assigned a gradient that could be compared."""

    step: Step
    before: dict[str, Any]
    judged: bool


def _reworks(step: Step, spelling: str) -> bool:
    """Tell whether a later line transforms a gradient instead of adding a term: dx /= n, dx[i] -= 1, dx = dx.T."""
    node = step.node
    if isinstance(node, ast.AugAssign):
        return not isinstance(node.op, ast.Add) or isinstance(node.target, ast.Subscript)
    if isinstance(node, ast.Assign):
        indexed = any(isinstance(target, ast.Subscript) for target in node.targets)
        return indexed or any(isinstance(part, ast.Name) and part.id == spelling for part in ast.walk(node.value))
    return not (isinstance(node, ast.Expr) and ".add" in ast.unparse(node))


def _overwrites(step: Step, spelling: str, before: Mapping[str, Any]) -> bool:
    """Tell whether a plain assignment discards a term stored by an earlier line."""
    node = step.node
    if not isinstance(node, ast.Assign) or not any(isinstance(t, ast.Name) and t.id == spelling for t in node.targets):
        return False
    reads = any(isinstance(part, ast.Name) and part.id == spelling for part in ast.walk(node.value))
    return not reads and bool(np.any(as_array(before.get(spelling, 0))))


def _compared(step: Step, spelling: str, mine: Array, gradients: list[Gradient]) -> CheckedLine:
    totals = [gradient.total for gradient in gradients]
    best = min((compare(spelling, mine, total, show=False) for total in totals), key=lambda result: result.maxdiff)
    right = any(close(mine, gradient.total, gradient.scale) for gradient in gradients)
    return CheckedLine(step.line, step.source, best, right)


def _explain(wrong: WrongLine, history: list[_Past]) -> tuple[Step, str | None, Diagnosis]:
    """Find the line at fault: this one, or an earlier one that was not judged."""
    diagnosis = diagnose(wrong)
    if diagnosis.kind in {UNKNOWN, FAILS}:
        for position, past in enumerate(history):
            found = None if past.judged else _repair_earlier(wrong, history[position:])
            if found is not None:
                names = [spelling for spelling, _ in past.step.targets]
                return past.step, names[0] if names else None, found
    return wrong.step, wrong.spelling, diagnosis


def _repair_earlier(wrong: WrongLine, path: list[_Past]) -> Diagnosis | None:
    """Try edits of the first step of `path`, then run the following steps up to the wrong line."""
    first, *rest = path
    for edit in all_edits(first.step.node, surroundings(wrong.truth, first.before)):
        names = after(edit.node, first.before)
        for node in (*(past.step.node for past in rest), wrong.step.node):
            names = None if names is None else after(node, names)
        if names is not None and acceptable(names.get(wrong.spelling, ()), wrong.gradients, wrong.later):
            return Diagnosis(edit.kind, edit.words)
    return None
