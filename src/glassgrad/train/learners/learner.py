"""The interface between a training task and a model with its optimizer, for every engine; arrays in, arrays out.

eager       each op runs when it is called; gradients come from the tape
compiled    the same step, traced once and run as native code
manual      layers with a hand-written backward pass; the autograd engine is not loaded

All three start with the same weights and share the checkpoint format, so a run may switch engines.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from glassgrad import errors
from glassgrad.data.names import IGNORED
from glassgrad.train.kept.checkpoint import Stateful
from glassgrad.train.ranks import Ranks, counted, size_of

Array = np.ndarray

ENGINES = ("eager", "compiled", "manual")


MOST_SKIPPED = 100
"""This many skipped steps in a row end the run with an error."""


@dataclass(frozen=True)
class StepOptions:
    """Options of a step beyond forward pass, backward pass and optimizer.

    Arguments: compiled, one native program instead of single ops; accumulate, micro-batches per step; max_norm and
    clip_value, limits of the gradients; skip_nonfinite, skip steps with NaN or inf; norms, record the gradients'
    norm; dtype, the dtype of the forward pass ("" for that of the model).
    """

    compiled: bool = False
    accumulate: int = 1
    max_norm: float | None = None
    clip_value: float | None = None
    skip_nonfinite: bool = False
    norms: bool = False
    dtype: str = ""

    @property
    def plain(self) -> bool:
        """Whether a step is just forward pass, backward pass and optimizer step."""
        watched = self.skip_nonfinite or self.norms
        return self.accumulate == 1 and self.max_norm is None and self.clip_value is None and not watched


class Learner(Protocol):
    """A model and its optimizer."""

    model: Any
    parts: Mapping[str, Stateful]

    def step(self, inputs: Array, targets: Array) -> Array | float:
        """Make one training step and return the loss."""

    def share(self, ranks: Ranks) -> None:
        """From now on, compute a part of every batch, with gradients averaged over the ranks."""

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the following steps."""

    def logits(self, inputs: Array) -> Array:
        """Return the outputs in evaluation mode; the model stays in training mode."""

    def calibrate(self, inputs: Array) -> None:
        """Set the statistics of batch normalisation to those of all inputs."""

    def weights(self) -> dict[str, Array]:
        """Return every parameter and buffer under PyTorch's name for it."""

    def load_weights(self, weights: Mapping[str, Array]) -> None:
        """Load the result of `weights`. Raises `ValueError` or `RuntimeError` if it does not fit."""

    def gradients(self, inputs: Array, targets: Array) -> AbstractContextManager[float]:
        """Give every parameter the gradient of a batch within the block; yield the loss; then restore all state.

        Raises `errors.RunError` if the engine has no `.grad`.
        """

    @property
    def parameters(self) -> int:
        """The number of trainable numbers."""


class HasArrays(Protocol):
    """Examples: inputs (n, ...); targets (n,), or (n, length) for sequences, with `IGNORED` for targets to skip."""

    @property
    def inputs(self) -> Array:
        """Inputs, with examples along the first axis."""

    @property
    def targets(self) -> Array:
        """Class numbers."""


@dataclass(frozen=True)
class Measure:
    """A model's results on a set of examples: mean cross entropy in nats, and accuracy."""

    loss: float
    accuracy: float


def measure(logits: Callable[[Array], Array], examples: HasArrays, chunk: int = 8_192) -> Measure:
    """Evaluate a model, given as a function from inputs to logits, in chunks and in double precision.

    Logits are (n, classes), or (n, length, classes) for sequences; the mean is over all targets that are not ignored.

    Example:
        >>> from glassgrad.data import Examples
        >>> measure(lambda x: np.zeros((len(x), 2)), Examples(np.zeros((4, 1)), np.array([0, 0, 0, 1])))
        Measure(loss=0.6931471805599453, accuracy=0.75)
    """
    total, right, count = 0.0, 0, 0
    for inputs, targets in _chunks(examples, chunk):
        scores = np.asarray(logits(inputs), dtype=np.float64)
        counting = targets != IGNORED
        scores, targets = scores[counting], targets[counting]
        scores = scores - scores.max(axis=1, keepdims=True)
        chosen = scores[np.arange(len(targets)), targets]
        total += float((np.log(np.exp(scores).sum(axis=1)) - chosen).sum())
        right += int((scores.argmax(axis=1) == targets).sum())
        count += len(targets)
    return Measure(total / count, right / count)


