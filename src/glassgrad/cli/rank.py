"""What `glassgrad launch` runs in each process: `python -m glassgrad.cli.rank [--prefix] [-m] SCRIPT [ARGS]...`.

It initialises MPI before the script, so that a rank that fails early, on an import or an argument, ends the others too.
Otherwise they would wait for it in MPI's initialisation, where nothing can interrupt them.
"""

from __future__ import annotations

import ctypes
import io
import os
import runpy
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from glassgrad.distributed.segments import segments

_GRACE = 8.0  # seconds between the failure of this rank and the end of all


def main(given: Sequence[str]) -> None:
    """Run a script or a module as one rank, and end all ranks if it fails."""
    options, program, module = _read(given)
    _end_with_the_launcher()
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt ends a rank that is not yet in MPI
    from mpi4py import MPI

    signal.signal(signal.SIGINT, handler)
    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    if options.get("--roster"):
        _write_roster(comm, Path(options["--roster"]))
    for name in ("stdout", "stderr"):
        if "--prefix" in options:
            setattr(sys, name, Prefixed(getattr(sys, name).fileno(), f"[{rank}] "))
        else:  # whole lines, so that those of several ranks do not mix
            getattr(sys, name).reconfigure(line_buffering=True, write_through=False)
    code = _outcome(program, module)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    if code and not _leaves_with_others(code):
        comm.Abort(code)
    sys.exit(code)


def _leaves_with_others(code: int) -> bool:
    """Wait for the other ranks if a guard watches them, because one may still be writing its last checkpoint."""
    guard = sys.modules.get("glassgrad.distributed.guard")
    active = None if guard is None else guard.active()
    return active is not None and active.leave(code, _GRACE)


def _read(given: Sequence[str]) -> tuple[dict[str, str], list[str], bool]:
    options: dict[str, str] = {}
    rest = list(given)
    while rest and rest[0] in {"--prefix", "--roster", "-m"}:
        name = rest.pop(0)
        options[name] = rest.pop(0) if name == "--roster" else ""
    return options, rest, "-m" in options


def _end_with_the_launcher() -> None:
    """Have Linux kill this process when its parent ends, even by SIGKILL."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _write_roster(comm: Any, path: Path) -> None:
    """Write the process of each rank for the launcher, which can then name a killed one."""
    everybody = comm.gather(" ".join([str(os.getpid()), socket.gethostname(), *segments()]))
    if everybody is not None:
        with suppress(OSError):  # rank 0 is on another machine
            path.write_text(
                "".join(f"{rank} {who}\n" for rank, who in enumerate(everybody)), encoding="utf-8", newline="\n"
            )
    comm.Barrier()  # a process killed from here on can be named


def _outcome(program: list[str], module: bool) -> int:
    """Run the script and return its exit code; show its exceptions."""
    sys.argv = program
    try:
        if module:
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(program[0]).resolve().parent)
            runpy.run_path(program[0], run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BaseException as error:  # noqa: BLE001 - shown as Python would, whatever it is
        error.__traceback__ = _of_the_script(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _of_the_script(trace: TracebackType | None) -> TracebackType | None:
    """Leave out this file and runpy's, which Python would not show either."""
    while trace is not None and trace.tb_frame.f_code.co_filename in {__file__, "<frozen runpy>", runpy.__file__}:
        trace = trace.tb_next
    return trace


class Prefixed(io.TextIOBase):
    """A text stream whose lines begin with the rank, each written in one piece."""

    def __init__(self, descriptor: int, prefix: str) -> None:
        self._descriptor = descriptor
        self._prefix = prefix
        self._rest = ""
        self.buffer = io.FileIO(descriptor, "w", closefd=False)

    encoding = "utf-8"

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *whole, self._rest = (self._rest + text).split("\n")
        if whole:
            self._put("".join(f"{self._prefix}{line}\n" for line in whole))
        return len(text)

    def flush(self) -> None:
        """Do nothing: an incomplete line waits for its rest; `close` writes the last one."""

    def reconfigure(self, **_options: object) -> None:
        """Accept what a TextIOWrapper takes; every line is written at once as it is."""

    def close(self) -> None:
        if self._rest and not self.closed:
            self._put(f"{self._prefix}{self._rest}\n")
            self._rest = ""
        super().close()

    def _put(self, text: str) -> None:
        write: Callable[[int, bytes], int] = os.write
        data = text.encode(errors="replace")
        while data:
            data = data[write(self._descriptor, data) :]


if __name__ == "__main__":
    main(sys.argv[1:])
