"""What a loop runs: a task says what a step is, where its batches come from, and when what is due."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from glassgrad.train.kept.checkpoint import Stateful
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.learner import Learner


class Task:
    """What is trained, and how often what else is done. A subclass or an instance sets what has no value here.

    Attributes:
        config: has `log_every`, in steps, and `save_every`, in seconds.
        learner: what callbacks see of the model; None for a bare function.
        parts: what a checkpoint keeps, in the order in which it is loaded.
        step: makes a step of a batch and returns the loss; an eager function or a compiled one.
        batch_at: returns the batch of a step, counted from 0, so that a resumed run gets those it would have had.
        rate_at: returns the learning rate of a step.
        set_rate: sets it for the steps to come.
        evaluate: returns the loss on the examples set aside, or a mapping with "loss" and what else was measured.
        extras: returns what a line of the metrics says besides the loss.
        steps: how many there are.
        eval_every: steps between validations.
        epoch_steps: steps to an epoch; 0 where there are none.
        held_out: what the examples set aside are called.
        skips: `step` leaves out what is not finite by itself, so that a loss of NaN is no reason to stop.
        save_share: about the largest share of the time that saving takes, however large the model and slow the disk.
        resume_by: how a user goes on with the run at `{path}`.
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
    save_share: float = 0.05
    resume_by: str = "--resume {path}"

    @property
    def validates(self) -> bool:
        """Whether there are examples set aside."""
        return True

    def facts(self) -> Mapping[str, Any]:
        """Return what has to be the same for a checkpoint to fit; asked once, before the first step."""
        return {}

    def check(self, facts: Mapping[str, Any], run: RunDirectory) -> None:
        """Raise `errors.InputError` if the facts of a checkpoint are not those of this task."""

    def save_model(self, run: RunDirectory) -> None:
        """Write, with every checkpoint, what is of use without the loop. Raises `OSError`."""


__all__ = ["Task"]