def _chunks(examples: HasArrays, chunk: int) -> Iterator[tuple[Array, Array]]:
    for begin in range(0, len(examples.targets), chunk):
        yield examples.inputs[begin : begin + chunk], examples.targets[begin : begin + chunk]


class NormWindow:
    """Count, sum, sum of squares and largest of the finite gradient norms of a window of steps.

    They are stored behind a memory view. A compiled step guards everything of the learner that it can read, including
    numbers and arrays; each change of those would retrace it.
    """

    def __init__(self) -> None:
        self._sums = memoryview(array("d", [0.0] * 4))

    def add(self, norm: float) -> None:
        """Add the norm of a step."""
        if math.isfinite(norm):
            count, total, squares, largest = self._sums
            self.set((count + 1, total + norm, squares + norm * norm, max(largest, norm)))

    def set(self, values: Sequence[float] = (0.0, 0.0, 0.0, 0.0)) -> None:
        """Continue from the result of `values`, or reset."""
        self._sums[:] = array("d", values)

    def values(self) -> list[float]:
        """Return the sums, for a checkpoint."""
        return list(map(float, self._sums))

    def describe(self) -> dict[str, float]:
        """Return mean, standard deviation and maximum; empty if no norm was added."""
        count, total, squares, largest = self._sums
        if not count:
            return {}
        mean = total / count
        spread = math.sqrt(max(squares / count - mean * mean, 0.0))
        return {"norm": mean, "norm_std": spread, "norm_max": largest}


class CountedSteps:
    """Base of the learners of all engines: the options of a step, gradient norms, and counts of skipped steps.

    Arguments: the options.
    """

    def __init__(self, options: StepOptions) -> None:
        self.options = options
        self.norms = NormWindow()
        self.skipped = self._skipped_in_a_row = 0
        self._ranks: Ranks | None = None

    def _count(self, made: bool) -> None:
        """Count a step as made or skipped. Raises `errors.RunError` after too many skipped steps in a row."""
        if made:
            self._skipped_in_a_row = 0
            return
        self.skipped += 1
        self._skipped_in_a_row += 1
        if self._skipped_in_a_row == MOST_SKIPPED:
            raise errors.RUN_ONLY_SKIPS(count=MOST_SKIPPED)

    def _weighted(self, batches: Sequence[Sequence[Array]]) -> list[tuple[Sequence[Array], float]]:
        """Return this process's part of each batch of a step, and its weight in the step."""
        if self._ranks is None:
            sizes = [size_of(batch) for batch in batches]
            return [(batch, size / sum(sizes)) for batch, size in zip(batches, sizes, strict=True)]
        whole = sum(map(counted, batches))
        return [self._ranks.part(batch, whole) for batch in batches]

    def state_dict(self) -> dict[str, Any]:
        """Return the counters."""
        return {"skipped": [self.skipped, self._skipped_in_a_row], "norms": self.norms.values()}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Load what `state_dict` returned."""
        self.skipped, self._skipped_in_a_row = state["skipped"]
        self.norms.set(state["norms"])

    def extras(self) -> dict[str, float]:
        """Return the metrics besides the loss since the last call, and start a new window."""
        found: dict[str, float] = self.norms.describe()
        self.norms.set()
        if self.options.skip_nonfinite:
            found["skipped"] = self.skipped
        return found
