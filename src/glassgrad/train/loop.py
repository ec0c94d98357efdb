"""The training loop: steps with learning rate, metrics, validation, checkpoints, display and a clean stop.

The loop does not know models. It runs a `Task`: a `Trainer` is the task of a user's model and loader, and each
command of `glassgrad train` has its own.
"""

from __future__ import annotations

import contextlib
import math
import operator
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.data.atomic import write_atomically
from glassgrad.train.callbacks import Callback, Callbacks, RunState
from glassgrad.train.kept import rundir
from glassgrad.train.kept.checkpoint import load_checkpoint, pack, save_checkpoint, unpack
from glassgrad.train.kept.metrics import MetricsLog, RecordLog, drop_after, read_metrics
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.kept.sessions import session
from glassgrad.train.show.display import Display
from glassgrad.train.show.progress import History, Progress, Speedometer
from glassgrad.train.signals import StopSignals
from glassgrad.train.task import Task
from glassgrad.train.transaction import all_or_nothing, named_as_damaged, named_as_unfit

Array = np.ndarray

_FORMAT = 2
_TICK_SECONDS = 0.1
_PATIENCE = 3  # successive records with a hopeless loss that end a run
PHASES = ("data", "step", "validation", "checkpoint")
"""The phases of a run; metrics.jsonl has the seconds spent in each since the previous line."""


def tags_of(text: str) -> list[str]:
    """Return the comma-separated tags in a text."""
    return [tag.strip() for tag in text.split(",") if tag.strip()]


