"""`examine`: a quick check-up before training: one batch, the optimizer, and whether examples can be learnt."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.doctor import library, rules
from glassgrad.doctor.checkup import Batch, check_up, loss_of
from glassgrad.doctor.deeper import choice
from glassgrad.doctor.deeper.experiments import Bench, Outcome, Start, groups_of
from glassgrad.doctor.deeper.taken import Given
from glassgrad.doctor.facts import CheckUp, Finding
from glassgrad.doctor.graphs.graph import Graph
from glassgrad.doctor.library import Array, LossFunction, Module, Optimizer, Tensor
from glassgrad.doctor.parts import Parts
from glassgrad.doctor.reports.checkup_wording import facts_lines
from glassgrad.doctor.reports.wording import lines
from glassgrad.doctor.restoring.set_aside import aside
from glassgrad.doctor.run import Setup
from glassgrad.doctor.setup import setup_of

STEPS = 80
"""The number of steps of Adam on a few examples, if time allows."""
_FEW = 8
_RATE = 3e-3
_PARTS = 8


@dataclass(frozen=True)
class Examination:
    """The results of an examination.

    Attributes:
        check_up: the batch, the forward pass, the loss and the gradients.
        setup: facts about model and optimizer together; None without an optimizer.
        learnt: (steps, loss before, loss after) of training on eight examples only; NaN if not tried.
        leaks: examples whose output changes, in evaluation, when another example of the batch does; -1 if unknown.
        curvature: the loss's curvature along its gradient; plain SGD with a rate above 2 / curvature goes uphill.
        noise_scale: the batch size at which noise and signal of the gradient are equal (McCandlish et al. 2018).
        findings: those of the rules, errors first.
        outcomes: those of the two experiments about a symptom without a known cause; None if none were asked for.
        parts: what only a watched run tells of the model's parts, so without facts here.

    Example:
        >>> import glassgrad as gg
        >>> _ = gg.manual_seed(0)
        >>> model, inputs = gg.nn.Linear(4, 2), gg.randn(32, 4)
        >>> batch = inputs, (inputs[:, 0] > 0).long()
        >>> found = gg.doctor.examine(model, batch, gg.nn.functional.cross_entropy, report=False)
        >>> found.leaks, found.learnt[1] > found.learnt[2]
        (0, True)
    """

    check_up: CheckUp
    setup: Setup | None = None
    learnt: tuple[int, float, float] = (0, math.nan, math.nan)
    leaks: int = -1
    curvature: float = math.nan
    noise_scale: float = math.nan
    findings: tuple[Finding, ...] = ()
    outcomes: tuple[Outcome, ...] | None = None
    parts: Parts = field(default_factory=Parts)

    @property
    def graph(self) -> Graph:
        """The ops between the parameters and the loss."""
        return self.check_up.graph

    @property
    def healthy(self) -> bool:
        """Whether there are no errors or warnings."""
        return all(finding.severity == "info" for finding in self.findings)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def examine(
    model: Module,
    batch: Any,
    loss_fn: LossFunction | None = None,
    optimizer: Optimizer = None,
    *,
    seconds: float = 3.0,
    deeper: bool = False,
    report: bool = True,
    file: TextIO | None = None,
) -> Examination:
    """Examine a model before it is trained, on one batch; the model is restored bit for bit.

    It checks everything that `debug_training` does (inputs, weights, forward pass, loss, gradients, the ops in
    between), whether the optimizer fits the model, whether an example's output depends on another example, the
    curvature of the loss, the noise of the gradient, and whether a few examples can be memorised.

    Args:
        model: a module of glassgrad or PyTorch.
        batch: `(inputs, targets)`, tensors or arrays; a mapping is passed to the model as keywords.
        loss_fn: called with output and targets; by default the model returns the loss, or an object that has it.
        optimizer: the optimizer of the training, or several.
        seconds: time limit of training on a few examples.
        deeper: make two experiments if a symptom has no known cause, or if no rule finds anything.
        report: print the findings, to `file` or standard output.

    Raises:
        KindError: a model without `named_parameters()`.

    Example:
        >>> import glassgrad as gg
        >>> _ = gg.manual_seed(0)
        >>> model = gg.nn.Sequential(gg.nn.Linear(4, 16), gg.nn.Tanh(), gg.nn.Linear(16, 3))
        >>> batch = gg.randn(16, 4), gg.randint(0, 3, (16,))
        >>> found = gg.doctor.examine(model, batch, gg.nn.functional.cross_entropy, report=False)
        >>> found.healthy, found.learnt[0], found.leaks
        (True, 80, 0)
    """
    if not hasattr(model, "named_parameters"):
        raise errors.MONITOR_MODEL(owner="examine", given=type(model).__name__)
    frame = provenance.user_frame()
    found = check_up(model, batch, loss_fn)
    given = Batch(model, batch, loss_fn)
    optimizers = tuple(optimizer) if isinstance(optimizer, list | tuple) else (optimizer,) if optimizer else ()
    setup = setup_of(model, optimizers, frame) if optimizers else None
    extra: dict[str, Any] = {}
    if not found.failure and math.isfinite(found.loss) and hasattr(model, "register_forward_hook"):
        trial = _Trial(model, given, loss_fn)
        with np.errstate(all="ignore"):
            extra = {
                "leaks": trial.leaks(),
                "curvature": trial.curvature(),
                "noise_scale": trial.noise_scale(),
                "learnt": trial.learnt(seconds),
            }
    seen = Examination(found, setup, **extra)
    known = {finding.rule for finding in found.findings}
    added = [*rules.apply(rules.EXAMINATION_RULES, seen)]
    if setup is not None:
        added += [one for one in rules.apply(rules.SETUP_RULES, seen) if one.rule not in known]
    findings = rules.ordered((*found.findings, *added))
    outcomes = _tried(model, given, loss_fn, optimizers, findings) if deeper else None
    seen = Examination(found, setup, **extra, findings=findings, outcomes=outcomes)
    if report:
        print(seen, file=file or sys.stdout)
    return seen


def _tried(
    model: Module,
    given: Batch,
    loss_fn: LossFunction | None,
    optimizers: tuple[Optimizer, ...],
    findings: tuple[Finding, ...],
) -> tuple[Outcome, ...]:
    """Return the outcomes of the experiments for some findings, with quarters of the batch."""
    batches = Given(model, given, loss_fn).parts(4)
    first = optimizers[0] if optimizers else None
    return choice.run(Bench(model, batches, first, groups_of(first), Start(model)), findings)


class _Trial:
    """Experiments with a model and a batch, each of which restores the model."""

    def __init__(self, model: Module, given: Batch, loss_fn: LossFunction | None) -> None:
        self._model = model
        self._given = given
        self._loss_fn = loss_fn
        self._torch = library.is_torch(model)
        self._parameters = [parameter for _, parameter in model.named_parameters() if library.trainable(parameter)]

    def _loss(self, given: Batch | None = None) -> Tensor:
        given = self._given if given is None else given
        return loss_of(self._model(*given.inputs, **given.keywords), given, self._loss_fn)

    def _gradient(self, given: Batch | None = None) -> Array:
        """Return the gradient of the loss as one vector."""
        for parameter in self._parameters:
            parameter.grad = None
        self._loss(given).backward()
        parts = [library.gradient(parameter) for parameter in self._parameters]
        whole = [
            np.zeros(int(np.prod(parameter.shape))) if g is None else np.asarray(g, np.float64).reshape(-1)
            for g, parameter in zip(parts, self._parameters, strict=True)
        ]
        return np.concatenate(whole)

    def _move(self, direction: Array, length: float) -> None:
        start = 0
        for parameter in self._parameters:
            stop = start + int(np.prod(parameter.shape))
            part = (length * direction[start:stop]).reshape(tuple(parameter.shape))
            values = library.values(parameter)
            values += part.astype(values.dtype)  # shares memory with the parameter
            start = stop

    def learnt(self, seconds: float) -> tuple[int, float, float]:
        """Train on a few examples of the batch; return (steps, loss before, loss after)."""
        few = self._given if self._given.keywords else self._given.rows(slice(0, _FEW))
        lib = sys.modules["torch"] if self._torch else sys.modules["glassgrad"]
        with aside(self._model):
            optimizer = lib.optim.Adam(self._parameters, lr=_RATE)
            ends = time.perf_counter() + seconds
            first = last = math.nan
            step = 0
            for step in range(STEPS):
                optimizer.zero_grad()
                loss = self._loss(few)
                last = float(loss.detach())
                first = last if step == 0 else first
                if not math.isfinite(last) or time.perf_counter() > ends:
                    break
                loss.backward()
                optimizer.step()
        return step + 1, first, last

    def leaks(self) -> int:
        """Return how many of the other examples change their output when the last one is replaced by the first."""
        inputs = self._given.inputs
        sizes = {len(value) for value in inputs if library.is_tensor(value) and len(value.shape)}
        if self._given.keywords or len(sizes) != 1 or min(sizes) < 3:
            return -1
        lib = sys.modules["torch"] if self._torch else sys.modules["glassgrad"]
        order = [*range(min(sizes) - 1), 0]
        swapped = [value[order] if library.is_tensor(value) and len(value.shape) else value for value in inputs]
        with aside(self._model), lib.no_grad():
            self._model.eval()
            outputs = [library.first_tensor(self._model(*given)) for given in (inputs, swapped)]
        one, other = (library.numbers(output) for output in outputs)
        if one is None or other is None or one.shape != other.shape or one.ndim < 1 or len(one) != min(sizes):
            return -1
        far = 1e-4 * max(float(np.abs(one).max()), 1e-30)
        return int((np.abs(one - other)[:-1].reshape(len(one) - 1, -1).max(1) > far).sum())

    def curvature(self) -> float:
        """Return gᵀHg / gᵀg from the gradients at both ends of a short step along the gradient."""
        with aside(self._model):
            states = _random_states(self._torch)
            g = self._gradient()
            size = float(g @ g)
            weights = math.sqrt(
                sum(float(np.square(library.values(one), dtype=np.float64).sum()) for one in self._parameters)
            )
            if not size > 0 or not math.isfinite(size) or not weights:
                return math.nan
            length = 1e-3 * weights / math.sqrt(size)
            states()
            self._move(g, -length)
            moved = self._gradient()
        return float((g @ g - g @ moved) / (length * size))

    def noise_scale(self) -> float:
        """Return the batch size at which noise and signal are equal, from the gradients of parts of the batch."""
        inputs, targets = self._given.inputs, self._given.targets
        tensors = [value for value in (*inputs, targets) if library.is_tensor(value) and len(value.shape)]
        count = len(tensors[0]) if tensors else 0
        if self._given.keywords or targets is None or count < 2 * _PARTS or any(len(one) != count for one in tensors):
            return math.nan
        part = count // _PARTS
        with aside(self._model):
            whole = self._gradient()
            squares = []
            for at in range(_PARTS):
                rows = slice(at * part, at * part + part)
                g = self._gradient(self._given.rows(rows))
                squares.append(float(g @ g))
        small, large = float(np.mean(squares)), float(whole @ whole)
        signal = (count * large - part * small) / (count - part)
        noise = (small - large) / (1 / part - 1 / count)
        return noise / signal if signal > 0 and noise > 0 else math.nan


def _random_states(torch: bool) -> Callable[[], None]:
    """Return a function that restores the present random state."""
    if torch:
        lib = sys.modules["torch"]
        state = lib.get_rng_state()
        return lambda: lib.set_rng_state(state)
    ours = sys.modules["glassgrad.engine.random"]
    states = ours.get_states()
    return lambda: ours.set_states(states)


def _lines(found: Examination) -> Iterator[str]:
    yield from facts_lines(found.check_up)
    steps, first, last = found.learnt
    if steps:
        told = "learnt       the loss of only a few examples goes"
        yield f"{told} from {first:.4g} to {last:.4g} in {steps} steps of Adam"
    if found.curvature > 0:
        stable = 2 / found.curvature
        yield f"curvature    {found.curvature:.3g} along the gradient: plain SGD is stable below a rate of {stable:.2g}"
    if not math.isnan(found.noise_scale):
        yield f"noise        that of the gradient equals its signal at a batch size of about {found.noise_scale:.0f}"
    yield ""
    yield from lines(found.findings)
    yield from choice.lines(found.findings, found.outcomes)


__all__ = ["Examination", "examine"]
