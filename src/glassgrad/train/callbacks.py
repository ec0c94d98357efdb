"""Callbacks: user code that a run calls at its events, and their view of the run.

A callback does not change the result of a run unless it wants to: `RunState.gradients` returns the gradients of the
next batch without changing the random numbers, the running statistics or the compiled step.
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
    """A callback's view of a run.

    Attributes:
        model, optimizer: the trained model and its optimizer; None in a loop around a bare function.
        directory: the directory of the run's files; None without files.
        batch: the batch of the next step in `on_step_start`, of the last step in `on_step_end`.
        loss: the loss of the last step; None before the first.
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
        """The task, which also decides when validation, logging and saving are due."""
        return self._loop.task

    @property
    def step(self) -> int:
        """The number of steps done."""
        return self._loop.step

    @property
    def steps(self) -> int:
        """The number of steps of the run."""
        return self._loop.task.steps

    @property
    def epoch(self) -> int:
        """The number of epochs done; always 0 if the task has none."""
        every = self._loop.task.epoch_steps
        return self._loop.step // every if every else 0

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        return self._loop.task.rate_at(self._loop.step)

    @property
    def measures(self) -> Mapping[str, float]:
        """The results of the last validation; empty before the first."""
        return self._loop.measures

    def stop(self, reason: str) -> None:
        """End the run after this step, as if it had been its last."""
        self._loop.ended = reason

    def log(self, event: str, **values: Any) -> None:
        """Add a record of this step to the metrics; numbers that are not finite are stored as null.

        Raises `errors.RunError` if the disk is full.
        """
        self._write(event=event, step=self.step, **{key: _storable(value) for key, value in values.items()})

    def saving(self) -> AbstractContextManager[None]:
        """Turn an `OSError` in the block, from a file written into `directory`, into a `RunError`."""
        return self._loop.saving(self._run)

    def gradients(self) -> AbstractContextManager[float]:
        """Give every parameter the gradient of the next batch within the block; yield the loss.

        For `on_step_start`. Forward and backward pass run eagerly, so hooks on the model run. Afterwards all state is
        restored, so the step itself is unaffected.

        Raises `errors.RunError` for a model without `.grad` (the engine `manual`).
        """
        learner = self._loop.task.learner
        if learner is None:
            raise errors.CALLBACK_NO_GRADIENTS(reason="the loop was given a bare function and no `learner`")
        if self.batch is None:
            raise errors.CALLBACK_NO_GRADIENTS(reason="there is no batch yet; call it from `on_step_start`")
        return learner.gradients(*self.batch)

    def clip(self) -> float | None:
        """Clip inside `gradients` as the run does; return the norm before, or None if the run does not clip."""
        clip = getattr(self._loop.task.learner, "clip", None)
        norm = clip() if clip is not None else None
        return None if norm is None else float(norm)


class Callback:
    """Base of callbacks: each method does nothing unless overridden.

    A callback that must continue in a resumed run returns its state from `state_dict`.

    Attributes:
        every: `on_step_start` and `on_step_end` are called at steps that are multiples of `every`.

    Example:
        >>> class Watch(Callback):
        ...     every = 100
        ...     def on_step_end(self, run):
        ...         print(run.step, run.loss)
    """

    every: int = 1

    def on_train_start(self, run: RunState) -> None:
        """Training begins, or resumes at `run.step`."""

    def on_step_start(self, run: RunState) -> None:
        """A step on `run.batch` is about to begin; `run.gradients()` computes its gradients."""

    def on_step_end(self, run: RunState) -> None:
        """A step was made; `run.loss` is its loss."""

    def on_epoch_end(self, run: RunState) -> None:
        """`run.epoch` epochs are done."""

    def on_validation_end(self, run: RunState, measures: Mapping[str, float]) -> None:
        """The validation examples were evaluated: "loss" and any metrics."""

    def on_train_end(self, run: RunState) -> None:
        """All steps are done, or the run was asked to stop; not called after an error."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint: numbers, text and arrays, in lists and dictionaries."""
        return {}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Load what `state_dict` returned."""


class Callbacks:
    """The callbacks of a run: when each is called, and their part of a checkpoint."""

    def __init__(self, callbacks: Iterable[Callback] = ()) -> None:
        self.all = tuple(callbacks)
        for one in self.all:
            if one.every < 1:
                raise errors.CALLBACK_EVERY(owner=type(one).__name__, given=one.every)
        self._starting = self._that_have("on_step_start")
        self._ending = self._that_have("on_step_end")

    def _that_have(self, method: str) -> tuple[Callback, ...]:
        """Return the callbacks that override a method, so that the hot loop calls only these."""
        return tuple(one for one in self.all if getattr(type(one), method, None) is not getattr(Callback, method))

    def due(self, step: int) -> int | None:
        """Return the next step after `step` at which any callback is due."""
        found = (step - step % one.every + one.every for one in (*self._starting, *self._ending))
        return min(found, default=None)

    def starting(self, step: int) -> list[Callback]:
        """Return the callbacks that are due before the step that follows `step` steps."""
        return [one for one in self._starting if step % one.every == 0]

    def ending(self, step: int) -> list[Callback]:
        """Return the callbacks that are due after `step` steps."""
        return [one for one in self._ending if step % one.every == 0]

    def call(self, method: str, *args: Any) -> None:
        """Call a method of all callbacks."""
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
        """Load states; a callback missing in the checkpoint starts afresh."""
        left = {name: list(states) for name, states in state.items()}
        for one in self.all:
            if left.get(type(one).__name__):
                one.load_state_dict(left[type(one).__name__].pop(0))


def _storable(value: Any) -> Any:
    """Convert a value to JSON, which has no NaN, infinity or arrays."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _storable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


__all__ = ["Callback", "RunState"]
