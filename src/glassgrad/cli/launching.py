"""Start the ranks of a program, pass on their output, and ensure that they end together.

MPI's launcher starts the processes: MPICH's `mpiexec`, which the extra `mpi` installs, another one, or Slurm's `srun`.
Each rank is `python -m glassgrad.cli.rank SCRIPT`, which initialises MPI before the script runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from glassgrad import errors
from glassgrad.distributed.segments import remove
from glassgrad.errors.packages import present

_GRACE = 8.0  # seconds for ranks to end by themselves after an interrupt, or after one of them has failed


@dataclass
class Plan:
    """The processes to start: the launcher with its options, and the command of each rank."""

    launcher: list[str]
    program: list[str]
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, roster: Path) -> list[str]:
        """Return the whole command; each rank writes its process and host to `roster`."""
        rank = [sys.executable, "-m", "glassgrad.cli.rank", "--roster", str(roster)]
        return [*self.launcher, *rank, *self.program]


def plan(
    script: str,
    arguments: Sequence[str],
    count: int | None,
    module: bool,
    prefix: bool,
    hostfile: Path | None,
    starter: str,
) -> Plan:
    """Check all options, and return the plan.

    Raises:
        InputError: no script, count, launcher, hostfile or mpi4py.
    """
    if count is not None and count < 1:
        raise errors.LAUNCH_COUNT(given=count)
    if not module:
        _check_script(script)
    if count is None:
        count = _tasks_of_slurm(script)
    if not present("mpi4py"):
        raise errors.LAUNCH_NO_MPI(missing="mpi4py")
    program = [*(["--prefix"] if prefix else []), *(["-m"] if module else []), script, *arguments]
    hosts = [] if hostfile is None else _hosts(hostfile)
    launcher = _launcher(starter, count, hosts)
    return Plan(launcher, program, _threads(count, len(hosts) or 1))


def _check_script(script: str) -> None:
    path = Path(script)
    if not path.exists():
        raise errors.LAUNCH_NO_SCRIPT(given=script, reason="there is no such file")
    if path.is_dir() and not (path / "__main__.py").exists():
        raise errors.LAUNCH_NO_SCRIPT(given=script, reason="it is a directory without a __main__.py")


def _tasks_of_slurm(script: str) -> int:
    tasks = os.environ.get("SLURM_NTASKS", "")
    if "SLURM_JOB_ID" not in os.environ or not tasks.isdigit():
        raise errors.LAUNCH_NO_COUNT(script=script)
    return int(tasks)


def _hosts(hostfile: Path) -> list[str]:
    try:
        text = hostfile.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise errors.LAUNCH_NO_HOSTFILE(given=hostfile, reason=getattr(error, "strerror", None) or error) from None
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    hosts = [line for line in lines if line]
    if not hosts:
        raise errors.LAUNCH_NO_HOSTFILE(given=hostfile, reason="it names no host")
    for number, line in enumerate(lines, 1):
        if line and not re.fullmatch(r"[^\s:]+(:[1-9][0-9]*)?", line):
            raise errors.LAUNCH_NO_HOSTFILE(given=hostfile, reason=f"line {number} is {line!r}")
    return hosts


def _launcher(starter: str, count: int, hosts: Sequence[str]) -> list[str]:
    """Return the launcher and its options: `mpiexec -n 4`, or `srun --ntasks 4 ...`."""
    if Path(starter).name == "srun":
        nodes = ["--nodelist", ",".join(host.partition(":")[0] for host in hosts)] if hosts else []
        # Without --kill-on-bad-exit, Slurm lets the other ranks wait for one that has ended.
        return [_found(starter), "--ntasks", str(count), "--kill-on-bad-exit=1", *nodes]
    # Hosts are given one by one, because launchers read different file formats.
    nodes = ["--host" if _is_openmpi(starter) else "-hosts", ",".join(hosts)] if hosts else []
    return [_found(starter) if starter else _own_mpiexec(), *nodes, "-n", str(count)]


def _is_openmpi(starter: str) -> bool:
    """Tell whether a launcher is Open MPI's; all others share MPICH's options."""
    if not starter:
        return False
    shown = subprocess.run([_found(starter), "--version"], capture_output=True, text=True, check=False, timeout=20)
    return "Open MPI" in shown.stdout or "OpenRTE" in shown.stdout


def _found(starter: str) -> str:
    found = shutil.which(starter)
    if found is None:
        raise errors.LAUNCH_NO_STARTER(given=starter, reason="no program of that name is in the PATH")
    return found


def _own_mpiexec() -> str:
    """Return the mpiexec of the extra, beside this Python; otherwise the system's."""
    beside = sysconfig.get_path("scripts")
    found = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if found is None:
        raise errors.LAUNCH_NO_MPI(missing="an mpiexec")
    return found


