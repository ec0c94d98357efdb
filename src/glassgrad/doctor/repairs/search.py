"""Try changes of a script until one helps, or the time is over."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from glassgrad.doctor.repairs.catalogue import edits_of
from glassgrad.doctor.repairs.edits import Edit, line_of
from glassgrad.doctor.repairs.figures import Figure, figures, gain, is_finished
from glassgrad.doctor.repairs.trial import FORKS

SECONDS, PATIENCE, ENOUGH, CONFIRMED = 60.0, 3.0, 5.0, 0.5
"""The time of a search; that of a trial relative to the script's own; the gain from which more tells nothing; the part
of the least gain that is enough with other seeds."""
MOST, MORE = 4, 12
"""The number of changes that are tried again with other seeds, and of those still tried when one has helped, beside as
many as before."""
TUNED, FITTED, FALLEN = 2.0, 2.6, 2.3
"""The least gain of a change of a choice that may be sound: two thirds of what a share lacks, nearly all of it if only the
doctor measured it, nine tenths of an error."""
_LONGEST, _SLACK, _MOST_FILES = 60.0, 5.0, 1000
SHIFTS = (1,)
"""What is added to the seeds of a script, to see how much its figures vary by themselves."""


@dataclass(frozen=True)
class Repair:
    """A change that helps.

    Attributes:
        edit: the change; `old`: the line as it was.
        figure: the figure that became better, as usual without the change; `after`: its values with it, by seed.
        gain: how much better it is; see `figures.gain`.
    """

    edit: Edit
    old: str
    figure: Figure
    after: tuple[float, ...]
    gain: float


@dataclass(frozen=True)
class Search:
    """The result of a search: the changes that help, the best first, and the numbers of changes tried and known.

    Attributes:
        trouble: why nothing could be tried; empty otherwise.
    """

    repairs: tuple[Repair, ...] = ()
    tried: int = 0
    known: int = 0
    trouble: str = ""


@dataclass
class Trial:
    """A run to be made, and its figures afterwards; None if it failed."""

    text: str
    shift: int = 0
    edit: Edit | None = None
    watched: bool = False
    control: str = ""
    printed: str = ""
    figures: dict[str, Figure] | None = None
    seconds: float = 0.0
    error: str = ""

    @property
    def is_done(self) -> bool:
        """Whether it has run."""
        return self.seconds > 0 or bool(self.error)


@dataclass
class Runner:
    """Runs scripts in processes beside this one.

    Attributes:
        path: of the script; `arguments`: its own.
        libraries: what the processes load before they fork.
        longest: the time limit of a run in seconds.
    """

    path: str
    arguments: Sequence[str]
    libraries: Sequence[str]
    workers: int
    longest: float = _LONGEST
    _free: queue.Queue[subprocess.Popen[str]] = field(default_factory=queue.Queue)
    _all: list[subprocess.Popen[str]] = field(default_factory=list)

    def __enter__(self) -> Self:
        for _ in range(self.workers):
            self._free.put(self._started())
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._all:
            one.terminate()  # it kills the run that it waits for
            one.wait()
            for pipe in (one.stdin, one.stdout):
                if pipe is not None:
                    pipe.close()

    def _started(self) -> subprocess.Popen[str]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
        command = [sys.executable, "-m", "glassgrad.doctor.repairs.trial"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, env=environment, start_new_session=True, **pipes)  # noqa: S603 - fixed words
        self._all.append(process)
        return process

    def run(self, trial: Trial) -> None:
        """Run a trial and note its figures."""
        process = self._free.get()
        folder = tempfile.mkdtemp(prefix="glassgrad-trial-")
        limit = threading.Timer(self.longest + _SLACK, process.kill)  # where a process cannot do it itself
        limit.start()
        try:
            for home in dict.fromkeys((Path.cwd(), Path(self.path).resolve().parent)):
                _linked(home, Path(folder))
            answer = self._answered(process, self._request(trial, folder))
            trial.error, trial.seconds, trial.printed = answer["error"], answer["seconds"], answer["printed"]
            if answer["ended"]:
                trial.figures = figures(answer["printed"], answer["fits"])
        finally:
            limit.cancel()
            shutil.rmtree(folder, ignore_errors=True)
            self._free.put(self._next(process))

    def _request(self, trial: Trial, folder: str) -> str:
        known = {"text": trial.text, "shift": trial.shift, "watched": trial.watched, "control": trial.control}
        mine = {"path": self.path, "arguments": list(self.arguments), "libraries": list(self.libraries)}
        return json.dumps({**known, **mine, "folder": folder, "seconds": self.longest})

    @staticmethod
    def _answered(process: subprocess.Popen[str], request: str) -> dict[str, Any]:
        """Return the answer of a process; a failed run if the process is gone."""
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.write(request + "\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        failed = {"ended": False, "error": "its process ended", "printed": "", "fits": {}, "seconds": 0.0}
        return {**failed, **json.loads(answer)} if answer else failed

    def _next(self, process: subprocess.Popen[str]) -> subprocess.Popen[str]:
        """Return the process for the next run: the same where processes fork, otherwise a new one."""
        if not FORKS:
            process.wait()
        return process if process.poll() is None else self._started()

    def run_all(self, trials: Sequence[Trial], until: Callable[[], bool] = lambda: False) -> None:
        """Run trials side by side, in order, and stop early if `until` says so."""
        waiting = list(trials)
        lock = threading.Lock()

        def work() -> None:
            while not until():
                with lock:
                    if not waiting:
                        return
                    trial = waiting.pop(0)
                self.run(trial)

        threads = [threading.Thread(target=work) for _ in range(self.workers)]
        try:
            for one in threads:
                one.start()
            for one in threads:
                one.join()
        except KeyboardInterrupt:
            waiting.clear()
            raise


def _linked(home: Path, folder: Path) -> None:
    """Link the files of a folder and make its folders, so that a script finds its data; of a large one the first."""
    waiting, left = [(home, folder)], _MOST_FILES
    while waiting:
        from_, to = waiting.pop(0)
        for one in sorted(from_.iterdir())[:left]:
            left -= 1
            if one.is_dir() and not one.is_symlink() and not one.name.startswith((".", "__")):
                (to / one.name).mkdir(exist_ok=True)
                waiting.append((one, to / one.name))
            elif not one.is_dir() and not (to / one.name).exists():
                with contextlib.suppress(OSError):  # a system without links
                    (to / one.name).symlink_to(one)


def search(path: str, arguments: Sequence[str] = (), seconds: float = SECONDS, workers: int | None = None) -> Search:
    """Try changes of a script, the likely ones first, for a number of seconds; Ctrl-C ends it early.

    A change counts if a figure becomes clearly better with it (see `figures.gain`), and again with other seeds.
    """
    begun = time.monotonic()
    source = Path(path).read_text(encoding="utf-8")
    libraries = [name for name in ("torch", "glassgrad") if name in source]
    try:
        with Runner(path, arguments, libraries, workers or min(2, os.cpu_count() or 1)) as runner:
            return _searched(runner, source, lambda: time.monotonic() - begun > seconds)
    except KeyboardInterrupt:
        return Search(trouble="interrupted")


def _searched(runner: Runner, source: str, over: Callable[[], bool]) -> Search:
    """Run the script as it is, then its changes, then the best of them again."""
    controls = _controls(runner, source)
    first = controls[0]
    if first.figures is None:
        return Search(trouble=f"the script does not run a second time by itself ({first.error or 'it failed'})")
    if not first.figures:
        return Search(trouble="the script prints no figure, and none could be measured")
    if is_finished(first.figures):
        return Search(trouble="the figures of the script are near their best")
    runner.longest = min(_LONGEST, PATIENCE * first.seconds + _SLACK)
    usual = _usual([one.figures for one in controls if one.figures])
    control = "" if first.watched else first.printed
    trials = [Trial(one.text, 0, one, first.watched, control) for one in edits_of(source)]

    def enough() -> bool:
        done = [one for one in trials if one.is_done]
        first_good = next((at for at, one in enumerate(done) if _judged(source, one, usual)), len(done))
        return over() or len(done) > MORE + 2 * first_good

    runner.run_all(trials, enough)
    good = sorted(filter(None, (_judged(source, one, usual) for one in trials)), key=_rank)
    repairs = _confirmed(runner, good[:MOST], usual)
    return Search(tuple(repairs), sum(one.is_done for one in trials), len(trials))


def _controls(runner: Runner, source: str) -> list[Trial]:
    """Run the script as it is, with several seeds; watch it if it prints nothing of use."""
    for watched in (False, True):
        controls = [Trial(source, shift, watched=watched) for shift in (0, *SHIFTS)]
        runner.run_all(controls)
        if controls[0].figures != {}:
            break
    return controls


def _usual(known: Sequence[dict[str, Figure]]) -> dict[str, tuple[Figure, Figure]]:
    """Return the middle and the best value of the figures that tell most, in runs with several seeds."""
    found = {}
    top = max(one.weight for one in known[0].values())
    for name, first in known[0].items():
        if first.weight == top:
            same = sorted((one[name] for one in known if name in one), key=lambda one: one.value, reverse=first.higher)
            found[name] = same[len(same) // 2], same[0]
    return found


def _judged(source: str, trial: Trial, before: dict[str, tuple[Figure, Figure]]) -> Repair | None:
    """Return the repair that a trial shows."""
    if trial.figures is None or trial.edit is None:
        return None
    for name, (middle, best) in before.items():
        if middle.of_loss and trial.edit.rescales and not (middle.held_out and not trial.edit.shown):
            continue
        if trial.edit.shown and not middle.is_share:
            continue
        after = trial.figures.get(name)
        won = gain(middle, after)
        if after is not None and won >= _least(trial.edit, middle) and not gain(after, best):
            return Repair(trial.edit, line_of(source, trial.edit.line), middle, (after.value,), won)
    return None


def _least(edit: Edit, figure: Figure) -> float:
    """Return the least gain of a change that counts."""
    if not edit.tunes:
        return 1.0
    return FITTED if not figure.own else TUNED if figure.is_share else FALLEN


def _rank(one: Repair) -> tuple[float, float]:
    """Order repairs: the greatest gain first, in coarse steps; the likely ones before the others."""
    return -round(min(one.gain, ENOUGH), 0), -one.edit.prior


def _confirmed(runner: Runner, good: Sequence[Repair], before: dict[str, tuple[Figure, Figure]]) -> list[Repair]:
    """Return the repairs that help with other seeds too."""
    again = [Trial(one.edit.text, SHIFTS[0], one.edit, not one.figure.own) for one in good]
    runner.run_all(again)
    found = []
    for one, trial in zip(good, again, strict=True):
        after = (trial.figures or {}).get(one.figure.name)
        if after is not None and gain(before[one.figure.name][0], after) >= CONFIRMED * _least(one.edit, one.figure):
            found.append(replace(one, after=(*one.after, after.value)))
    return found
