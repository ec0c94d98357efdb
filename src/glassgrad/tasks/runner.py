"""`glassgrad train` from beginning to end: make or open a run, train it, and finish or stop resumably."""

from __future__ import annotations

import contextlib
import math
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.data.atomic import write_atomically
from glassgrad.tasks.options import DTYPES
from glassgrad.tasks.task import CommandTask, TaskKind, no_picture, with_data_in
from glassgrad.train.callbacks import Callback
from glassgrad.train.config import Layer, command_line, flag, read_toml, rules, to_toml
from glassgrad.train.kept import rundir
from glassgrad.train.kept.metrics import MetricsLog
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.kept.samples import write_samples
from glassgrad.train.loop import Loop, tags_of
from glassgrad.train.ranks import Ranks, joined, once
from glassgrad.train.show import choose_display
from glassgrad.train.show.display import Display, PlainDisplay
from glassgrad.train.show.picture import draw_loss
from glassgrad.train.show.progress import duration, speed
from glassgrad.train.signals import StopSignals


def start(
    kind: TaskKind,
    options: Mapping[str, Any],
    config_file: Path | None,
    path: Path | None,
    callbacks: Sequence[Callback] = (),
    tag: str = "",
    quiet: bool = False,
) -> int:
    """Begin a run and train it to its end; return the exit code.

    `options` are those of the command line (None if not given); `callbacks` get the run's events; `quiet` prints only
    the path of the run.
    Raises `errors.InputError` before anything is written, `errors.RunError` if training cannot continue.
    """
    ranks = joined()
    if path is not None:
        once(ranks, lambda: rundir.check_free(path))
    layers = [command_line(options)]
    if config_file is not None:
        layers.insert(0, with_data_in(read_toml(config_file, kind.config, kind.name), config_file.parent))
    session = _Session(kind, kind.build(kind.configure(layers)), callbacks, tag, quiet, ranks)
    run = once(ranks, lambda: session.start(path))
    if run is None:
        return session.follow()
    with run.lock():
        return session.train(run, "")


def resume(
    kind: TaskKind,
    options: Mapping[str, Any],
    path: Path,
    callbacks: Sequence[Callback] = (),
    tag: str = "",
    quiet: bool = False,
) -> int:
    """Resume a run from its last checkpoint, as if it had never stopped; return the exit code.

    Raises `errors.InputError` if there is no complete run at `path` or `options` would make it a different run.
    """
    ranks = joined()
    run = RunDirectory.existing(path)
    first = ranks is None or ranks.first
    with run.lock() if first else contextlib.nullcontext():
        stored = read_toml(run.config, kind.config, kind.name)
        given = command_line(options)
        _refuse_changes(kind, kind.configure([stored]), given)
        task = kind.build(kind.configure([stored, Layer(given.values, flag)]))
        session = _Session(kind, task, callbacks, tag, quiet, ranks)
        once(ranks, lambda: session.loop.load(run))
        if not first:
            session.loop.read(run)
        once(ranks, lambda: session.lengthen(run, stored))  # no rank trains before all have read the checkpoint
        return session.train(run, f", going on at step {session.loop.step:,}") if first else session.follow()


def _refuse_changes(kind: TaskKind, stored: Any, given: Layer) -> None:
    for key, value in given.values.items():
        before = getattr(stored, key)
        rule = rules(kind.config)[key][1]
        if not rule.allows(before, value):
            refusal = errors.RUN_SHORTENED if rule.grows else errors.RUN_CHANGED
            raise refusal(name=given.name(key), before=before, after=value)


_DTYPES = {
    "bfloat16": "products in bfloat16, their sums, weights and optimizer in float32",
    "float64": "all in float64",
}


