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

# AMD's designs by family and by whether they have vectors of 64 bytes.
DESIGNS = {(25, False): "Zen 3", (25, True): "Zen 4", (26, True): "Zen 5"}


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


def cpu_family() -> int:
    """The number that its maker gives to processors of one design, 0 where the system doesn't tell."""
    info = Path("/proc/cpuinfo")
    found = (
        re.search(r"^cpu family\s*:\s*(\d+)", info.read_text(encoding="utf-8"), re.MULTILINE) if info.exists() else None
    )
    return int(found[1]) if found else 0


def held() -> bool:
    """Whether the harness has held everything that it runs to AVX2."""
    return os.environ.get("GLASSGRAD_BENCHMARKS_ISA") == "avx2"


def processor() -> str:
    """The processor's name without what names of processors have in common: what results are kept apart by.

    Processors of many years are all called Xeon or EPYC. Those with tiles are a kind of their own, and AMD's designs
    are told by their family's number: Zen 5 does twice the products of Zen 4 in a cycle. The names of those that have
    no wider vectors than AVX2's, and of those that are held to them, end with it.
    """
    if instructions().startswith("AVX2"):
        return f"{design()} with AVX2"
    return f"{design()} held to AVX2" if held() else design()


def design() -> str:
    """The name of the processor's kind."""
    short = re.sub(r"\([^)]*\)|@.*|\b(CPU|Processor|\d+-Core)\b", "", cpu_name()).strip().replace("  ", " ")
    known = instructions()
    if "AMX" in known:
        return f"{short} with AMX"
    known_design = DESIGNS.get((cpu_family(), "AVX-512" in known)) if short.startswith("AMD") else None
    return f"{short} {known_design}" if known_design else short


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
        "CPU": f"{cpu_name()}, {cores()} cores{f', {known}' if known else ''}{', held to AVX2' if held() else ''}",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "libraries": libraries,
        "date": time.strftime("%Y-%m-%d"),
    }
