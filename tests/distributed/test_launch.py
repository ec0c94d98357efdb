"""`glassgrad launch`: the processes that it starts, its messages, and that it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from glassgrad.cli import launching
from glassgrad.errors import InputError
from tests.distributed.conftest import ended_late

WHO = """
import os, sys
from mpi4py import MPI
print("rank", MPI.COMM_WORLD.rank, "of", MPI.COMM_WORLD.size, sys.argv[1:], os.environ["OMP_NUM_THREADS"])
"""
FAILS = """
import os, signal, sys, time
from mpi4py import MPI
how, rank = sys.argv[1], MPI.COMM_WORLD.rank
from glassgrad.distributed.segments import segments
print("here", *segments(), flush=True)
if rank == 1:
    if how == "raise":
        raise ValueError("a fault of rank 1")
    if how == "exit":
        sys.exit(3)
    if how == "early":
        os._exit(4)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
MPI.COMM_WORLD.Barrier()
time.sleep(60)
"""


@pytest.fixture
def launch(mpiexec: str, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `glassgrad launch` in an empty folder; it and its ranks are gone after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "glassgrad", "launch", *map(str, arguments)],
            cwd=tmp_path, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **env},
        )  # fmt: skip  # one call
        started.append(process)
        return process

    yield start
    for process in started:
        ended_late(process, 0.0)


def outcome(process: subprocess.Popen[str], limit: float = 20.0) -> tuple[int, list[str], str]:
    """Return exit code, lines in order, and what was said on standard error."""
    out, err = process.communicate(timeout=limit)
    return process.returncode, sorted(line for line in out.splitlines() if line), err


def test_runs_a_script_on_each_rank_with_its_arguments(launch, tmp_path: Path) -> None:
    (tmp_path / "who.py").write_text(WHO)
    code, out, err = outcome(launch("-n", 3, "--prefix", "who.py", "-n", "x", OMP_NUM_THREADS="1"))
    assert (code, err) == (0, "")
    assert out == [f"[{rank}] rank {rank} of 3 ['-n', 'x'] 1" for rank in range(3)]


def test_runs_a_module(launch, tmp_path: Path) -> None:
    (tmp_path / "who.py").write_text(WHO)
    code, out, _ = outcome(launch("-n", 2, "-m", "who", "--prefix"))
    assert (code, len(out)) == (0, 2)
    assert out[1].startswith("rank 1 of 2 ['--prefix']")


def test_hostfile(launch, tmp_path: Path) -> None:
    """Two names of this machine; a network of several is not to be had in a test."""
    (tmp_path / "who.py").write_text(WHO)
    (tmp_path / "hosts").write_text("127.0.0.1:1  # one rank each\nlocalhost:1\n")
    code, out, err = outcome(launch("-n", 2, "--hostfile", "hosts", "who.py"))
    assert (code, len(out)) == (0, 2), err


def test_srun(launch, mpiexec: str, tmp_path: Path) -> None:
    """A stand-in for Slurm's srun notes its options and starts the ranks by mpiexec; the count is the job's."""
    (tmp_path / "who.py").write_text(WHO)
    stand_in = tmp_path / "bin" / "srun"
    stand_in.parent.mkdir()
    stand_in.write_text(f'#!/bin/sh\necho "$1 $2 $3"\nshift 3\nexec {mpiexec} -n 2 "$@"\n')
    stand_in.chmod(0o755)
    path = f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}"
    code, out, err = outcome(launch("--with", "srun", "who.py", PATH=path, SLURM_JOB_ID="7", SLURM_NTASKS="2"))
    assert code == 0, err
    assert out[0] == "--ntasks 2 --kill-on-bad-exit=1"
    assert [line[:11] for line in out[1:]] == ["rank 0 of 2", "rank 1 of 2"]


def test_open_mpi(launch, mpiexec: str, tmp_path: Path) -> None:
    """A stand-in for Open MPI's mpiexec, by its answer to --version; it takes the hosts as `--host`."""
    (tmp_path / "who.py").write_text(WHO)
    (tmp_path / "hosts").write_text("127.0.0.1:1\nlocalhost:1\n")
    stand_in = tmp_path / "openmpi" / "mpiexec"
    stand_in.parent.mkdir()
    version = 'if [ "$1" = --version ]; then echo "mpiexec (OpenRTE) 4.1.6"; exit; fi'
    stand_in.write_text(f'#!/bin/sh\n{version}\necho "$1 $2 $3 $4"\nshift 4\nexec {mpiexec} -n 2 "$@"\n')
    stand_in.chmod(0o755)
    code, out, err = outcome(launch("--with", str(stand_in), "-n", 2, "--hostfile", "hosts", "who.py"))
    assert code == 0, err
    assert out[0] == "--host 127.0.0.1:1,localhost:1 -n 2"
    assert [line[:11] for line in out[1:]] == ["rank 0 of 2", "rank 1 of 2"]


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("raise", 1, "ValueError: a fault of rank 1"),
        ("exit", 3, "rank 1"),
        ("early", 4, ""),
        ("kill", 137, "error: rank 1 (process "),
    ],
)
def test_a_rank_that_fails_ends_all(launch, tmp_path: Path, how: str, code: int, said: str) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    start = time.monotonic()
    found, _out, err = outcome(launch("-n", 2, "fails.py", how))
    assert time.monotonic() - start < 10.0
    assert found == code, err
    assert said in err
    assert "BAD TERMINATION" not in err + "".join(_out)
    assert "runpy" not in err
    memory = {file for line in _out for file in line.split()[1:]}
    assert memory
    assert not any(Path(file).exists() for file in memory)