class _Session:
    """One process's part in a run, from the first step to the closing lines."""

    run: RunDirectory

    def __init__(
        self,
        kind: TaskKind,
        task: CommandTask,
        callbacks: Sequence[Callback],
        tag: str,
        quiet: bool,
        ranks: Ranks | None,
    ) -> None:
        if ranks is not None:
            task.share(ranks)
        self.kind, self.task, self.loop = kind, task, Loop(task, callbacks)
        self.loop.tags = tags_of(tag)
        self.stop = StopSignals()
        self.display = Display() if quiet else choose_display(lambda: self.stop.request(_closed_output()))
        self._quiet = quiet

    def start(self, path: Path | None) -> RunDirectory:
        """Make the directory of a new run."""
        return self.loop.start(path, self.kind.name, self._toml())

    def lengthen(self, run: RunDirectory, stored: Layer) -> None:
        """Store the new length of a resumed run, for the next time it is resumed."""
        config, before = self.task.config, self.kind.configure([stored])
        if any(
            getattr(config, key) != getattr(before, key) for key, (_, rule) in rules(type(config)).items() if rule.grows
        ):
            with self.loop.saving(run):
                write_atomically(run.config, self._toml().encode())

    def _toml(self) -> str:
        config, models = self.task.config, self.kind.models
        return to_toml(config, self.kind.name, leave_out=models[config.model].without if models else ())

    def follow(self) -> int:
        """Train as a rank that prints and writes nothing; return the exit code."""
        try:
            with self.stop:
                finished = self.loop.run(None, Display(), self.stop)
        except KeyboardInterrupt:
            return 128 + (self.stop.requested or signal.SIGINT)
        return 0 if finished else 128 + self.stop.requested

    def train(self, run: RunDirectory, going_on: str) -> int:
        """Print the introduction, train and finish; return the exit code."""
        self.run, self.begun = run, (self.loop.step, self.loop.seconds)
        for line in self.task.introduction():
            self.display.say(line)
        dtype = getattr(self.task.config, "dtype", DTYPES[0])  # tasks may lack this option
        if dtype != DTYPES[0]:
            self.display.say(f"dtype      {_DTYPES[dtype]}")
        if self.task.ranks is not None:
            self.display.say(f"ranks      {self.task.ranks.count}, each with a part of every batch")
        self.display.say(f"run        {run.path}{going_on}\n")
        try:
            with self.stop:
                if not self.loop.run(run, self.display, self.stop):
                    return self._stopped()
                self.stop.at_once = True  # everything is saved, and the rest can be repeated
                self._finish()
        except KeyboardInterrupt:
            self.display.stop()
            return self._interrupted()
        return 0

    def _stopped(self) -> int:
        requested, loop = self.stop.requested, self.loop
        cause = {_closed_output(): "output closed", signal.SIGINT: "interrupted"}.get(requested, "asked to stop")
        self._tell(f"{cause}: stopped after step {loop.step:,} of {loop.task.steps:,} and saved it")
        return 128 + requested

    def _interrupted(self) -> int:
        where = "while finishing" if self.stop.at_once else "at once"
        self._tell(f"interrupted {where}: the checkpoint of step {self.loop.saved_step:,} is kept")
        return 128 + (self.stop.requested or signal.SIGINT)

    def _tell(self, text: str) -> None:
        text += f"\ngo on with: glassgrad train {self.kind.name} --resume {shlex.quote(str(self.run.path))}"
        PlainDisplay(sys.stderr).say(text)  # for the user at the terminal, wherever the output goes

    def _finish(self) -> None:
        """Evaluate, save, draw and print; repeating this gives the same result."""
        task, loop, run, say = self.task, self.loop, self.run, self.display.say
        with np.errstate(all="ignore"):  # overflow is reported below
            final = task.settle()
        for name, value in final.items():
            if not math.isfinite(value):
                raise errors.RUN_ENDED_DIVERGED(
                    name=name.replace("_", " "), value=value, rate=task.rate_at(0), step=loop.step, path=run.path
                )
        try:
            with MetricsLog(run.metrics) as log:
                log.write(event="final", step=loop.step, **final, seconds=round(loop.seconds, 3))
                log.sync()
            task.save_model(run)
        except OSError as error:
            raise loop.not_saved(run, error) from None
        self._keep_samples()
        steps, seconds = loop.step - self.begun[0], loop.seconds - self.begun[1]
        if steps and seconds:
            say(f"\n{steps:,} steps in {duration(seconds)} ({speed(steps / seconds)})")
        for line in task.results(final, run.path):
            say(line)
        say(f"\nsaved      {run.model}")
        say(f"           {self._draw()}")
        say(f"           {self._report()}")
        for line in task.farewell(run.path):
            say(line)
        if self._quiet:
            PlainDisplay(sys.stdout).say(str(run.path))  # for the script that started the run

    def _keep_samples(self) -> None:
        samples = self.task.samples()
        if samples is not None:
            with self.loop.saving(self.run):
                write_samples(self.run.path, samples)

    def _report(self) -> str:
        """Write the page; return its path, or the reason why it is missing."""
        from glassgrad.train.show.run_page import write_report

        try:
            return str(write_report(self.run.path))
        except errors.InputError as error:
            return f"no report: {error}"

    def _draw(self) -> str:
        """Draw the picture; return its path, or the reason why it is missing: a run succeeds without it."""
        kind, run = self.kind, self.run
        try:
            title = f"{kind.name}: {self.task.config.model}"
            draw_loss(run.metrics, run.picture, title, self.task.held_out, kind.axis)
        except (ImportError, OSError) as error:
            return no_picture(error)
        return str(run.picture)


def _closed_output() -> int:
    return int(getattr(signal, "SIGPIPE", 13))
