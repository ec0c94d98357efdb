"""Facts about the machine and the libraries that a number without them would mean nothing."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

LIBRARIES = ("glassgrad", "numpy", "scipy", "llvmlite", "torch", "jax", "autograd", "micrograd", "mkl")


def cpu_name() -> str:
    """The processor's name as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or platform.machine()
    return platform.processor() or platform.machine()


def cores() -> int:
    """The cores this process may use, not those the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def widest_vectors() -> str:
    """The widest vector instructions, which decide what a compiler can do here."""
    info = Path("/proc/cpuinfo")
    flags = set(info.read_text(encoding="utf-8").split()) if info.exists() else set()
    return next(
        (name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX")) if flag in flags), ""
    )


def versions() -> dict[str, str]:
    """Installed versions of ourselves, what we stand on and the peers."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # not every peer is installed
            continue
    return found


def facts() -> dict[str, str]:
    """What is written below every table."""
    vectors = widest_vectors()
    libraries = ", ".join(f"{name} {version}" for name, version in versions().items())
    return {
        "CPU": f"{cpu_name()}, {cores()} cores{f', {vectors}' if vectors else ''}",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "libraries": libraries,
    }
