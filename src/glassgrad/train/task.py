"""The interface of the loop: a task defines the step, its batches, and when validation and saving are due."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from glassgrad.train.kept.checkpoint import Stateful
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.learners.learner import Learner
from glassgrad.train.ranks import Ranks


class Task:
    """A model with its training schedule. A subclass or an instance sets the attributes without a value here.

    Attributes:
        config: has `log_every`, in steps, and `save_every`, in seconds.
        learner: the model as callbacks see it; None for a bare function.
        parts: the parts of a checkpoint, in the order in which they are loaded.
        step: makes a step on a batch and returns the loss; either eager or compiled.
        batch_at: returns the batch of a step, counted from 0, so that a resumed run gets the same batches.
        rate_at: returns the learning rate of a step.
        set_rate: sets the learning rate of the following steps.
        evaluate: returns the loss on the validation examples, or a mapping with "loss" and other measures.
        extras: returns further values for a line of the metrics.
        steps: the number of steps.
        eval_every: steps between validations.
        epoch_steps: steps per epoch; 0 if there are no epochs.
        held_out: the name of the validation examples.
        skips: whether `step` skips non-finite losses itself, so that a NaN loss does not stop the run.
        hopeless: the run ends if its recorded losses stay above this many times the loss of the first step.
        save_share: approximate upper limit of the fraction of time spent on saving, for any model and disk.
        ranks: the processes that train together; None for a single process.
        resume_by: the instruction for resuming the run at `{path}`.
    """

    config: Any
    learner: Learner | None = None
    parts: Mapping[str, Stateful]
    step: Callable[..., Any]
    batch_at: Callable[[int], tuple[Any, ...]]
    rate_at: Callable[[int], float]
    set_rate: Callable[[float], None]
    evaluate: Callable[[], float | Mapping[str, float]]
    extras: Callable[[], Mapping[str, float]] = dict
    steps: int
    eval_every: int
    epoch_steps: int = 0
    held_out: str = "validation"
    skips: bool = False
    hopeless: float = math.inf
    save_share: float = 0.05
    ranks: Ranks | None = None
    resume_by: str = "--resume {path}"

    @property
    def validates(self) -> bool:
        """Whether there are validation examples."""
        return True

    def facts(self) -> Mapping[str, Any]:
        """Return the facts that a checkpoint must match; called once, before the first step."""
        return {}

    def check(self, facts: Mapping[str, Any], run: RunDirectory) -> None:
        """Raise `errors.InputError` if the facts of a checkpoint are not those of this task."""

    def save_model(self, run: RunDirectory) -> None:
        """Write the model's own files with every checkpoint. Raises `OSError`."""


__all__ = ["Task"]
