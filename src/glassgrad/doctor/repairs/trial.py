"""Run changed scripts, each in a process of its own.

A process for trials answers one request after another. Where processes can be forked, each script runs in a fork, so
that the libraries are loaded once; elsewhere the process ends after one script.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import random
import runpy
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

import numpy as np

from glassgrad.doctor.repairs.figures import figures, gain
from glassgrad.doctor.repairs.guard import shut

FORKS = hasattr(os, "fork")
PART, HOPE = 0.34, 0.2
"""The part of the printed lines after which a trial is compared with the control, and the gain that lets it go on."""
_KEPT = 60_000


@dataclass(frozen=True)
class Request:
    """A script to be run.

    Attributes:
        text: the script; `path` is its own place, `folder` that of the trial; `arguments` are its own.
        shift: what is added to its seeds.
        watched: whether the doctor watches it and measures how well its outputs fit.
        control: what the unchanged script printed; a trial that is no better after a part of it is stopped.
        libraries: what is loaded before a fork.
        seconds: the time limit.
    """

    text: str
    path: str
    folder: str
    arguments: tuple[str, ...] = ()
    shift: int = 0
    watched: bool = False
    control: str = ""
    libraries: tuple[str, ...] = ()
    seconds: float = 60.0


@dataclass(frozen=True)
class Answer:
    """The result of a run: what it printed, how well its outputs fit, its seconds, and the error that ended it."""

    printed: str = ""
    fits: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""


def serve(requests: Connection) -> None:
    """Answer requests until the other end closes; without forks only one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's to handle
    os.environ.update(OMP_NUM_THREADS="1", MPLBACKEND="Agg")
    _quiet()
    warnings.simplefilter("ignore")
    with contextlib.suppress(EOFError, OSError):
        while True:
            request: Request = requests.recv()
            for name in request.libraries:
                with contextlib.suppress(ImportError):
                    __import__(name)
            requests.send(_forked(request) if FORKS else _run(request))
            if not FORKS:
                return


def _quiet() -> None:
    """Send what anybody prints nowhere."""
    with Path(os.devnull).open("wb") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)


def _forked(request: Request) -> Answer:
    """Run a request in a fork; kill it when its time is over."""
    mine, its = Pipe(duplex=False)
    child = os.fork()
    if not child:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.alarm(math.ceil(request.seconds) + 5)  # should nobody be left to kill it
        its.send(_run(request))
        os._exit(0)
    its.close()
    signal.signal(signal.SIGTERM, lambda *_: _end(child))
    answer = Answer(error="the time was over")
    with mine, contextlib.suppress(EOFError):
        if mine.poll(request.seconds):
            answer = Answer(error="its process ended")
            answer = mine.recv()
    _kill(child)
    os.waitpid(child, 0)
    return answer


def _kill(child: int) -> None:
    """Kill a fork and what it has started."""
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(child, signal.SIGKILL)


def _end(child: int) -> None:
    _kill(child)
    os._exit(0)


def _run(request: Request) -> Answer:
    """Run the script of a request."""
    from glassgrad.doctor.script import run_script

    _shift_seeds(request.shift)
    folder = Path(request.folder)
    os.chdir(folder)
    changed = folder / Path(request.path).name
    shut(folder)
    changed.unlink(missing_ok=True)  # it may be a link to the user's own
    changed.write_bytes(request.text.encode())
    sys.path.insert(1, str(Path(request.path).resolve().parent))
    printed, errors, caught = _Printed(request.control), io.StringIO(), _Caught()
    fits: dict[str, float] = {}
    begun = time.perf_counter()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors), caught:
        if request.watched:
            watched, ended = run_script(changed, request.arguments)
            fits = {name: value for one in watched for name, value in one.fits.items()}
            caught.error = "" if ended else errors.getvalue().strip().rpartition("\n")[2] or "it failed"
        else:
            sys.argv = [str(changed), *request.arguments]
            runpy.run_path(str(changed), run_name="__main__")
    return Answer(printed.getvalue()[-_KEPT:], fits, time.perf_counter() - begun, caught.error)


class _Caught:
    """Catches the error that ends a script, whatever it is, and keeps it in words."""

    def __init__(self) -> None:
        self.error = ""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if isinstance(error, SystemExit):
            self.error = "" if error.code in {None, 0} else f"exit status {error.code}"
        elif error is not None:
            self.error = f"{type(error).__name__}: {error}"
        return True


class Hopeless(BaseException):
    """Ends a trial that is no better than the script without the change; no handler of the script catches it."""


class _Printed(io.StringIO):
    """What a script prints. After a part of the lines of the control it is compared with it."""

    def __init__(self, control: str) -> None:
        super().__init__()
        self._lines = control.splitlines()
        self._after = math.ceil(len(self._lines) * PART) if len(self._lines) > 2 else 0
        self._seen = 0

    def write(self, text: str) -> int:
        """Take a text; raise `Hopeless` at the line of the comparison if no figure is better."""
        count = super().write(text)
        before, self._seen = self._seen, self._seen + text.count("\n")
        if before < self._after <= self._seen:
            known = figures("\n".join(self._lines[: self._seen]), {})
            mine = figures(self.getvalue(), {})
            if known and not any(gain(one, mine.get(name)) > HOPE for name, one in known.items()):
                raise Hopeless
        return count


def _shift_seeds(shift: int) -> None:
    """Add a number to the seeds that the script sets."""
    places = [(np.random, "seed"), (np.random, "default_rng"), (random, "seed")]
    places += [(sys.modules[name], "manual_seed") for name in ("torch", "glassgrad") if name in sys.modules]
    for module, name in places if shift else ():
        setattr(module, name, _shifted(getattr(module, name), shift))


def _shifted(function: Callable[..., object], shift: int) -> Callable[..., object]:
    def seeded(seed: object = None, *args: object, **kwargs: object) -> object:
        return function(seed + shift if isinstance(seed, int) else seed, *args, **kwargs)

    return seeded
