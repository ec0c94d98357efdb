"""Processes that run programs: one that runs, one that waits, and new ones for those that were ended."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from glassgrad import errors
from glassgrad.lessons.limits import FORKS
from glassgrad.lessons.playground.events import BYTES, SECONDS, Request

Event = dict[str, object]
_START = 60.0  # seconds for a process to become ready, on a busy machine
_HOME = str(Path(__file__).resolve().parents[3])
_PROGRAM = f"import sys; sys.path.insert(0, {_HOME!r}); from glassgrad.lessons.playground.child import main; main()"
_GRACE = 2.0  # seconds after its time limit in which a process ends itself
_LATER = 1.0  # seconds from the first run to the second process: until then the page needs the processor's cores


class Child:
    """A process with its events; it leads a group, so that whatever it started ends with it.

    Attributes:
        stopped: whether somebody has ended it.
    """

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],  # -P: no file of this folder is imported
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,  # Windows knows none, and ignores it
        )
        self.stopped = False
        self.is_ready = threading.Event()
        self._events: queue.Queue[Event | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with suppress(ValueError, OSError), self.process.stdout:
            for line in self.process.stdout:
                event = json.loads(line)
                if event["event"] == "ready":
                    self.is_ready.set()
                else:
                    self._events.put(event)
        self._events.put(None)
        self.is_ready.set()

    def next(self) -> Event | None:
        """Return the next event; an empty one if none comes within a tenth of a second, and None at the end."""
        with suppress(queue.Empty):
            return self._events.get(timeout=0.1)
        # A copy of the process can hold its output open.
        return None if self.process.poll() is not None and self._events.empty() else {}

    def tell(self, order: str, given: Mapping[str, object]) -> None:
        """Send an order; one that has ended hears nothing."""
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):
            self.process.stdin.write(json.dumps({"op": order, **given}) + "\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """End it with everything that it has started."""
        if sys.platform == "win32":
            self.process.kill()
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()

    def reason(self) -> tuple[str, str]:
        """Return why it has ended without a word: a kind, and a sentence."""
        code = self.process.wait()
        if self.stopped:
            return _KILLED
        if code == FORKS:
            return "killed", "stopped: the program started too many processes"
        if code == -9:
            return "memory", "the system ended the program, most likely for its memory"
        how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
        return "exit", f"the program ended its process {how}"


class Runner(AbstractContextManager["Runner"]):
    """Runs one program at a time; a new one ends that before it.

    Args:
        seconds, most: limits of a run: time without progress, and bytes.

    Example:
        >>> with Runner() as runner:
        ...     events = list(runner.run("x = 1 + 1", ["values"], 1))
        >>> [event["event"] for event in events]
        ['started', 'pane', 'done']
    """

    def __init__(self, seconds: float = SECONDS, most: int = BYTES) -> None:
        self.seconds, self.most = seconds, most
        self._waiting: list[Child] = [Child()]
        self._running: Child | None = None
        self._paused = False
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._closed = False
        self._asked = 0
        self._newest = ("", 0)  # the page that asked last, and the number of its run
        self._later = _LATER

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
        file: Path | None = None,
        wanted: Callable[[], bool] = lambda: True,
        page: str = "",
    ) -> Generator[Event]:
        """Run a text and yield its events, the last of which is "done" or "stopped".

        Args:
            text: the program.
            panes: the names of the panes to compute.
            number: of the run, which every event repeats.
            file: the program's file, beside which it may import others.
            wanted: asked now and then; where it says False, the program is ended.
            page: which page asks. Two requests of one page can arrive in the wrong order; its newer run is kept then.
        """
        with self._lock:
            is_late = bool(page) and page == self._newest[0] and number < self._newest[1]
            if not is_late:
                self._newest = (page, number)
                self._asked += 1
            mine = self._asked
        if is_late:
            yield _stopped(number, _KILLED)
            return
        self.stop()
        with self._turn:
            if mine != self._asked:
                yield _stopped(number, _KILLED)
                return
            child = self._taken()
            place = ("playground.py", "") if file is None else (file.name, str(file.resolve().parent))
            clean = False
            try:
                child.tell("run", vars(Request(text, panes, number, *place, self.seconds, self.most)))
                for event in self._events(child, number, wanted):
                    clean = bool(event.pop("clean", False))
                    yield event
            finally:
                self._give_back(child, clean=clean)

    def _events(self, child: Child, number: int, wanted: Callable[[], bool]) -> Generator[Event]:
        """Yield a child's events up to the last; give up one that says nothing for longer than its limit."""
        told, last = False, time.monotonic()
        while (event := child.next()) is not None:
            if self._paused or event.get("event") == "progress":
                last = time.monotonic()
            if event:
                told = told or event["event"] == "stopped"
                yield event
                if event["event"] == "done":
                    return
            elif not wanted() or time.monotonic() > last + self.seconds + _GRACE:
                yield _stopped(number, _HUNG if wanted() else _KILLED)
                return
        if not told:
            yield _stopped(number, child.reason())

    def stop(self) -> None:
        """End the running program."""
        with self._lock:
            child = self._running
            if child is not None:
                child.stopped = True
        if child is not None:
            child.end()

    def steer(self, order: str, *, paused: bool = False) -> None:
        """Pause the loop of the running program, let it go on, or let it make one step."""
        with self._lock:
            child = self._running
            self._paused = child is not None and (paused or order == "step")
        if child is not None:
            child.tell(order, {"paused": paused})

    def _taken(self) -> Child:
        with self._lock:
            if self._closed:
                raise errors.PLAYGROUND_CLOSED(what="playground")
            child = self._waiting.pop(0) if self._waiting else Child()
            self._running, self._paused = child, False
        later, self._later = self._later, 0.0
        timer = threading.Timer(later, self._fill)
        timer.daemon = True
        timer.start()
        child.is_ready.wait(_START)
        return child

    def _fill(self) -> None:
        """Let another process wait, to be ready by the time this one is ended."""
        with self._lock:
            if not self._closed and len(self._waiting) + (self._running is not None) <= 1:
                self._waiting.append(Child())

    def _give_back(self, child: Child, *, clean: bool) -> None:
        with self._lock:
            self._running = None
            if clean and not child.stopped and not self._closed:
                self._waiting.insert(0, child)
                return
        child.end()


_KILLED = ("killed", "stopped")
_HUNG = ("hang", "stopped: the program did not let go of Python")


def _stopped(number: int, why: tuple[str, str]) -> Event:
    return {"event": "stopped", "run": number, "reason": why[0], "message": why[1]}
