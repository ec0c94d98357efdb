"""Facts about the machine and the libraries, without which a measured number means nothing."""

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
    """Return the system's name of the processor."""
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
    """Return the maker's number for the design of the processor; 0 if the system does not report it."""
    info = Path("/proc/cpuinfo")
    found = (
        re.search(r"^cpu family\s*:\s*(\d+)", info.read_text(encoding="utf-8"), re.MULTILINE) if info.exists() else None
    )
    return int(found[1]) if found else 0


def held() -> bool:
    """Return whether the harness has limited everything that it runs to AVX2."""
    return os.environ.get("GLASSGRAD_BENCHMARKS_ISA") == "avx2"


def processor() -> str:
    """Return the name of the processor's kind, under which its results are kept.

    Processors of many years are all called Xeon or EPYC. Processors with AMX tiles are a separate kind, and the family
    number distinguishes AMD's designs: Zen 5 does twice the products of Zen 4 per cycle. The name of a processor
    without wider vectors than AVX2's, or limited to AVX2, ends with "AVX2".
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
    """Return the number of cores that this process may use, not that of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def instructions() -> str:
    """Return the widest vector instructions, and those for bfloat16: they limit the code that a compiler can make."""
    info = Path("/proc/cpuinfo")
    flags = set(info.read_text(encoding="utf-8").split()) if info.exists() else set()
    vectors = (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"))
    widest = [name for flag, name in vectors if flag in flags][:1]
    halves = (("avx512_bf16", "AVX512-BF16"), ("amx_bf16", "AMX"))
    return ", ".join([*widest, *(name for flag, name in halves if flag in flags)])


def versions() -> dict[str, str]:
    """Return the installed versions of glassgrad, its dependencies and the peers."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # not every peer is installed
            continue
    return found


def facts() -> dict[str, str]:
    """Return the text below every table."""
    known = instructions()
    libraries = ", ".join(f"{name} {version}" for name, version in versions().items())
    return {
        "CPU": f"{cpu_name()}, {cores()} cores{f', {known}' if known else ''}{', held to AVX2' if held() else ''}",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "libraries": libraries,
        "date": time.strftime("%Y-%m-%d"),
    }
