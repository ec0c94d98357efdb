"""Processes that run programs: one that runs, one that waits, and new ones for those that were ended."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Self

from glassgrad import errors
from glassgrad.lessons.limits import FORKS
from glassgrad.lessons.playground import limits

Event = dict[str, object]
_START = 60.0  # seconds for a process to become ready, on a busy machine
_HOME = str(Path(__file__).resolve().parents[3])
_PROGRAM = f"import sys; sys.path.insert(0, {_HOME!r}); from glassgrad.lessons.playground.child import main; main()"
_GRACE = 2.0  # seconds after its time limit in which a process ends itself


class Child:
    """A process with its events; it leads a group, so that whatever it started ends with it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],  # -P: no file of this folder is imported
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,  # Windows knows none, and ignores it
        )
        self.events: queue.Queue[Event | None] = queue.Queue()
        self.is_ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError, OSError), self.process.stdout:
            for line in self.process.stdout:
                event = json.loads(line)
                if event["event"] == "ready":
                    self.is_ready.set()
                else:
                    self.events.put(event)
        self.events.put(None)
        self.is_ready.set()

    def tell(self, request: Mapping[str, object]) -> None:
        """Send a request; one that has ended hears nothing."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """End it with everything that it has started."""
        if sys.platform == "win32":
            self.process.kill()
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()


class Runner:
    """Runs one program at a time; a new one ends that before it.

    Args:
        seconds, most: limits of a run: time without progress, and bytes.

    Example:
        >>> with Runner() as runner:
        ...     events = list(runner.run("x = 1 + 1", ["values"], 1))
        >>> [event["event"] for event in events]
        ['started', 'sliders', 'pane', 'done']
    """

    def __init__(self, seconds: float = limits.SECONDS, most: int = limits.BYTES) -> None:
        self.seconds, self.most = seconds, most
        self._waiting: list[Child] = [Child()]
        self._running: Child | None = None
        self._stopped: set[Child] = set()
        self._paused = False
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._closed = False
        self._asked = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            children = [*self._waiting, *([self._running] if self._running is not None else [])]
            self._waiting = []
        for child in children:
            child.end()

    def run(
        self,
        text: str,
        panes: list[str],
        number: int,
        sliders: Mapping[str, float] | None = None,
        file: Path | None = None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Generator[Event]:
        """Run a text and yield its events, the last of which is "done" or "stopped".

        Args:
            text: the program.
            panes: the names of the panes to compute.
            number: of the run, which every event repeats.
            sliders: numbers to put in, by LINE:COLUMN.
            file: the program's file, beside which it may import others.
            wanted: asked now and then; where it says False, the program is ended.
        """
        with self._lock:
            self._asked = mine = self._asked + 1
        self.stop()
        with self._turn:
            if mine != self._asked:
                yield _stopped(number, "killed", "stopped")
                return
            child = self._taken()
            request: dict[str, object] = {"op": "run", "text": text, "panes": panes, "run": number}
            request |= {"sliders": dict(sliders or {}), "limits": {"seconds": self.seconds, "bytes": self.most}}
            request |= {"name": file.name if file is not None else "playground.py"}
            request |= {"folder": str(file.resolve().parent) if file is not None else ""}
            clean = False
            try:
                child.tell(request)
                for event in self._events(child, number, wanted):
                    clean = bool(event.pop("clean", False))
                    yield event
            finally:
                self._give_back(child, clean=clean)

    def _events(self, child: Child, number: int, wanted: Callable[[], bool]) -> Iterator[Event]:
        """Yield a child's events; end it if it says nothing for longer than its limit."""
        told = False
        late = time.monotonic() + self.seconds + _GRACE
        while True:
            event: Event | None = None
            try:
                event = child.events.get(timeout=0.1)
            except queue.Empty:
                if child.process.poll() is not None and child.events.empty():
                    break  # a copy of the process holds its output open
                late = late if not self._paused else time.monotonic() + self.seconds + _GRACE
                if not wanted() or time.monotonic() > late:
                    told = True
                    yield _stopped(number, *(_HUNG if wanted() else _KILLED))
                    break
                continue
            if event is None:
                break
            told = told or event["event"] == "stopped"
            if event["event"] == "progress":
                late = time.monotonic() + self.seconds + _GRACE
            yield event
            if event["event"] == "done":
                return
        if not told:
            yield self._end_of(child, number)

    def _end_of(self, child: Child, number: int) -> Event:
        """Return the event for a process that has ended by itself, or was stopped."""
        code = child.process.wait()
        if child in self._stopped:
            return _stopped(number, "killed", "stopped")
        if code == FORKS:
            return _stopped(number, "killed", "stopped: the program started too many processes")
        if code == -9:
            return _stopped(number, "memory", "the system ended the program, most likely for its memory")
        how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
        return _stopped(number, "exit", f"the program ended its process {how}")

    def stop(self) -> None:
        """End the running program."""
        with self._lock:
            child = self._running
            if child is not None:
                self._stopped.add(child)
        if child is not None:
            child.end()

    def steer(self, order: str, *, paused: bool = False) -> None:
        """Pause the loop of the running program, let it go on, or let it make one step."""
        with self._lock:
            child = self._running
            self._paused = child is not None and (paused or order == "step")
        if child is not None:
            child.tell({"op": order, "paused": paused})

    def _taken(self) -> Child:
        with self._lock:
            if self._closed:
                raise errors.PLAYGROUND_CLOSED(what="playground")
            child = self._waiting.pop(0) if self._waiting else Child()
            if not self._waiting:
                self._waiting.append(Child())  # ready by the time this one is ended
            self._running, self._paused = child, False
        child.is_ready.wait(_START)
        return child

    def _give_back(self, child: Child, *, clean: bool) -> None:
        with self._lock:
            self._running = None
            stopped = child in self._stopped
            self._stopped.discard(child)
            if clean and not stopped and not self._closed:
                self._waiting.insert(0, child)
                return
        child.end()


_KILLED = ("killed", "stopped")
_HUNG = ("hang", "stopped: the program did not let go of Python")


def _stopped(number: int, reason: str, message: str) -> Event:
    return {"event": "stopped", "run": number, "reason": reason, "message": message}
