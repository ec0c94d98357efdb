"""Remove shared memory of MPICH that remains when ranks end without finalising MPI: 2 MB per run."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def segments() -> set[str]:
    """Return the files of MPICH's shared memory that this process uses; empty if the system does not list them."""
    with suppress(OSError):
        shared = "/mpich_shm_"  # in /dev/shm
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        return {line[line.index("/") :] for line in mapped if shared in line and "(deleted)" not in line}
    return set()


def remove(files: Iterable[str]) -> None:
    """Remove files of shared memory that still exist; processes that use one keep it until they end."""
    for file in files:
        with suppress(OSError):
            Path(file).unlink()
