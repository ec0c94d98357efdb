"""Facts about the machine and the libraries that a number without them would mean nothing."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
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


def processor() -> str:
    """The processor's name without what names of processors have in common: what results are kept apart by.

    Tiles are in the name: processors of many years are all called Xeon, and those with tiles are a kind of their own.
    """
    short = re.sub(r"\([^)]*\)|@.*|\b(CPU|Processor|\d+-Core)\b", "", cpu_name()).strip().replace("  ", " ")
    return f"{short} with AMX" if "AMX" in instructions() else short


def cores() -> int:
    """The cores this process may use, not those the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def instructions() -> str:
    """The widest vector instructions, and those for bfloat16: they decide what a compiler can do here."""
    info = Path("/proc/cpuinfo")
    flags = set(info.read_text(encoding="utf-8").split()) if info.exists() else set()
    vectors = (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"))
    widest = [name for flag, name in vectors if flag in flags][:1]
    halves = (("avx512_bf16", "AVX512-BF16"), ("amx_bf16", "AMX"))
    return ", ".join([*widest, *(name for flag, name in halves if flag in flags)])


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
    known = instructions()
    libraries = ", ".join(f"{name} {version}" for name, version in versions().items())
    return {
        "CPU": f"{cpu_name()}, {cores()} cores{f', {known}' if known else ''}",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "libraries": libraries,
        "date": time.strftime("%Y-%m-%d"),
    }