def _threads(count: int, hosts: int) -> dict[str, str]:
    """Return the variables that divide the cores of a machine among its ranks, unless the user has set one."""
    if "OMP_NUM_THREADS" in os.environ:
        return {}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"OMP_NUM_THREADS": str(max(1, cores // -(-count // hosts)))}


# --- running ----------------------------------------------------------------------------------------


def run(plan: Plan) -> int:
    """Run the ranks to their end and return the exit code: that of the rank that failed, 128 + n after signal n."""
    with tempfile.TemporaryDirectory(prefix="glassgrad-launch-") as folder:
        roster = Path(folder) / "roster"
        stdin = subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None
        process = subprocess.Popen(  # a separate session: only this process gets the terminal's Ctrl-C
            plan.command(roster),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **plan.environment},
        )
        banner = Banner()
        with _ending(process) as stopped:
            readers = [
                _passing(process.stdout, sys.stdout.fileno(), banner),
                _passing(process.stderr, sys.stderr.fileno(), banner),
            ]
            code = process.wait()
            for reader in readers:
                reader.join(timeout=2.0)
        ranks = _read_roster(roster)
        remove(file for _, _, host, files in ranks if host == socket.gethostname() for file in files)
        if stopped:
            return 128 + stopped[0]
        if banner.killed is not None:
            print(f"error: {_killed(banner, ranks)}", file=sys.stderr)
            return 128 + banner.killed
        return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Pass signals on to the ranks, and leave no process behind; yields the received signals."""
    came: list[int] = []

    def forward(number: int, _frame: object) -> None:
        came.append(number)
        if len(came) == 1:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            threading.Thread(target=_end_after, args=(process, _GRACE), daemon=True).start()
        else:
            end(process)

    numbers = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.signal(number, forward) for number in numbers}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        end(process)


def _end_after(process: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
        return
    end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a launcher and everything that it has started: MPICH gives every rank its own session."""
    if process.poll() is not None:
        return
    for pid in [*descendants(process.pid), process.pid]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, directly and indirectly."""
    children: dict[int, list[int]] = {}
    for one, parent in _parents():
        children.setdefault(parent, []).append(one)
    found = list(children.get(pid, ()))
    for one in found:  # grows while it is read
        found.extend(children.get(one, ()))
    return found


def _parents() -> Iterator[tuple[int, int]]:
    """Yield every process of this machine with its parent."""
    if Path("/proc/self/stat").exists():
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                # "pid (name) state parent ...": the name may hold brackets, so the last one counts.
                yield (
                    int(folder.name),
                    int((folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]),
                )
        return
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        one, parent = line.split()
        yield int(one), int(parent)


def _passing(stream: IO[bytes] | None, to: int, banner: Banner) -> threading.Thread:
    assert stream is not None

    def work() -> None:
        for line in _lines(stream):
            if not banner.takes(line):
                with contextlib.suppress(OSError):  # the reader has gone
                    _write_all(to, line)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield lines as they arrive; an incomplete line, such as a prompt, is yielded after a moment."""
    read = cast("BufferedReader", stream).read1  # a pipe of subprocess is a buffered reader
    rest = b""
    while chunk := read(1 << 16):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"
        if rest and not Banner.BORDER.startswith(rest[:8]):
            yield rest
            rest = b""
    if rest:
        yield rest


def _write_all(to: int, data: bytes) -> None:
    while data:
        data = data[os.write(to, data) :]


class Banner:
    """MPICH's lines about a killed process, which do not name a rank; they are read but not shown."""

    BORDER = b"=" * 20
    _PID = re.compile(rb"=\s+PID (\d+) RUNNING AT (\S+)")
    _END = re.compile(rb"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: .*\(signal (\d+)\)")
    _REST = (b"This typically refers to a problem with your application.", b"Please see the FAQ page for debugging")

    def __init__(self) -> None:
        self.inside = False
        self.process: tuple[int, str] | None = None
        self.killed: int | None = None

    def takes(self, line: bytes) -> bool:
        """Tell whether a line belongs to the banner; store its content if so."""
        text = line.strip()
        if text.startswith(self.BORDER):
            self.inside = not self.inside
            return True
        if ended := self._END.search(text):
            self.killed = int(ended.group(1))
            return True
        if self.inside:
            if named := self._PID.match(text):
                self.process = int(named.group(1)), named.group(2).decode(errors="replace")
            return True
        return self.process is not None and text.startswith(self._REST)


def _read_roster(roster: Path) -> list[tuple[str, int, str, list[str]]]:
    """Return rank, process, host and files of shared memory of each rank; empty before the ranks have written them."""
    if not roster.exists():
        return []
    lines = [line.split() for line in roster.read_text(encoding="utf-8").splitlines()]
    return [(rank, int(pid), host, files) for rank, pid, host, *files in lines]


def _killed(banner: Banner, ranks: Sequence[tuple[str, int, str, list[str]]]) -> Exception:
    """Return the message about a killed rank, with its number if the roster holds it."""
    assert banner.killed is not None
    pid, host = banner.process or (0, "another machine")
    number = banner.killed
    hint = ", as Linux does when memory runs out" if number == signal.SIGKILL else ""
    names: Mapping[int, str] = {int(one): one.name for one in signal.Signals}
    facts = {"pid": pid, "host": host, "signal": number, "name": names.get(number, "unknown"), "hint": hint}
    for rank, known, where, _files in ranks:
        if (known, where) == (pid, host):
            return errors.RANK_KILLED(rank=rank, **facts)
    return errors.RANK_KILLED_UNNAMED(**facts)
