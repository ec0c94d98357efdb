"""Start a program of this folder on several ranks, under a time limit that ends all of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import uuid
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def mpiexec() -> str:
    """Return the launcher beside this Python, or of the system; skip where there is none."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None or find_spec("mpi4py") is None:
        pytest.skip("needs mpi4py and an MPI launcher: pip install 'glassgrad[mpi]'")
    return found


def ranks_of(program: str, count: int, *arguments: str, seconds: float = 60.0) -> str:
    """Run a program on so many ranks; return what all of them printed. Fails when it fails, or takes too long."""
    command = [mpiexec(), "-n", str(count), sys.executable, str(HERE / program), *arguments]
    mark = f"GLASSGRAD_TEST_RUN={uuid.uuid4().hex}"
    paths = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(HERE.parents[1]))))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths, **dict([mark.split("=")])}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            output = "it took too long"
        finally:
            _end(mark.encode())
    assert process.returncode == 0, output
    return output


def _end(mark: bytes) -> None:
    """Kill what is left of a start: helpers and ranks, each in a session of its own, which may wait in MPI for ever."""
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in entry.read_bytes().split(b"\0"):
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except OSError:
            continue  # it has ended, or belongs to somebody else
