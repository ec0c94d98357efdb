"""Callbacks: code of others that a run calls at its events, and what it shows them.

A callback never changes what comes out of a run unless it means to: `RunState.gradients` gives the gradients of the
coming batch without touching the random numbers, the running statistics or the compiled step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from glassgrad import errors

if TYPE_CHECKING:
    from glassgrad.train.kept.rundir import RunDirectory
    from glassgrad.train.loop import Loop
    from glassgrad.train.task import Task


class RunState:
    """What a callback sees of a run.

    Attributes:
        model, optimizer: those that are trained; None in a loop around a bare function.
        directory: where the run keeps its files; None when it keeps none.
        batch: in `on_step_start` what the coming step is trained on, in `on_step_end` what it was.
        loss: of the last step; None before the first.
    """

    def __init__(self, loop: Loop, run: RunDirectory | None, write: Callable[..., None]) -> None:
        self._loop = loop
        self._write = write
        self._run = run
        self.directory = run.path if run is not None else None
        self.batch: tuple[Any, ...] | None = None
        self.loss: float | None = None
        learner = loop.task.learner
        self.model: Any = getattr(learner, "model", None)
        self.optimizer: Any = getattr(learner, "optimizer", None)

    @property
    def task(self) -> Task:
        """What is run, and when what is due."""
        return self._loop.task

    @property
    def step(self) -> int:
        """How many steps are done."""
        return self._loop.step

    @property
    def steps(self) -> int:
        """How many steps the run has."""
        return self._loop.task.steps

    @property
    def epoch(self) -> int:
        """How many epochs are done; 0 throughout where there are none."""
        every = self._loop.task.epoch_steps
        return self._loop.step // every if every else 0

    @property
    def rate(self) -> float:
        """The learning rate of the coming step."""
        return self._loop.task.rate_at(self._loop.step)

    @property
    def measures(self) -> Mapping[str, float]:
        """What the last validation has measured; empty before the first."""
        return self._loop.measures

    def stop(self, reason: str) -> None:
        """End the run after this step, as if it had been its last."""
        self._loop.ended = reason

    def log(self, event: str, **values: Any) -> None:
        """Add a record of this step to the metrics; numbers that are not finite are stored as null.

        Raises `errors.RunError` when the disk is full.
        """
        self._write(event=event, step=self.step, **{key: _storable(value) for key, value in values.items()})

    def saving(self) -> AbstractContextManager[None]:
        """For files that a callback writes into `directory`: an `OSError` in the block becomes one about the run."""
        return self._loop.saving(self._run)

    def gradients(self) -> AbstractContextManager[float]:
        """Within the block every parameter's `.grad` is that of the coming batch; the value is its loss.

        For `on_step_start`. Forward and backward pass are made eagerly, so that hooks on the model run; afterwards
        everything is as before, and the step itself is made as if nobody had looked.

        Raises `errors.RunError` for a model without gradients to look at (the engine `manual`).
        """
        learner = self._loop.task.learner
        if learner is None:
            raise errors.CALLBACK_NO_GRADIENTS(reason="the loop was given a bare function and no `learner`")
        if self.batch is None:
            raise errors.CALLBACK_NO_GRADIENTS(reason="no batch is at hand yet; call it from `on_step_start`")
        return learner.gradients(*self.batch)

    def clip(self) -> float | None:
        """Within `gradients`, clip as the run does; return the norm before, or None if the run does not clip."""
        clip = getattr(self._loop.task.learner, "clip", None)
        norm = clip() if clip is not None else None
        return None if norm is None else float(norm)


class Callback:
    """Base of callbacks: every method may be left as it is, and does nothing.

    A callback that has to go on where it was when a run is resumed returns what it needs from `state_dict`.

    Attributes:
        every: steps between two calls of `on_step_start` and of `on_step_end`; what divides the step counts.

    Example:
        >>> class Watch(Callback):
        ...     every = 100
        ...     def on_step_end(self, run):
        ...         print(run.step, run.loss)
    """

    every: int = 1

    def on_train_start(self, run: RunState) -> None:
        """Training begins, or goes on at `run.step`."""

    def on_step_start(self, run: RunState) -> None:
        """A step is about to be made on `run.batch`; `run.gradients()` shows its gradients."""

    def on_step_end(self, run: RunState) -> None:
        """A step was made; `run.loss` is its loss."""

    def on_epoch_end(self, run: RunState) -> None:
        """`run.epoch` epochs are done."""

    def on_validation_end(self, run: RunState, measures: Mapping[str, float]) -> None:
        """The examples set aside were measured: "loss", and what else was asked for."""

    def on_train_end(self, run: RunState) -> None:
        """All steps are done, or the run was asked to stop; not called after an error."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint has to keep: numbers, text and arrays, in lists and dictionaries."""
        return {}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Take over what `state_dict` returned."""


class Callbacks:
    """The callbacks of a run: who is called when, and their part of a checkpoint."""

    def __init__(self, callbacks: Iterable[Callback] = ()) -> None:
        self.all = tuple(callbacks)
        for one in self.all:
            if one.every < 1:
                raise errors.CALLBACK_EVERY(owner=type(one).__name__, given=one.every)
        self._starting = self._that_have("on_step_start")
        self._ending = self._that_have("on_step_end")

    def _that_have(self, method: str) -> tuple[Callback, ...]:
        """Return those that say something to an event, so that the hot loop pays for nobody else."""
        return tuple(one for one in self.all if getattr(type(one), method, None) is not getattr(Callback, method))

    def due(self, step: int) -> int | None:
        """Return the next step after `step` at which somebody has to be called."""
        found = (step - step % one.every + one.every for one in (*self._starting, *self._ending))
        return min(found, default=None)

    def starting(self, step: int) -> list[Callback]:
        """Return those that want to see the step that follows `step` steps."""
        return [one for one in self._starting if step % one.every == 0]

    def ending(self, step: int) -> list[Callback]:
        """Return those that want to see the step that made `step` steps."""
        return [one for one in self._ending if step % one.every == 0]

    def call(self, method: str, *args: Any) -> None:
        """Call a method of everybody."""
        for one in self.all:
            getattr(one, method)(*args)

    def state_dict(self) -> dict[str, Any]:
        """Return the states by the names of the classes, in order."""
        found: dict[str, Any] = {}
        for one in self.all:
            state = one.state_dict()
            if state:
                found.setdefault(type(one).__name__, []).append(state)
        return found

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Take over states; a callback that a run did not have before begins anew."""
        left = {name: list(states) for name, states in state.items()}
        for one in self.all:
            if left.get(type(one).__name__):
                one.load_state_dict(left[type(one).__name__].pop(0))


def _storable(value: Any) -> Any:
    """JSON has no NaN and no infinity, and knows nothing of arrays."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _storable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


__all__ = ["Callback", "RunState"]