class Loop:
    """Runs a `Task` in a run directory, from its beginning or from its last checkpoint, and calls `callbacks`."""

    def __init__(self, task: Task, callbacks: Sequence[Callback] = ()) -> None:
        self.task = task
        self.facts = dict(task.facts())
        self.step = 0
        self.seconds = 0.0
        self.measures: dict[str, float] = {}
        self.ended: str | None = None
        """The reason why a callback ended the run before its last step."""
        self.callbacks = Callbacks(callbacks)
        self.tags: list[str] = []
        """Words by which `glassgrad runs` finds the run; a resumed run keeps its words."""
        self._loss: float | None = None
        self._first: float | None = None
        self._windows_above = 0
        self._rate_above = 0.0
        self._window_sum = 0.0
        self._window_steps = 0
        self._phases = dict.fromkeys(PHASES, 0.0)
        self.saved_step: int | None = None
        self._history = History()

    @property
    def finished(self) -> bool:
        """Whether all steps are done or the run was ended."""
        return self.step >= self.task.steps or self.ended is not None

    # --- checkpoints ---

    def start(self, path: Path | None, name: str, config: str) -> RunDirectory:
        """Make the directory of a new run, atomically with its configuration and first checkpoint.

        Without a path, take the next free `runs/NAME-NNN`. Raises `errors.InputError` if it cannot be made.
        """

        def fill(run: RunDirectory) -> None:
            write_atomically(run.config, config.encode())
            self.save(run)

        return rundir.create(path, name, fill)

    def save(self, run: RunDirectory) -> None:
        """Write a checkpoint. Raises `OSError`; the previous checkpoint is then unchanged."""
        arrays: dict[str, Array] = {}
        parts = {name: pack(part.state_dict(), name, arrays) for name, part in self.task.parts.items()}
        rest = {
            "format": _FORMAT,
            "step": self.step,
            "seconds": self.seconds,
            "window": [self._window_sum, self._window_steps],
            "loss": self._loss,
            "first": self._first,
            "measures": self.measures,
            "ended": self.ended,
            "facts": self.facts,
            "parts": parts,
            "callbacks": pack(self.callbacks.state_dict(), "callbacks", arrays),
        }
        save_checkpoint(run.state, arrays, rest)
        self.task.save_model(run)
        self.saved_step = self.step

    def load(self, run: RunDirectory) -> None:
        """Load the last checkpoint and drop the metrics of later steps.

        Raises `errors.InputError` if it is damaged or belongs to another task; nothing is changed in this case.
        """
        self.read(run)
        with self.saving(run):
            drop_after(run.metrics, self.step)
        found = read_metrics(run.metrics)
        losses = [record["loss"] for record in found if record.get("event") == "train" and "loss" in record]
        self._history = History(losses)

    def read(self, run: RunDirectory) -> None:
        """Load the last checkpoint without changing the directory; errors as for `load`."""
        arrays, rest = load_checkpoint(run.state)
        if rest.get("format") != _FORMAT:
            raise errors.RUN_DAMAGED(
                path=run.state, reason="it is not a checkpoint that this version of glassgrad reads"
            )
        self.task.check(rest.get("facts", {}), run)
        with named_as_damaged(run.state):
            step, seconds = operator.index(rest["step"]), float(rest["seconds"])
            window_sum, window_steps = rest["window"]
            loss, measures, ended = rest["loss"], dict(rest["measures"]), rest["ended"]
            first = rest.get("first")
            callbacks = unpack(rest["callbacks"], arrays)
        with all_or_nothing(self.task.parts):
            for name, part in self.task.parts.items():
                with named_as_unfit(run.state, name):
                    part.load_state_dict(unpack(rest["parts"][name], arrays))
            with named_as_damaged(run.state):
                self.callbacks.load_state_dict(callbacks)
        self.step = self.saved_step = step
        self.seconds, self._window_sum, self._window_steps = seconds, window_sum, window_steps
        self._loss, self.measures, self.ended, self._first = loss, measures, ended, first

    # --- the loop ---

    def run(
        self,
        run: RunDirectory | None,
        display: Display,
        stop: StopSignals,
        loggers: Sequence[RecordLog] = (),
        until: int | None = None,
    ) -> bool:
        """Train until the last step, the step `until`, or a request to stop.

        The directory `run` then has a checkpoint of the step reached. Without a directory, only `loggers` keep results.
        Returns whether the run is complete. Raises `errors.RunError` if the loss is not finite or writing fails.
        """
        try:
            with contextlib.ExitStack() as stack:
                if run is not None:
                    with self.saving(run):
                        loggers = [stack.enter_context(MetricsLog(run.metrics)), *loggers]
                stack.enter_context(np.errstate(all="ignore"))  # a non-finite loss ends the run with a message
                last = self.task.steps if until is None else min(until, self.task.steps)
                told = stack.enter_context(self._session(run))
                _Running(self, run, display, stop, loggers, last).go()
                told["ended"] = "finished" if self.finished else "stopped"
        finally:
            display.stop()
        return self.finished

    @contextlib.contextmanager
    def _session(self, run: RunDirectory | None) -> Iterator[dict[str, Any]]:
        """Describe this process in run.json."""
        if run is None:
            yield {}
            return
        with contextlib.suppress(OSError):
            (run.path / rundir.STOP).unlink()  # meant for a process that has ended
        facts = {"steps": self.task.steps, "held_out": self.task.held_out, **({"tags": self.tags} if self.tags else {})}
        with session(run.path, facts, self.step) as told:
            try:
                yield told
            finally:
                told["step"] = self.step

    def progress(self, steps_per_second: float | None = None) -> Progress:
        """Return the progress of the run."""
        loss = self._loss
        if loss is None and self._window_steps:
            loss = self._window_sum / self._window_steps
        return Progress(
            self.step,
            self.task.steps,
            loss,
            self.measures.get("loss"),
            steps_per_second,
            self._history.points,
            self.task.held_out,
            self.measures.get("accuracy"),
        )

    @contextlib.contextmanager
    def saving(self, run: RunDirectory | None) -> Iterator[None]:
        """Convert an `OSError` in the block into the error that the run could not be saved."""
        try:
            yield
        except OSError as error:
            if run is None:
                raise
            raise self.not_saved(run, error) from None

    def not_saved(self, run: RunDirectory, error: OSError) -> Exception:
        """Return the error to raise if a file of the run could not be written."""
        kept = ""
        if self.saved_step is not None:
            how = self.task.resume_by.format(path=run.path)
            kept = f"; the checkpoint of step {self.saved_step:,} is intact: free some space, then use {how}"
        return errors.RUN_NOT_SAVED(path=run.path, reason=error.strerror or error, kept=kept)


