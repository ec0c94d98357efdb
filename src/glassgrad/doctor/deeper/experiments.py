"""The experiments: each computes losses from the first weights, restores everything, and says what it points to."""

from __future__ import annotations

import inspect
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.deeper.taken import Again, Taken
from glassgrad.doctor.library import Array, Module, Optimizer, Tensor
from glassgrad.doctor.restoring.set_aside import aside

STEPS, ENOUGH = 150, 60
"""The most steps of one training in an experiment, if time allows, and the fewest that tell something."""
_RATE = 3e-3
LEARNT, FASTER, FAR = 0.5, 0.9, 1.5
"""Shares of a loss: learnt if at most this is left; clearly lower; clearly higher."""


class Start:
    """The values of the parameters and buffers of a model, to be put back any number of times."""

    def __init__(self, model: Module) -> None:
        self._kept = [(one, np.array(library.numbers(one))) for one in library.tensors_of(model)]

    def restore(self) -> None:
        """Write the values into the model."""
        for tensor, before in self._kept:
            if library.is_torch(tensor):
                tensor.data.copy_(library.tensor_of(before, True))
            else:
                library.values(tensor)[...] = before


def groups_of(optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return the options of the groups of an optimizer as they are now, without parameters."""
    groups = () if optimizer is None else optimizer.param_groups
    return [{name: value for name, value in group.items() if name != "params"} for group in groups]


@dataclass(frozen=True)
class Outcome:
    """The result of an experiment.

    Attributes:
        name: of the experiment.
        seen: what was done and measured.
        means: what follows from it.
        values: the losses that were compared.
        points: whether it points to a cause.
    """

    name: str
    seen: str
    means: str
    values: tuple[float, ...] = ()
    points: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.seen}: {self.means}"


@dataclass(frozen=True)
class Bench:
    """What experiments need.

    Attributes:
        model: the model; `start` holds the weights that its training begins with.
        batches: batches whose loss can be computed again.
        optimizer: that of the training, None if it is unknown; `groups` are its options at the beginning.
        seconds: the time limit of one training.
    """

    model: Module
    batches: Sequence[Again]
    optimizer: Optimizer
    groups: Sequence[dict[str, Any]]
    start: Start
    seconds: float = 10.0

    @property
    def parameters(self) -> list[Tensor]:
        """The parameters that are trained."""
        return [one for _, one in self.model.named_parameters() if library.trainable(one)]

    @property
    def lib(self) -> Any:
        """The library of the model."""
        return sys.modules["torch" if library.is_torch(self.model) else "glassgrad"]

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Set the model to its first weights in the block, and restore everything behind it."""
        with aside(self.model), np.errstate(all="ignore"):
            self.start.restore()
            yield

    def train(self, optimizer: Optimizer, batches: Sequence[Again], orders: Sequence[Array | None] = ()) -> list[float]:
        """Train on batches in turns; return the losses before the steps, up to one that is not finite."""
        ends = time.perf_counter() + self.seconds
        found: list[float] = []
        for step in range(STEPS):
            at = step % len(batches)
            for one in self.parameters:
                one.grad = None
            loss = batches[at].loss(orders[at] if orders else None)
            found.append(float(loss.detach()))
            if not math.isfinite(found[-1]) or time.perf_counter() > ends:
                break
            loss.backward()
            optimizer.step()
        return found

    def mean(self, batches: Sequence[Again]) -> float:
        """Return the mean loss of batches with the present weights; NaN if it is not finite."""
        with self.lib.no_grad():
            found = [library.number(one.loss().detach()) for one in batches]
        known = [value for value in found if value is not None]
        mean = float(np.mean(known)) if known else math.nan
        return mean if math.isfinite(mean) else math.nan

    def adam(self) -> Optimizer:
        """Return an optimizer that nearly always works."""
        return self.lib.optim.Adam(self.parameters, lr=_RATE)


def one_batch(bench: Bench) -> Outcome:
    """Try to learn one batch by heart."""
    batch = bench.batches[:1]
    with bench.begun():
        first = bench.mean(batch)
        steps = len(bench.train(bench.adam(), batch))
        last = bench.mean(batch)
    seen = f"in {steps} steps of Adam on one batch alone the loss goes from {first:.3g} to {last:.3g}"
    if last > LEARNT * first and steps < ENOUGH and math.isfinite(last):
        return Outcome("one batch", seen, "the time was over too soon to tell", (first, last))
    if last <= LEARNT * first:
        means = "model, loss and gradients work; look at the data, the rate and the number of steps"
        return Outcome("one batch", seen, means, (first, last))
    means = "not even one batch can be learnt, so the fault is in the model, the loss or the labels"
    return Outcome("one batch", seen, means, (first, last), points=True)


def labels(bench: Bench) -> Outcome:
    """Compare the loss of batches set aside after training with the true labels and with permuted ones."""
    half = len(bench.batches) // 2
    rows = [one.rows() for one in bench.batches]
    permutable = all(rows) and all(one.labels() for one in bench.batches if isinstance(one, Taken))
    if not half or not permutable:
        return Outcome("labels", "there are too few batches with labels", "nothing can be said")
    trained, held_out = bench.batches[:half], bench.batches[half:]
    draw = np.random.default_rng(0)
    found = []
    for permuted in (False, True):
        orders = [draw.permutation(count) if permuted else None for count in rows[:half]]
        with bench.begun():
            steps = len(bench.train(bench.adam(), trained, orders))
            found.append(bench.mean(held_out))
        if steps < ENOUGH and math.isfinite(found[-1]):
            return Outcome("labels", f"{steps} steps were made", "the time was over too soon to tell")
    true, mixed = found
    seen = f"on batches set aside the loss is {true:.3g} after training with the labels, {mixed:.3g} with permuted ones"
    if true <= FASTER * mixed:
        return Outcome("labels", seen, "the inputs tell something about the labels", (true, mixed))
    means = "the inputs tell nothing about the labels: look for a shuffle or a sort of one of them alone"
    return Outcome("labels", seen, means, (true, mixed), points=True)


def rate(bench: Bench) -> Outcome:
    """Train with half, the same and twice the rate."""
    if bench.optimizer is None:
        return Outcome("rate", "the optimizer is not known", "nothing can be said")
    late: list[float] = []
    last: list[float] = []
    first = math.nan
    for factor in (0.5, 1.0, 2.0):
        with bench.begun():
            optimizer = _like(bench, factor)
            if optimizer is None:
                return Outcome("rate", "the optimizer cannot be made again", "nothing can be said")
            first = bench.mean(bench.batches)
            losses = bench.train(optimizer, bench.batches)
            late.append(float(np.mean(losses[len(losses) // 2 :])) if losses else math.nan)
            last.append(bench.mean(bench.batches))
    shown = ", ".join(f"{value:.3g} {told}" for value, told in zip(late, _TIMES, strict=True))
    seen = f"it begins at {first:.3g}; in the second half of {STEPS} steps the loss is on average {shown}"
    values = (first, *late)
    _, same, double = last
    if math.isfinite(late[0]) and not late[1] <= late[0] / FASTER:
        return Outcome("rate", seen, "the rate is too high", values, points=True)
    if first - double > FAR * (first - same) > 0 and same > LEARNT * first:
        return Outcome("rate", seen, "the loss falls in proportion to the rate, which is too low", values, points=True)
    return Outcome("rate", seen, "the rate is not the cause", values)


_TIMES = "with half the rate", "with the rate", "with twice the rate"


def _like(bench: Bench, factor: float) -> Optimizer | None:
    """Return a new optimizer with the options of the training's at its beginning, and another rate."""
    kind = type(bench.optimizer)
    known = inspect.signature(kind.__init__).parameters
    groups = []
    for options, held in zip(bench.groups, bench.optimizer.param_groups, strict=False):
        told = {name: value for name, value in options.items() if name in known}
        groups.append({**told, "params": list(held["params"]), "lr": factor * options.get("initial_lr", options["lr"])})
    try:
        return kind(groups, lr=groups[0]["lr"])
    except (TypeError, ValueError, IndexError, KeyError):
        return None


def modes(bench: Bench) -> Outcome:
    """Compare the loss of the same batches in training and in evaluation mode, with the weights of the end."""
    found = []
    for training in (True, False):
        with aside(bench.model), np.errstate(all="ignore"):
            bench.model.train(training)
            found.append(bench.mean(bench.batches))
    train, evaluation = found
    seen = f"on the same batches the loss is {train:.3g} in training mode and {evaluation:.3g} in evaluation mode"
    if evaluation > FAR * train:
        means = "running statistics or dropout make the difference: look at momentum, batch size and the mode"
        return Outcome("modes", seen, means, (train, evaluation), points=True)
    return Outcome("modes", seen, "the modes agree", (train, evaluation))


EXPERIMENTS: dict[str, Callable[[Bench], Outcome]] = {
    "one batch": one_batch,
    "labels": labels,
    "rate": rate,
    "modes": modes,
}
"""The experiments by name."""
