"""The process that runs programs: it waits with everything imported, runs one text at a time, and sends events.

`main` reads requests from its standard input and writes events to its standard output, both as lines of JSON. A program
sees neither: its input is empty, and what it prints is an event. A thread ends the process when a run takes too long;
the server kills it a little later, if even this thread does not come to run. `lessons/limits.py` has the other limits.
"""

from __future__ import annotations

import io
import json
import os
import queue
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from types import ModuleType
from typing import TextIO

import numpy as np

from glassgrad import errors
from glassgrad.engine.random import manual_seed
from glassgrad.lessons.limits import Watchdog, count_forks, memory_limited
from glassgrad.lessons.playground import program
from glassgrad.lessons.playground.events import Output, Request, Sender
from glassgrad.lessons.playground.loop import Loop, witnessed
from glassgrad.lessons.playground.panes import Panes
from glassgrad.lessons.playground.program import Caught, Program

_FIRST = "import glassgrad as gg\nx = gg.tensor(2.0, requires_grad=True)\nloss = (x * x).sin()\n"
_WARM, _LATER = ("values",), ("graph", "derivation", "backward")
_IDLE = 1.0  # seconds
_PATIENCE = 0.5  # seconds
_SHORT = "the program asked for more memory than the playground gives to one"
_WATCHED = "builtins math random json numpy numpy.random glassgrad glassgrad.nn glassgrad.optim"


class Process:
    """The state of a process between runs."""

    def __init__(self, control: TextIO, channel: TextIO) -> None:
        self.send = Sender(channel)
        self.guard = Watchdog(self._over)
        self.requests: queue.Queue[Request | None] = queue.Queue()
        self.loop: Loop | None = None
        self.forks = count_forks()
        self.waits = iter((None, _IDLE))
        self._control = control

    def _over(self, reason: str, line: int | None) -> None:
        """Say why a run ends here, and end the process."""
        place = "" if line is None else f", in line {line}"
        most = f"{self.guard.most >> 20:,} MB"
        why = f" after {self.guard.seconds:g} s{place}" if reason == "time" else f": it took more than {most}"
        self.send({"event": "stopped", "reason": reason, "message": f"stopped{why}"})
        os._exit(1)

    def serve(self) -> None:
        """Run requests until the input ends."""
        threading.Thread(target=self._listen, daemon=True).start()
        self._warm(_WARM)
        library = _library()
        self.send({"event": "ready"})
        while (request := self._next()) is not None:
            threads, forks, began = set(threading.enumerate()), self.forks(), time.perf_counter()
            with redirected(self.send) as flush:
                whole = self._run(request, flush)
            if self.send.is_forked:
                os._exit(0)
            alone = self.forks() == forks and threads.issuperset(threading.enumerate())
            clean = whole and alone and all(space.get(name) is one for space, name, one in library)
            self.send({"event": "done", "ms": round(1e3 * (time.perf_counter() - began), 3), "clean": clean})

    def _next(self) -> Request | None:
        """Return the next request; None at the end. After the first run, a pause prepares the panes of the compiler."""
        with suppress(queue.Empty):
            return self.requests.get(timeout=next(self.waits, None))
        self._warm(_LATER)
        return self.requests.get()

    def _listen(self) -> None:
        """Read requests; those about the loop of a running program are carried out at once."""
        for line in self._control:
            given = json.loads(line)
            order = given.pop("op")
            if order == "run":
                self.requests.put(Request(**given))
            elif self.loop is not None:
                self.loop.steer(order, bool(given["paused"]))
        self.requests.put(None)
        time.sleep(_PATIENCE)
        os._exit(0)  # the server is gone, and a program still runs

    def _warm(self, names: tuple[str, ...]) -> None:
        """Compute once what runs compute, so that the first one is as fast as the others."""
        with redirected(self.send):
            made = program.read(_FIRST, "first.py")
            program.run(made)
            panes = Panes(made)
            for name in names:
                panes.pane(name)

    def _run(self, asked: Request, flush: Callable[[], None]) -> bool:
        """Run a program and send its panes; return whether this process is as before."""
        # The library keeps what it read of a file by its name, so each run has a file of its own.
        file = f"{asked.name.removesuffix('.py')}.run{asked.run}.py"
        self.send.run, self.send.rename = asked.run, (json.dumps(file)[1:-1], json.dumps(asked.name)[1:-1])
        self.send({"event": "started"})
        self.guard.file, self.guard.seconds, self.guard.most = file, asked.seconds, asked.most
        self.guard.reset()
        try:
            with memory_limited(asked.most), surroundings(asked.folder):
                return self._program(asked, file, flush)
        finally:
            self.guard.stop()
            self.loop = None

    def _program(self, asked: Request, file: str, flush: Callable[[], None]) -> bool:
        made = program.read(asked.text, file)
        panes: list[str] = [] if made.error is not None else sorted(asked.panes, key=lambda one: one != "values")
        self.loop = loop = Loop(self.send, self.guard, made, flush)
        with witnessed(loop):
            program.run(made)
            flush()
            if self.send.is_forked:
                os._exit(0)
            loop.over()
            whole = self._tell_end(made)
            shown = Panes(made, trains=loop.steps > 0)
            for name in panes:
                whole = self._pane(shown, name) and whole
                flush()
        return whole

    def _tell_end(self, made: Program) -> bool:
        """Send the error that ended a program; return whether the process may go on."""
        error = made.error
        if isinstance(error, SystemExit):
            message = f"the program ended itself: exit({error.code})"
            self.send({"event": "stopped", "reason": "exit", "message": message})
        elif error is not None:
            self.send(program.error_data(error, made))
        if isinstance(error, MemoryError):
            self.send({"event": "stopped", "reason": "memory", "message": _SHORT})
        return not isinstance(error, MemoryError)

    def _pane(self, panes: Panes, name: str) -> bool:
        caught = Caught()
        with caught, np.errstate(all="ignore"):
            self.send({"event": "pane", "name": name, "data": panes.pane(name)})
            return True
        error = caught.error
        assert error is not None
        message = str(error) if isinstance(error, errors.GlassgradError) else f"{type(error).__name__}: {error}"
        line = program.error_data(error, panes.program)["line"]
        self.send({"event": "pane", "name": name, "error": {"message": message, "line": line}})
        return isinstance(error, Exception) and not isinstance(error, MemoryError)


