"""Run programs unchanged, each in its own process, under PyTorch or under glassgrad, and record them.

`tools/public_programs.py` starts one server for each library, ``child.py serve SOCKET LIBRARY``, which imports the slow
modules once and forks for each program, and ``child.py chain SOCKET REQUEST ...``, which runs a program under both
libraries and waits for its end. The record of a run, a JSON file, contains the way in which the program ended, and, for
each backward pass, the loss and the processor time so far.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import resource
import runpy
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

MEMORY = 12 << 30
WRITTEN = 256 << 20  # bytes of a file
GRACE = 20  # seconds beyond the limit
LONGEST = 500  # characters of an error
# Seconds of the processor's time, and of the clock for programs that wait.
LIMITS = ((signal.SIGPROF, signal.ITIMER_PROF, 1), (signal.SIGALRM, signal.ITIMER_REAL, 10))


class Watch:
    """What a program did so far: the losses that it went back from, and when."""

    def __init__(self, record: Path, steps: int) -> None:
        self.record = record
        self.steps = steps
        self.losses: list[float] = []
        self.times: list[float] = []
        self.owner = os.getpid()
        self.start = time.process_time()

    def attach(self, torch: Any) -> None:
        """Have every `Tensor.backward` counted."""
        original = torch.Tensor.backward

        def backward(tensor: Any, *arguments: Any, **options: Any) -> Any:
            loss = float(tensor.detach()) if tensor.numel() == 1 else float("nan")
            result = original(tensor, *arguments, **options)
            self.losses.append(loss)
            self.times.append(time.process_time() - self.start)
            if len(self.losses) == self.steps and os.getpid() == self.owner:
                self.leave("steps")
            return result

        torch.Tensor.backward = backward

    def write(self, end: str, error: str = "", where: str = "") -> None:
        """Write the record."""
        if os.getpid() != self.owner:  # a process that the program started
            return
        found = {
            "end": end,
            "error": error[:LONGEST],
            "where": where,
            "losses": self.losses,
            "times": self.times,
            "seconds": time.process_time() - self.start,
            "kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }
        self.record.write_text(json.dumps(found), encoding="utf-8")

    def leave(self, end: str) -> None:
        """End the process here, in the midst of the program."""
        self.write(end)
        sys.stdout.flush()
        os._exit(0)

    def ended(self, program: str) -> None:
        """Write how the program ended: by itself, by `exit`, or with an error."""
        kind, error, trace = sys.exc_info()
        if kind is None or (isinstance(error, SystemExit) and error.code in {None, 0}):
            self.write("finished")
            return
        frames = traceback.extract_tb(trace)
        inside = [frame for frame in frames if Path(frame.filename).name == Path(program).name] or frames
        line = f"{kind.__name__}: {error}"
        if "Traceback (" in line:  # from a process of a loader
            line = f"in a worker: {line.strip().splitlines()[-1]}"
        self.write("error", line, f"{inside[-1].lineno}: {inside[-1].line}")


def library(name: str) -> Any:
    """Return PyTorch, or glassgrad after it took the name torch."""
    if name == "glassgrad":
        importlib.import_module("glassgrad.compat").as_torch()
    return importlib.import_module("torch")


def steady(torch: Any) -> None:
    """Give every source of random numbers a seed; environments that start without one have 0."""
    importlib.import_module("numpy").random.seed(0)
    random.seed(0)
    torch.manual_seed(0)
    try:
        seeding = importlib.import_module("gymnasium.utils.seeding")
    except ModuleNotFoundError:
        return
    original = seeding.np_random
    seeding.np_random = lambda seed=None: original(0 if seed is None else seed)


def bars() -> None:
    """Replace progress bars for notebooks by those for terminals."""
    try:
        plain = importlib.import_module("tqdm")
    except ModuleNotFoundError:
        return
    for name in ("tqdm.notebook", "tqdm.autonotebook", "tqdm.auto"):
        module = sys.modules[name] = ModuleType(name)
        vars(module).update(tqdm=plain.tqdm, trange=plain.trange, tnrange=plain.trange, tqdm_notebook=plain.tqdm)
    vars(plain)["tqdm_notebook"] = plain.tqdm


def run(torch: Any, request: dict[str, Any]) -> None:
    """Run the program of a request in this process."""
    program, here = request["program"], str(Path(__file__).resolve().parent)
    sys.path = [str(Path(program).parent), *request["paths"], *(entry for entry in sys.path if entry != here)]
    watch = Watch(Path(request["record"]), request["steps"])
    watch.attach(torch)
    steady(torch)
    bars()
    if request["mode"] == "equal":
        sys.path.insert(0, here)
        importlib.import_module("equal").attach(torch)
        sys.path.remove(here)
    sys.argv = [program, *request["arguments"]]
    for alarm, timer, limit in LIMITS:
        signal.signal(alarm, lambda *_: watch.leave("seconds"))
        signal.setitimer(timer, limit * request["seconds"])
    watch.start = time.process_time()
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        for _alarm, timer, _limit in LIMITS:
            signal.setitimer(timer, 0)
        watch.ended(program)


def forked(torch: Any, connection: socket.socket, request: dict[str, Any]) -> None:
    """Make this new process the one of a program; end it with the program."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    connection.sendall(f"{os.getpid()}\n".encode())
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (WRITTEN, WRITTEN))
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for name, stream in (("out.txt", 1), ("err.txt", 2)):
        os.dup2(os.open(Path(request["record"]).with_name(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        run(torch, request)
    finally:
        if sys.exc_info()[0] not in {None, SystemExit}:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def serve(address: str, name: str, *before: str) -> None:
    """Run the programs of requests until the process is ended; import some modules for all of them."""
    os.nice(max(0, 10 - os.nice(0)))
    torch = library(name)
    for module in before:
        with suppress(ImportError):
            importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen(16)
        while True:
            connection, _ = server.accept()
            with connection, connection.makefile() as lines:
                request = json.loads(lines.readline())
                if os.fork() == 0:
                    server.close()
                    forked(torch, connection, request)


def ask(address: str, request: str) -> None:
    """Have a program run; wait for its end, and end it where it outlives its limits."""
    seconds = json.loads(request)["seconds"]
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile() as lines:
        connection.connect(address)
        connection.sendall(f"{request}\n".encode())
        group = int(lines.readline())
        connection.settimeout(LIMITS[1][2] * seconds + GRACE)
        with suppress(TimeoutError):
            connection.recv(1)
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def chain(*given: str) -> None:
    """Have programs run one after the other, given as addresses and requests, up to the first that stops."""
    for address, request in zip(given[::2], given[1::2], strict=True):
        ask(address, request)
        record = Path(json.loads(request)["record"])
        found = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
        if found.get("end", "error") == "error" or not found["losses"]:
            return


if __name__ == "__main__":
    {"serve": serve, "ask": ask, "chain": chain}[sys.argv[1]](*sys.argv[2:])
