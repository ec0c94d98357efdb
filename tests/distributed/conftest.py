"""Run a program on several ranks, with a hard time limit; tests that need MPI are skipped without it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest


@dataclass(frozen=True)
class Ended:
    """What became of a program on several ranks: its exit code, what each rank wrote, what the launcher said."""

    code: int
    out: list[str]
    err: list[str]
    launcher: str
    seconds: float

    def __str__(self) -> str:
        texts = [f"exit code {self.code} after {self.seconds:.1f} s", self.launcher]
        for rank, (out, err) in enumerate(zip(self.out, self.err, strict=True)):
            texts += [f"--- rank {rank}", out, err]
        return "\n".join(text for text in texts if text.strip())


@pytest.fixture(scope="session")
def mpiexec() -> str:
    """MPICH's launcher beside this Python, whose options the tests use."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed (extra mpi)")
    found = shutil.which("mpiexec.hydra", path=sysconfig.get_path("scripts"))
    if found is None:
        pytest.skip("no mpiexec of MPICH beside this Python (extra mpi)")
    return found


@pytest.fixture
def ranks(mpiexec: str, tmp_path: Path) -> Callable[..., Ended]:
    """Run `script`, a text or a file, as `mpiexec -n N python script args`.

    It has to end with code 0 unless `code` says another one, or None for any. After `limit` seconds every process of it
    is killed, and the test fails with what the ranks had written until then.
    """

    def call(
        script: str | Path, n: int = 2, args: Sequence[object] = (), *, code: int | None = 0, limit: float = 60.0,
        env: dict[str, str] | None = None,
    ) -> Ended:  # fmt: skip  # one signature
        folder = tmp_path / f"ranks-{len(list(tmp_path.glob('ranks-*')))}"
        folder.mkdir()
        if isinstance(script, str):
            (folder / "program.py").write_text(textwrap.dedent(script), encoding="utf-8")
            script = folder / "program.py"
        files = ["-outfile-pattern", f"{folder}/out.%r", "-errfile-pattern", f"{folder}/err.%r"]
        command = [mpiexec, *files, "-n", str(n), sys.executable, str(script), *map(str, args)]
        start = time.monotonic()
        with (folder / "launcher").open("w") as said:
            process = subprocess.Popen(
                command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
                env={**os.environ, **(env or {})},
            )  # fmt: skip  # one call
            late = ended_late(process, limit)

        def text(name: str) -> str:
            return (folder / name).read_text(errors="replace") if (folder / name).exists() else ""

        ended = Ended(
            process.returncode, [text(f"out.{rank}") for rank in range(n)], [text(f"err.{rank}") for rank in range(n)],
            text("launcher"), time.monotonic() - start,
        )  # fmt: skip  # one call
        if late:
            pytest.fail(f"still running after {limit:g} s\n{ended}")
        assert code is None or ended.code == code, str(ended)
        return ended

    return call


def ended_late(process: subprocess.Popen[str], limit: float) -> bool:
    """Wait for a launcher; at the limit kill it with all it has started, which MPICH puts in sessions of their own."""
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        for one in [*psutil.Process(process.pid).children(recursive=True), process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait()
        return True
    return False
