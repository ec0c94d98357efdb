"""End all ranks when one dies, hangs or raises, and name that rank and its message.

A thread of every rank reports to rank 0 twice a second; rank 0's `monitor` finds out whether a rank hangs. They use
TCP instead of MPI, since a stuck MPI cannot report. Every rank ends itself when one has failed, so no launcher is
needed.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import secrets
import socket
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad._version import __version__
from glassgrad.distributed import waiting
from glassgrad.distributed.life import Life
from glassgrad.distributed.links import Arm, Center, Link, listen, say
from glassgrad.distributed.segments import remove, segments
from glassgrad.distributed.world import ProcessGroup

_ROW = 512  # bytes of a rank's description
_STATE: dict[str, Guard] = {}


def install(group: ProcessGroup) -> None:
    """Watch the ranks of the world from now on, after comparing their versions.

    Raises:
        RunError: on every rank, when they run different versions of glassgrad, NumPy or Python.
    """
    if "guard" in _STATE or group.size() == 1:
        return
    own = {
        "glassgrad": __version__,
        "NumPy": np.__version__,
        "Python": platform.python_version(),
        "order": sys.byteorder,
    }
    everybody = _exchange(group, {"versions": own, "pid": os.getpid(), "host": socket.gethostname()})
    _compare(everybody)
    guard = Guard(group, everybody)
    _STATE["guard"] = guard
    guard.start()


def active() -> Guard | None:
    """Return the guard of this process, if it is one of several ranks."""
    return _STATE.get("guard")


def _exchange(group: ProcessGroup, said: dict[str, Any]) -> list[dict[str, Any]]:
    row = np.frombuffer(json.dumps(said).encode()[:_ROW].ljust(_ROW), np.uint8)
    rows = np.empty((group.size(), _ROW), np.uint8)
    waiting.wait_until(group.comm.Iallgather(row, rows).Test, group, "init_process_group")
    return [json.loads(bytes(one)) for one in rows]


def _compare(everybody: list[dict[str, Any]]) -> None:
    first = everybody[0]["versions"]
    differences = [
        f"{what} is {versions[what]} on rank {rank} ({one['host']}) and {first[what]} on rank 0"
        for rank, one in enumerate(everybody)
        for versions in [one["versions"]]
        for what in versions
        if versions[what] != first[what]
    ]
    if differences:
        raise errors.RANKS_DIFFER(differences="; ".join(differences[:6]))


class Guard:
    """The thread of one rank, its connection, and the functions that end the process."""

    def __init__(self, group: ProcessGroup, everybody: list[dict[str, Any]]) -> None:
        self.rank = group.me
        self.size = group.size()
        self.names = [f"rank {rank} (process {one['pid']} on {one['host']})" for rank, one in enumerate(everybody)]
        self.patience = _patience()
        self.pid = os.getpid()
        self.all_left = threading.Event()
        self.ending = False
        self._lock = threading.Lock()
        self._life = Life()
        one_host = len({one["host"] for one in everybody}) == 1
        listener = listen(one_host) if self.rank == 0 else None
        port = 0 if listener is None else listener.getsockname()[1]
        token = secrets.token_hex(16)
        found = _exchange(group, {"port": port, "token": token})[0]
        self.link: Link = (
            Center(self, listener, found["token"])
            if listener is not None
            else Arm(self, "127.0.0.1" if one_host else everybody[0]["host"], found["port"], found["token"])
        )

    def start(self) -> None:
        """Start the thread, and the hooks for exceptions and for the end of the process."""
        self._hook = sys.excepthook
        sys.excepthook = self._raised
        atexit.register(self.leave)
        os.register_at_fork(after_in_child=self._forked)
        threading.Thread(target=self._work, name="glassgrad-guard", daemon=True).start()
        threading.Thread(target=self._watch, name="glassgrad-watch", daemon=True).start()

    def _watch(self) -> None:
        """Inspect a main thread that has not reached a collective for a while."""
        while os.getpid() == self.pid and not self.ending:
            time.sleep(self._life.look(waiting.passed))

    def _work(self) -> None:
        with suppress(OSError):
            while os.getpid() == self.pid:
                self.link.turn(self.state())

    def _forked(self) -> None:
        """Close the connections in a forked process, so that the other ranks notice the death of this one."""
        self.link.close()

    def state(self) -> dict[str, object]:
        """Return this rank's report."""
        current = waiting.CURRENT
        number, call = current if current is not None else (0, "")
        return {"number": number, "call": call, **self._life.signs()}

    # --- ends ---------------------------------------------------------------------------------------

    def _raised(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Show an uncaught exception and end all ranks, except for Ctrl-C, which reaches all of them."""
        self._hook(kind, error, trace)
        if os.getpid() != self.pid or issubclass(kind, KeyboardInterrupt):
            return
        _flush()
        lines = str(error).splitlines()
        self.link.failed(f"{kind.__name__}{': ' + lines[0] if lines else ''}")
        time.sleep(3.0)  # rank 0 tells all ranks to end, after reporting what other ranks raised
        self.end(1)

    def leave(self, code: int = 0, limit: float | None = None) -> bool:
        """Wait until all ranks have finished: a rank that leaves early would shut down MPI for the others.

        Args:
            code: the exit code of this rank.
            limit: seconds to wait at most.

        Returns:
            Whether all have finished.
        """
        if os.getpid() != self.pid or self.ending:
            return True
        self.ending = True
        _flush()
        self.link.left(code)
        return self.all_left.wait(limit)

    def verdict(self, text: str, code: int) -> None:
        """Print the failure on the rank that found it, inform all ranks, and end."""
        with self._lock:  # a second caller waits here until the process ends
            say(f"error: {text}")
            self.link.tell({"end": code})
            time.sleep(0.2)
            self.end(code)

    def end(self, code: int) -> None:
        """End this process at once, without MPI, which may be stuck."""
        _flush()
        remove(segments())
        os._exit(code)


def _patience() -> float:
    try:
        seconds = float(os.environ.get("GLASSGRAD_HANG_SECONDS", "8"))
    except ValueError:
        seconds = 8.0
    return seconds if seconds > 0 else float("inf")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
