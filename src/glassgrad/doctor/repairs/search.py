"""Try changes of a script until one helps, or the time is over."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Self

from glassgrad.doctor.repairs.catalogue import edits_of
from glassgrad.doctor.repairs.edits import Edit, line_of
from glassgrad.doctor.repairs.figures import Figure, figures, gain, is_finished
from glassgrad.doctor.repairs.trial import FORKS, Answer, Request, serve

SECONDS, PATIENCE, ENOUGH, CONFIRMED = 60.0, 3.0, 5.0, 0.5
"""The time of a search; that of a trial relative to the script's own; the gain from which more tells nothing; the part
of the least gain that is enough with other seeds."""
MOST, MORE = 4, 12
"""The number of changes that are tried again with other seeds, and of those still tried when one has helped, beside as
many as before."""
TUNED, FITTED, FALLEN = 2.0, 2.6, 2.3
"""The least gain of a change of a choice that may be sound: two thirds of what a share lacks, nearly all of it if only
the doctor measured it, nine tenths of an error."""
_LONGEST, _SLACK, _LOADING, _MOST_FILES = 60.0, 5.0, 60.0, 1000
_MOST_BYTES = 1 << 29
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
class _Server:
    """A process for trials, and our end of the pipe to it."""

    process: BaseProcess
    pipe: Connection


@dataclass
class Runner:
    """Runs scripts in processes beside this one.

    Attributes:
        path: of the script; `arguments`: its own.
        libraries: what the processes load before they fork.
        workers: the number of processes.
        longest: the time limit of a run in seconds.
    """

    path: str
    arguments: Sequence[str]
    libraries: Sequence[str]
    workers: int
    longest: float = _LONGEST
    _copy: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="glassgrad-copy-")))
    _free: queue.Queue[_Server] = field(default_factory=queue.Queue)
    _all: list[_Server] = field(default_factory=list)
    _starting: threading.Lock = field(default_factory=threading.Lock)
    _is_over: bool = False

    def __enter__(self) -> Self:
        try:
            for home in dict.fromkeys((Path.cwd(), Path(self.path).resolve().parent)):
                _taken_along(home, self._copy, shutil.copy2)  # what writes past Python through a link meets the copy
            for _ in range(self.workers):
                self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._starting:
            self._is_over = True
        for one in self._all:
            one.process.terminate()  # it kills the run that it waits for
        for one in self._all:
            one.process.join()
            one.pipe.close()
        shutil.rmtree(self._copy, ignore_errors=True)

    def _start(self) -> None:
        """Start a process that waits for trials; none once the search is over: nobody would end it."""
        with self._starting:
            if self._is_over:
                return
            context = multiprocessing.get_context("spawn")
            mine, its = context.Pipe()
            process = context.Process(target=serve, args=(its,))
            process.start()
            its.close()
            self._all.append(_Server(process, mine))
            self._free.put(self._all[-1])

    def run(self, trial: Trial) -> None:
        """Run a trial and note its figures."""
        server = self._free.get()
        folder = tempfile.mkdtemp(prefix="glassgrad-trial-")
        try:
            _taken_along(self._copy, Path(folder), os.symlink)
            mine = tuple(self.arguments), trial.shift, trial.watched, trial.control
            request = Request(trial.text, self.path, folder, *mine, tuple(self.libraries), self.longest)
            answer = self._answered(server, request)
            trial.error, trial.seconds, trial.printed = answer.error, answer.seconds, answer.printed
            if not answer.error:
                trial.figures = figures(answer.printed, answer.fits)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if not FORKS:
                server.process.join(1)
            if server.process.is_alive():
                self._free.put(server)
            else:
                self._start()

    def _answered(self, server: _Server, request: Request) -> Answer:
        """Return the answer of a process; that of a failed run if it is gone or does not come."""
        with contextlib.suppress(EOFError, OSError):
            server.pipe.send(request)
            if server.pipe.poll(self.longest + _LOADING):
                answer: Answer = server.pipe.recv()
                return answer
        server.process.kill()
        server.process.join()
        return Answer(error="its process ended")

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


def _taken_along(home: Path, folder: Path, take: Callable[[Path, Path], object]) -> None:
    """Copy or link the files of a folder and make its folders, so that a script finds its data; the first, if many."""
    waiting, left, room = [(home, folder)], _MOST_FILES, _MOST_BYTES
    while waiting:
        from_, to = waiting.pop(0)
        for one in sorted(from_.iterdir())[:left]:
            left -= 1
            if one.is_dir() and not one.name.startswith((".", "__")):
                (to / one.name).mkdir(exist_ok=True)
                waiting.append((one, to / one.name))
            elif one.is_file() and not (to / one.name).exists() and one.stat().st_size <= room:
                room -= one.stat().st_size
                with contextlib.suppress(OSError):  # a file that may not be read, or a system without links
                    take(one, to / one.name)


def search(path: str, arguments: Sequence[str] = (), seconds: float = SECONDS, workers: int | None = None) -> Search:
    """Try changes of a script, the likely ones first, for a number of seconds; Ctrl-C ends it early.

    A change counts if a figure becomes clearly better with it (see `figures.gain`), again with other seeds, and none
    that tells as much becomes clearly worse.
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
        if after is None or won < _least(trial.edit, middle) or gain(after, best):
            continue
        if after.value == 0 and not middle.higher and middle.value != 0:
            continue  # an error of exactly 0: with the change nothing is computed
        if not harms(trial.edit, trial.figures, before):
            return Repair(trial.edit, line_of(source, trial.edit.line), middle, (after.value,), won)
    return None


def harms(edit: Edit, after: dict[str, Figure], before: dict[str, tuple[Figure, Figure]]) -> bool:
    """Tell whether another figure that tells as much becomes clearly worse, such as the loss of the other player."""
    for name, (middle, _) in before.items():
        now = after.get(name)
        if now is None or (middle.of_loss and edit.rescales):
            continue
        if gain(now, middle) >= 1 or (math.isfinite(middle.value) and not math.isfinite(now.value)):
            return True
    return False


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
        least = CONFIRMED * _least(one.edit, one.figure)
        if after is None or gain(before[one.figure.name][0], after) < least:
            continue
        if not harms(one.edit, trial.figures or {}, before):
            found.append(replace(one, after=(*one.after, after.value)))
    return found