def test_a_rank_that_fails_before_mpi_is_imported_ends_all(launch, tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text(
        "import os, sys\nif os.environ['PMI_RANK'] == '1': sys.exit('no data')\nfrom mpi4py import MPI\n"
        "MPI.COMM_WORLD.Barrier()\n"
    )
    code, _out, err = outcome(launch("-n", 2, "early.py"), 10.0)
    assert code == 1
    assert "no data" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_ranks(launch, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    process = launch("-n", 2, "fails.py", "wait")
    assert process.stdout.readline().startswith("here")
    below = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    code, _, err = outcome(process, 12.0)
    assert code == 128 + number, err
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in below)


def plan_of(*, script: str = "who.py", count: int | None = 2, hostfile: Path | None = None, starter: str = ""):
    return launching.plan(script, [], count, False, False, hostfile, starter)


def test_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mpi4py", reason="without it there is one message for all of these")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    (tmp_path / "who.py").write_text(WHO)
    (tmp_path / "hosts").write_text("node1:0\n")
    (tmp_path / "empty").write_text("# nobody\n")
    for given, words in [
        ({"count": 0}, "at least 1, given 0"),
        ({"count": None}, "how many ranks"),
        ({"script": "nix.py"}, "no script nix.py"),
        ({"script": str(tmp_path)}, "a directory without"),
        ({"starter": "no-such-program"}, "no-such-program"),
        ({"hostfile": Path("nix")}, "No such file"),
        ({"hostfile": Path("hosts")}, "line 1 is 'node1:0'"),
        ({"hostfile": Path("empty")}, "names no host"),
    ]:
        with pytest.raises(InputError, match=words):
            plan_of(**given)
    monkeypatch.setattr(launching, "present", lambda _package: False)
    with pytest.raises(InputError, match=r"glassgrad\[mpi\]"):
        plan_of()


def test_cores_are_divided_among_the_ranks_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(16)), raising=False)
    shares = [launching._threads(*counts)["OMP_NUM_THREADS"] for counts in [(4, 1), (3, 1), (8, 4), (32, 1)]]
    assert shares == ["4", "5", "8", "1"]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert launching._threads(4, 1) == {}


def test_lines_of_mpich_about_a_killed_process_are_read_and_not_shown() -> None:
    banner = launching.Banner()
    said = b"""before
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 11547 RUNNING AT node7
=   EXIT CODE: 9
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
after
"""
    assert [line for line in said.splitlines() if not banner.takes(line)] == [b"before", b"after"]
    assert (banner.process, banner.killed) == ((11547, "node7"), 9)


def test_harness_kills_what_hangs(ranks, tmp_path: Path) -> None:
    """The limit of the tests' own harness ends all ranks, also one that spins inside of MPI."""
    with pytest.raises(pytest.fail.Exception, match="still running after"):
        ranks(FAILS, args=["wait"], limit=1.5)
    end = time.monotonic() + 3.0
    while left := [
        one for one in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(one.info["cmdline"] or ())
    ]:
        assert time.monotonic() < end, left
        time.sleep(0.1)
