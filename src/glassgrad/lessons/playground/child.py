"""The process that runs programs: it waits with everything imported, runs one text at a time, and sends events.

`main` reads requests from its standard input and writes events to its standard
output, both as lines of JSON. A program sees neither: its input is empty, and what it prints is an event.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TextIO

import numpy as np

from glassgrad import errors
from glassgrad.engine.random import manual_seed
from glassgrad.explanation.recording import Recorder
from glassgrad.lessons.limits import count_forks, memory_limited
from glassgrad.lessons.playground import limits, program
from glassgrad.lessons.playground.loop import Loop
from glassgrad.lessons.playground.panes import Panes
from glassgrad.lessons.playground.program import Caught, Data, Ran

_FIRST = "import glassgrad as gg\nx = gg.tensor(2.0, requires_grad=True)\nloss = (x * x).sin()\n"
_WARM = ("values", "graph", "derivation")
_WATCHED = (
    "builtins",
    "math",
    "random",
    "json",
    "numpy",
    "numpy.random",
    "glassgrad",
    "glassgrad.nn",
    "glassgrad.optim",
)


class Process:
    """The state of a process between runs."""

    def __init__(self, control: TextIO, channel: TextIO) -> None:
        self.send = limits.Sender(channel)
        self.guard = limits.Guard(self.send)
        self.requests: queue.Queue[Mapping[str, Data] | None] = queue.Queue()
        self.loop: Loop | None = None
        self.forked = False
        self._control = control
        count_forks(self._fork)

    def _fork(self) -> None:
        self.forked = True

    def serve(self) -> None:
        """Run requests until the input ends."""
        threading.Thread(target=self._listen, daemon=True).start()
        with redirected(self.send):
            self._warm()
        library = _library()
        threads = set(threading.enumerate())
        self.send({"event": "ready"})
        while (request := self.requests.get()) is not None:
            self.forked = False
            began = time.perf_counter()
            with redirected(self.send) as flush:
                whole = self._run(request, flush)
            if self.send.is_forked:
                os._exit(0)
            left = [one for one in threading.enumerate() if one not in threads]
            clean = whole and not self.forked and not left and _is_same(library)
            self.send({"event": "done", "ms": round(1e3 * (time.perf_counter() - began), 3), "clean": clean})

    def _listen(self) -> None:
        """Read requests; those about the loop of a running program are carried out at once."""
        for line in self._control:
            request = json.loads(line)
            if request["op"] == "run":
                self.requests.put(request)
            elif self.loop is not None:
                self.loop.steer(request["op"], bool(request.get("paused")))
        self.requests.put(None)
        time.sleep(_PATIENCE)
        os._exit(0)  # the server is gone, and a program still runs

    def _warm(self) -> None:
        """Compute once what every run computes, so that the first run is as fast as the others."""
        ran = program.run(program.read(_FIRST, "first.py", {}), Recorder())
        panes = Panes(ran)
        for name in _WARM:
            panes.pane(name)

    def _run(self, request: Mapping[str, Data], flush: Callable[[], None]) -> bool:
        """Run a program and send its panes; return whether this process is as before."""
        given: dict[str, object] = dict(request)
        self.send.run = int(str(given["run"]))
        text, shown = str(given["text"]), str(given["name"])
        stem = shown.removesuffix(".py")
        # The library keeps what it read of a file by its name, so each run has a file of its own.
        file = f"{stem}.run{self.send.run}.py"
        self.send.rename = (json.dumps(file)[1:-1], json.dumps(shown)[1:-1])
        self.send({"event": "started"})
        self.send({"event": "sliders", "numbers": program.sliders(text)})
        bounds = request["limits"]
        most = int(str(bounds["bytes"]))
        recorder = Recorder()
        self.loop = loop = Loop(self.send, self.guard, recorder, flush)
        self.guard.begin(file, float(str(bounds["seconds"])), most)
        try:
            with memory_limited(most), surroundings(str(given["folder"])), loop:
                sliders = {place: float(str(number)) for place, number in request["sliders"].items()}
                whole = self._program(text, file, sliders, [str(one) for one in request["panes"]], flush)
        finally:
            self.guard.pause()
            self.loop = None
        return whole

    def _program(
        self, text: str, file: str, sliders: Mapping[str, float], wanted: list[str], flush: Callable[[], None]
    ) -> bool:
        caught = Caught()
        ran = None
        assert self.loop is not None
        with caught:
            made = program.read(text, file, sliders)
            self.loop.tree = made.tree
            ran = program.run(made, self.loop.recorder)
        flush()
        if self.send.is_forked:
            os._exit(0)
        if ran is None:
            assert caught.error is not None
            self.send(program.error_data(caught.error, None, file))
            return True
        self.loop.over(ran.names)
        whole = self._tell_end(ran)
        panes = Panes(ran, trains=self.loop.steps > 0)
        for name in sorted(wanted, key=lambda one: one != "values"):
            whole = self._pane(panes, name) and whole
            flush()
        return whole

    def _tell_end(self, ran: Ran) -> bool:
        """Send the error that ended a program; return whether the process may go on."""
        error = ran.error
        if error is None:
            return True
        if isinstance(error, SystemExit):
            self.send(
                {"event": "stopped", "reason": "exit", "message": f"the program ended itself: exit({error.code})"}
            )
            return True
        self.send(program.error_data(error, ran.program, ran.program.file))
        if isinstance(error, MemoryError):
            self.send({"event": "stopped", "reason": "memory", "message": _SHORT})
        return not isinstance(error, MemoryError)

    def _pane(self, panes: Panes, name: str) -> bool:
        caught = Caught()
        data: Data = {}
        with caught, np.errstate(all="ignore"):
            data = panes.pane(name)
        error = caught.error
        if error is None:
            self.send({"event": "pane", "name": name, "data": data})
            return True
        message = str(error) if isinstance(error, errors.GlassgradError) else f"{type(error).__name__}: {error}"
        told = program.error_data(error, panes.ran.program, panes.file)
        self.send({"event": "pane", "name": name, "error": {"message": message, "line": told["line"]}})
        return isinstance(error, Exception) and not isinstance(error, MemoryError)


_SHORT = "the program asked for more memory than the playground gives to one"
_PATIENCE = 0.5  # seconds


@contextmanager
def redirected(send: limits.Sender) -> Iterator[Callable[[], None]]:
    """Make output events in the block, and leave the input empty; give a function that sends what is held."""
    before = sys.stdin, sys.stdout, sys.stderr
    streams = [limits.Output(send, name) for name in ("stdout", "stderr")]

    def flush() -> None:
        for stream in streams:
            if not stream.closed:
                stream.flush()

    sys.stdin, (sys.stdout, sys.stderr) = io.StringIO(), streams
    try:
        yield flush
        flush()
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def surroundings(folder: str) -> Iterator[None]:
    """Put back what a program may change around it: seeds, folder, environment, paths, warnings, loaded modules."""
    place, environment, paths, floats = Path.cwd(), dict(os.environ), list(sys.path), np.geterr()
    loaded, arguments = set(sys.modules), sys.argv
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        manual_seed(0)
        random.seed(0)
        np.random.mtrand._rand.seed(0)  # programs that call np.random.rand use it
        sys.argv = [""]
        if folder:
            sys.path.insert(0, folder)
        try:
            yield
        finally:
            if Path.cwd() != place:
                os.chdir(place)
            if dict(os.environ) != environment:
                os.environ.clear()
                os.environ.update(environment)
            sys.path[:], sys.argv = paths, arguments
            np.seterr(**floats)
            for name in set(sys.modules) - loaded if folder else ():
                if str(getattr(sys.modules[name], "__file__", "") or "").startswith(folder):
                    del sys.modules[name]  # the user may change it before the next run


def _library() -> dict[str, dict[str, object]]:
    """Return the functions and classes that programs call; one that replaces them spoils the process for the next."""
    found = {name: vars(sys.modules[name]) for name in _WATCHED if name in sys.modules}
    return {name: {key: one for key, one in space.items() if _is_code(one)} for name, space in found.items()}


def _is_code(value: object) -> bool:
    return callable(value) or isinstance(value, ModuleType)


def _is_same(library: Mapping[str, Mapping[str, object]]) -> bool:
    return all(
        vars(sys.modules[name]).get(key) is value for name, space in library.items() for key, value in space.items()
    )


def main() -> None:
    """Move the pipes away from the numbers that a program knows, and serve."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    control = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR | getattr(os, "O_BINARY", 0))
    for number in range(3):
        os.dup2(nothing, number)
    os.environ.setdefault("MPLBACKEND", "Agg")
    Process(control, channel).serve()