class _Running:
    """One call of `Loop.run`: the hot loop and the work between its segments."""

    def __init__(
        self,
        loop: Loop,
        run: RunDirectory | None,
        display: Display,
        stop: StopSignals,
        loggers: Sequence[RecordLog],
        last: int,
    ) -> None:
        self.loop = loop
        self.last = last
        self.loggers = loggers
        self.task = loop.task
        self.callbacks = loop.callbacks
        self.state = RunState(loop, run, self.write)
        self.run = run
        self.display = display
        self.stop = stop
        self.speedometer = Speedometer()
        self.began = time.perf_counter() - loop.seconds
        self.next_tick = 0.0
        self.next_save = math.inf
        self.rate = 0.0

    def write(self, **record: Any) -> None:
        """Send a record to every logger."""
        with self.loop.saving(self.run):
            for logger in self.loggers:
                logger.write(**record)

    def go(self) -> None:
        loop = self.loop
        self.display.start(loop.progress())
        self.callbacks.call("on_train_start", self.state)
        if self.run is not None:
            self.next_save = time.perf_counter() + self.task.config.save_every
        if self.task.ranks is not None:
            self.task.ranks.stopping = False
        while loop.step < self.last and not loop.finished and not self.stopping():
            self.advance(self.next_stop())
            loop.seconds = time.perf_counter() - self.began
            self.settle()
        self.callbacks.call("on_train_end", self.state)
        if loop.saved_step != loop.step:
            self.save()
        self.display.update(loop.progress(self.speedometer.mark(loop.seconds, loop.step)))

    def stopping(self) -> bool:
        """Tell whether the run was asked to stop; with several ranks, only after all ranks have agreed."""
        return bool(self.stop.requested) if self.task.ranks is None else self.task.ranks.stopping

    def next_stop(self) -> int:
        """Return the next step after which something is due."""
        step, task = self.loop.step, self.task
        due = [self.last, _next_multiple(step, task.config.log_every), _next_multiple(step, task.eval_every)]
        if task.epoch_steps:
            due.append(_next_multiple(step, task.epoch_steps))
        return min(due if (called := self.callbacks.due(step)) is None else [*due, called])

    def advance(self, until: int) -> None:
        """Train up to a step, or less if something else is due. This method has all overhead per step."""
        loop, stop, clock = self.loop, self.stop, time.perf_counter
        train_step, batch_at, rate_at = self.task.step, self.task.batch_at, self.task.rate_at
        step, ranks = loop.step, self.task.ranks
        total, waiting, working = loop._window_sum, 0.0, 0.0
        limit = min(self.next_tick, self.next_save)
        rate = rate_at(step)
        self.task.set_rate(rate)
        counted = 0
        last = clock()
        watching = self.callbacks.starting(step)
        while step < until:
            if rate_at(step) != rate:
                rate = rate_at(step)
                self.task.set_rate(rate)
            batch = batch_at(step)
            now = clock()
            waiting += now - last
            if watching:
                now, watching = self.show(watching, batch), []
            loss = float(train_step(*batch))
            if ranks is not None:
                loss = ranks.agree(loss, stop, clock() >= self.next_save)
            last = clock()
            working += last - now
            step += 1
            if loss - loss == 0.0:
                total += loss
                counted += 1
                if step == 1:
                    loop._first = loss
            elif not self.task.skips:
                raise self.diverged(loss, step, rate)
            if last >= limit or (stop.requested if ranks is None else ranks.stopping or ranks.saving):
                break
        self.state.batch, self.state.loss, self.rate = batch, loss, rate
        loop.step = step
        loop._window_sum = total
        loop._window_steps += counted
        loop._phases["data"] += waiting
        loop._phases["step"] += working

    def show(self, watching: list[Callback], batch: tuple[Array, ...]) -> float:
        """Show callbacks the next step; return the time they took, which does not count for the step."""
        self.state.batch = batch
        for callback in watching:
            callback.on_step_start(self.state)
        return time.perf_counter()

    def settle(self) -> None:
        """Do the work due at this step; callbacks run before the checkpoint, which stores their state."""
        loop, task = self.loop, self.task
        now = time.perf_counter()
        last = loop.step == task.steps
        if loop.step % task.config.log_every == 0 or last:
            self.log_window()
        for callback in self.callbacks.ending(loop.step):
            callback.on_step_end(self.state)
        if loop.step % task.eval_every == 0 or last:
            self.measure()
        elif now >= self.next_tick:
            self.display.update(loop.progress(self.speedometer.mark(loop.seconds, loop.step)))
        if task.epoch_steps and loop.step % task.epoch_steps == 0:
            self.callbacks.call("on_epoch_end", self.state)
        if now >= self.next_tick:
            self.next_tick = now + _TICK_SECONDS
            if self.run is not None:
                self.stop.look_for(self.run.path / rundir.STOP)
        if now >= self.next_save if task.ranks is None else task.ranks.saving:
            self.save()

    def log_window(self) -> None:
        loop = self.loop
        if loop._window_steps:
            loop._loss = loop._window_sum / loop._window_steps
            loop._history.add(loop._loss)
            self.write(
                event="train",
                step=loop.step,
                loss=loop._loss,
                rate=self.rate,
                seconds=round(loop.seconds, 3),
                **self.task.extras(),
                **{f"{phase}_seconds": round(seconds, 6) for phase, seconds in loop._phases.items()},
            )
            self.look_for_growth(loop._loss)
        loop._window_sum, loop._window_steps = 0.0, 0
        loop._phases = dict.fromkeys(PHASES, 0.0)

    def look_for_growth(self, loss: float) -> None:
        """End a run whose loss stays far above that of its first step. Raises `errors.RunError`."""
        loop, first = self.loop, self.loop._first
        if first is None or loss <= self.task.hopeless * first:
            loop._windows_above = 0
            return
        loop._windows_above += 1
        if loop._windows_above == 1:
            loop._rate_above = self.rate  # a schedule may have lowered it by the end of the run
        if loop._windows_above == _PATIENCE:
            raise errors.RUN_GREW(
                value=loss, first=first, step=loop.step, rate=loop._rate_above, kept=self.kept(), count=_PATIENCE
            )

    def measure(self) -> None:
        loop = self.loop
        if not self.task.validates:
            return
        began = time.perf_counter()
        found = self.task.evaluate()
        if self.task.ranks is not None:  # decisions depend on it
            found = self.task.ranks.shared(found)
        loop._phases["validation"] += time.perf_counter() - began
        measures = dict(found) if isinstance(found, Mapping) else {"loss": found}
        if math.isfinite(measures["loss"]):
            loop.measures = measures
            self.write(event=self.task.held_out, step=loop.step, **measures)
        self.display.milestone(loop.progress(self.speedometer.mark(loop.seconds, loop.step)))
        self.callbacks.call("on_validation_end", self.state, measures)

    def save(self) -> None:
        ranks = self.task.ranks
        if ranks is not None and ranks.gather is not None:
            ranks.gather()
            self.loop.saved_step = self.loop.step  # on all ranks, since all of them gather
        if self.run is None:
            return
        began = time.perf_counter()
        alone = contextlib.nullcontext() if ranks is None else ranks.alone()
        with self.stop.protected(), self.loop.saving(self.run), alone:
            for logger in self.loggers:
                logger.sync()
            self.loop.save(self.run)
        ended = time.perf_counter()
        self.loop._phases["checkpoint"] += ended - began
        self.next_save = ended + max(self.task.config.save_every, (ended - began) / self.task.save_share)

    def diverged(self, loss: float, step: int, rate: float) -> Exception:
        """Return the error to raise for a non-finite loss; NaN weights are never saved."""
        return errors.RUN_DIVERGED(
            value="NaN" if math.isnan(loss) else "infinite", step=step, rate=rate, kept=self.kept()
        )

    def kept(self) -> str:
        """Name the last checkpoint, after a semicolon; empty if there is none."""
        saved = self.loop.saved_step
        if saved is None or self.run is None:
            return ""
        return f"; the checkpoint of step {saved:,} in {self.run.path} is untouched"


def _next_multiple(step: int, every: int) -> int:
    return step - step % every + every


__all__ = ["Loop"]