@contextmanager
def redirected(send: Sender) -> Iterator[Callable[[], None]]:
    """Make output events in the block; give a function that sends what is held."""
    streams = [Output(send, name) for name in ("stdout", "stderr")]

    def flush() -> None:
        for stream in streams:
            stream.flush()

    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        yield flush
        flush()


@contextmanager
def surroundings(folder: str) -> Iterator[None]:
    """Put back what a program may change around it: seeds, folder, environment, paths, warnings, loaded modules."""
    environment, paths, loaded, arguments = dict(os.environ), list(sys.path), set(sys.modules), sys.argv
    with warnings.catch_warnings(), np.errstate(), chdir("."):
        warnings.filterwarnings("ignore", "This process .* is multi-threaded")  # the other thread is the playground's
        manual_seed(0)
        random.seed(0)
        np.random.mtrand._rand.seed(0)  # programs that call np.random.rand use it
        sys.argv, sys.stdin = [""], io.StringIO()
        if folder:
            sys.path.insert(0, folder)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(environment)
            sys.path[:], sys.argv = paths, arguments
            for name in set(sys.modules) - loaded if folder else ():
                if str(getattr(sys.modules[name], "__file__", "") or "").startswith(folder):
                    del sys.modules[name]  # the user may change it before the next run


def _library() -> list[tuple[dict[str, object], str, object]]:
    """Return the functions and classes that programs call; one that replaces them spoils the process for the next."""
    spaces = [vars(sys.modules[name]) for name in _WATCHED.split() if name in sys.modules]
    found = [(space, name, one) for space in spaces for name, one in space.items()]
    return [one for one in found if callable(one[2]) or isinstance(one[2], ModuleType)]


def main() -> None:
    """Move the pipes away from the numbers that a program knows, and serve."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    control = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR | getattr(os, "O_BINARY", 0))
    for number in range(3):
        os.dup2(nothing, number)
    os.environ.setdefault("MPLBACKEND", "Agg")
    Process(control, channel).serve()
