"""The training loop: steps, and around them rate, metrics, validation, checkpoints, display and a clean stop.

The loop knows nothing of models. It is given `step(inputs, targets) -> loss`, which may be an eager function or a
compiled one, and `batch_at(step)`, from which a resumed run gets the batches it would have had.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import errors
from .checkpoint import Stateful, load_checkpoint, pack, save_checkpoint, unpack
from .display import Display
from .metrics import MetricsLog, drop_after, read_metrics
from .progress import History, Progress, Speedometer
from .rundir import RunDirectory
from .signals import StopSignals

Array = Any

_FORMAT = 1
_TICK_SECONDS = 0.1
_SHARE_OF_SAVING = 0.05
"""Saving takes at most about this share of the time, however large the model and slow the disk."""


@dataclass(frozen=True)
class Plan:
    """What the loop does and when. `save_every` is in seconds, the others in steps.

    `evaluate` returns the loss on the examples set aside, or a mapping with "loss" and what else was measured;
    `held_out` is what these examples are called.
    """

    step: Callable[[Array, Array], Any]
    batch_at: Callable[[int], tuple[Array, Array]]
    steps: int
    rate_at: Callable[[int], float]
    set_rate: Callable[[float], None]
    evaluate: Callable[[], float | Mapping[str, float]]
    save_model: Callable[[RunDirectory], None]
    parts: Mapping[str, Stateful]
    facts: Mapping[str, Any] = field(default_factory=dict)
    log_every: int = 100
    eval_every: int = 10_000
    save_every: float = 5.0
    held_out: str = "validation"


class Trainer:
    """Runs a `Plan` in a run directory, from its beginning or from its last checkpoint."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.step = 0
        self.seconds = 0.0
        self.validation_loss: float | None = None
        self.accuracy: float | None = None
        self._loss: float | None = None
        self._window_sum = 0.0
        self._window_steps = 0
        self.saved_step: int | None = None
        self._history = History()

    # --- checkpoints ---

    def save(self, run: RunDirectory) -> None:
        """Write a checkpoint. Raises `OSError`; the checkpoint before then stays whole."""
        arrays: dict[str, Array] = {}
        parts = {name: pack(part.state_dict(), name, arrays) for name, part in self.plan.parts.items()}
        rest = {
            "format": _FORMAT,
            "step": self.step,
            "seconds": self.seconds,
            "window": [self._window_sum, self._window_steps],
            "loss": self._loss,
            "validation_loss": self.validation_loss,
            "accuracy": self.accuracy,
            "facts": dict(self.plan.facts),
            "parts": parts,
        }
        save_checkpoint(run.state, arrays, rest)
        self.plan.save_model(run)
        self.saved_step = self.step

    def load(self, run: RunDirectory, check: Callable[[Mapping[str, Any]], None] = lambda facts: None) -> None:
        """Take over the last checkpoint and drop the metrics of later steps; `check` may object to its facts first.

        Raises `errors.InputError` when it is damaged or belongs to another model.
        """
        arrays, rest = load_checkpoint(run.state)
        if rest.get("format") != _FORMAT:
            raise errors.RUN_DAMAGED(path=run.state, reason="it is no checkpoint that this version of glassgrad reads")
        check(rest["facts"])
        for name, part in self.plan.parts.items():
            try:
                part.load_state_dict(unpack(rest["parts"][name], arrays))
            except (KeyError, TypeError, ValueError, RuntimeError) as error:
                raise errors.RUN_OTHER_SHAPES(path=run.state, reason=" ".join(str(error).split())) from None
        self.step = self.saved_step = rest["step"]
        self.seconds = rest["seconds"]
        self._window_sum, self._window_steps = rest["window"]
        self._loss, self.validation_loss = rest["loss"], rest["validation_loss"]
        self.accuracy = rest.get("accuracy")
        drop_after(run.metrics, self.step)
        losses = [record["loss"] for record in read_metrics(run.metrics) if record.get("event") == "train"]
        self._history = History(losses)

    # --- the loop ---

    def run(self, run: RunDirectory, display: Display, stop: StopSignals) -> bool:
        """Train until the last step or until asked to stop; a checkpoint of the step reached is then on the disk.

        Returns whether all steps are done. Raises `errors.RunError` when the loss is no longer finite or nothing can be
        written any more.
        """
        try:
            with MetricsLog(run.metrics) as log, np.errstate(all="ignore"):
                _Loop(self, run, display, stop, log).go()
        except OSError as error:
            raise self.not_saved(run, error) from None
        finally:
            display.stop()
        return self.step == self.plan.steps

    def progress(self, steps_per_second: float | None = None) -> Progress:
        """Return how the run is doing now."""
        loss = self._loss
        if loss is None and self._window_steps:
            loss = self._window_sum / self._window_steps
        return Progress(
            self.step, self.plan.steps, loss, self.validation_loss, steps_per_second, self._history.points,
            self.plan.held_out, self.accuracy,
        )  # fmt: skip

    def not_saved(self, run: RunDirectory, error: OSError) -> Exception:
        """Return the error to raise when something of the run could not be written."""
        kept = ""
        if self.saved_step is not None:
            kept = f"; the checkpoint of step {self.saved_step:,} is whole: make room, then use --resume {run.path}"
        return errors.RUN_NOT_SAVED(path=run.path, reason=error.strerror or error, kept=kept)


class _Loop:
    """One call of `Trainer.run`: the hot loop and what happens between its stretches."""

    def __init__(
        self, trainer: Trainer, run: RunDirectory, display: Display, stop: StopSignals, log: MetricsLog
    ) -> None:
        self.trainer = trainer
        self.plan = trainer.plan
        self.run = run
        self.display = display
        self.stop = stop
        self.log = log
        self.speedometer = Speedometer()
        self.began = time.perf_counter() - trainer.seconds
        self.next_tick = 0.0
        self.next_save = 0.0

    def go(self) -> None:
        trainer, plan = self.trainer, self.plan
        self.display.start(trainer.progress())
        self.next_save = time.perf_counter() + plan.save_every
        while trainer.step < plan.steps and not self.stop.requested:
            due = min(_next_multiple(trainer.step, plan.log_every), _next_multiple(trainer.step, plan.eval_every))
            self.advance(min(due, plan.steps))
            trainer.seconds = time.perf_counter() - self.began
            self.settle()
        if trainer.saved_step != trainer.step:
            self.save()
        self.display.update(trainer.progress(self.speedometer.mark(trainer.seconds, trainer.step)))

    def advance(self, until: int) -> None:
        """Train up to a step, or less if something else is due. Everything a step costs besides itself is in here."""
        trainer, stop, clock = self.trainer, self.stop, time.perf_counter
        train_step, batch_at, rate_at = self.plan.step, self.plan.batch_at, self.plan.rate_at
        begin = step = trainer.step
        total = trainer._window_sum
        limit = min(self.next_tick, self.next_save)
        rate = rate_at(step)
        self.plan.set_rate(rate)
        while step < until:
            if rate_at(step) != rate:
                rate = rate_at(step)
                self.plan.set_rate(rate)
            inputs, targets = batch_at(step)
            total += float(train_step(inputs, targets))
            step += 1
            if clock() >= limit or stop.requested:
                break
        trainer.step = step
        trainer._window_sum = total
        trainer._window_steps += step - begin

    def settle(self) -> None:
        """Do what is due at the step reached."""
        trainer, plan = self.trainer, self.plan
        now = time.perf_counter()
        last = trainer.step == plan.steps
        if trainer.step % plan.log_every == 0 or last:
            self.log_window()
        if trainer.step % plan.eval_every == 0 or last:
            self.measure()
        elif now >= self.next_tick:
            self.display.update(trainer.progress(self.speedometer.mark(trainer.seconds, trainer.step)))
        if now >= self.next_tick:
            self.next_tick = now + _TICK_SECONDS
        if now >= self.next_save:
            self.save()

    def log_window(self) -> None:
        trainer = self.trainer
        self.check_finite()
        if trainer._window_steps:
            trainer._loss = trainer._window_sum / trainer._window_steps
            trainer._history.add(trainer._loss)
            self.log.write(
                event="train",
                step=trainer.step,
                loss=trainer._loss,
                rate=self.plan.rate_at(trainer.step - 1),
                seconds=round(trainer.seconds, 3),
            )
        trainer._window_sum, trainer._window_steps = 0.0, 0

    def measure(self) -> None:
        trainer = self.trainer
        found = self.plan.evaluate()
        measures = dict(found) if isinstance(found, Mapping) else {"loss": found}
        if math.isfinite(measures["loss"]):
            trainer.validation_loss, trainer.accuracy = measures["loss"], measures.get("accuracy")
            self.log.write(event=self.plan.held_out, step=trainer.step, **measures)
        self.display.milestone(trainer.progress(self.speedometer.mark(trainer.seconds, trainer.step)))

    def save(self) -> None:
        self.check_finite()  # weights that have become NaN must not replace good ones
        began = time.perf_counter()
        with self.stop.protected():
            self.log.sync()
            self.trainer.save(self.run)
        ended = time.perf_counter()
        self.next_save = ended + max(self.plan.save_every, (ended - began) / _SHARE_OF_SAVING)

    def check_finite(self) -> None:
        trainer = self.trainer
        if math.isfinite(trainer._window_sum):
            return
        saved = trainer.saved_step
        raise errors.RUN_DIVERGED(
            value="NaN" if math.isnan(trainer._window_sum) else "infinite",
            before=trainer.step - trainer._window_steps,
            step=trainer.step,
            rate=self.plan.rate_at(trainer.step - 1),
            kept=f"; the checkpoint of step {saved:,} in {self.run.path} is untouched" if saved else "",
        )


def _next_multiple(step: int, every: int) -> int:
    return step - step % every + every
