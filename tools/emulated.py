"""Run Python as on a 64-bit ARM processor, or an older Intel processor, under Debian's emulators (package qemu-user).

    python tools/emulated.py neoverse-v2 -m pytest -n 0 tests/compile/llvm/test_other_machines.py
    python tools/emulated.py nehalem -m pytest -n 0 tests/compile/llvm/test_other_machines.py

For ARM the first call makes `build/aarch64`: Debian's packages of Python for arm64, unpacked; the wheels of
`constraints.txt` that the tests need; and for each processor a file that replaces `/proc/cpuinfo`, from which LLVM
reads the features. The call needs `apt-get` and `dpkg-deb`, and does not change the system. An emulated Intel processor
runs the same Python as this file, on x86-64. Processes that tests start are also emulated. Everything takes about ten
times as long: name one test file at a time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "aarch64"
SYSTEM = FOLDER / "system"
SITE = FOLDER / "site"
TESTS = ("pytest", "pytest-xdist", "hypothesis", "psutil", "einops", "expecttest", "cloudpickle", "array-api-compat")
_PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")

_FIRST = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
_SECOND = f"{_FIRST} atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp ssbs"
_THIRD = (
    f"{_SECOND} sha3 sm3 sm4 sha512 sve asimdfhm dit uscat ilrcpc flagm jscvt fcma dcpodp svei8mm svebf16 i8mm bf16 rng"
)
# Name: the emulator's processor, its ARM part number, and Linux's names of its features.
PROCESSORS = {
    "cortex-a72": ("cortex-a72", "0xd08", _FIRST),
    "neoverse-n1": ("neoverse-n1", "0xd0c", _SECOND),
    "neoverse-v1": ("max", "0xd40", _THIRD),
    "neoverse-v2": ("max", "0xd4f", f"{_THIRD} sve2 sveaes svepmull svebitperm svesha3 flagm2 frint bti"),
}
# Intel: with only SSE4.2, and with AVX2. Features that this emulator lacks are left out, to avoid warnings.
INTEL = {"nehalem": "Nehalem", "haswell": "Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-rtm,-invpcid"}
INTEL_FOLDER = ROOT / "build" / "x86-64"


def cpuinfo(processor: str) -> str:
    """Return the content of Linux's `/proc/cpuinfo` for two cores of a processor."""
    _, part, features = PROCESSORS[processor]
    fields = {
        "BogoMIPS": "243.75", "Features": features, "CPU implementer": "0x41", "CPU architecture": "8",
        "CPU variant": "0x1", "CPU part": part, "CPU revision": "1",
    }  # fmt: skip  # a table
    lines = "".join(f"{name}\t: {value}\n" for name, value in fields.items())
    return "".join(f"processor\t: {core}\n{lines}\n" for core in range(2))


def launcher(processor: str) -> Path:
    """Return a program that is this processor's Python, also for the processes that tests start."""
    return (INTEL_FOLDER if processor in INTEL else FOLDER) / "bin" / processor / "python3"


def is_ready() -> bool:
    """Return whether this machine has an emulator of ARM processors and everything that it needs."""
    return shutil.which("qemu-aarch64") is not None and (FOLDER / "ready").exists()


def environment(processor: str = "") -> dict[str, str]:
    """Return the environment variables of a run.

    OpenBLAS's kernels for SVE compute NaN under this emulator, also in NumPy. On an AMD processor, OpenBLAS mistakes an
    emulated Nehalem for a Haswell.
    """
    intel = processor in INTEL
    path = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib") if intel else str(SITE)])
    own = {"PYTHONPATH": path, "PYTHONHOME": sys.base_prefix if intel else str(SYSTEM / "usr")}
    own["OPENBLAS_CORETYPE"] = processor.capitalize() if intel else "NEOVERSEN1"
    return {**os.environ, "OMP_NUM_THREADS": "1", **own}


def set_up(processor: str) -> None:
    """Make the files that a processor needs; the next call completes an interrupted one."""
    if processor in INTEL:
        _write_launcher(processor, f"{_program('qemu-x86_64')} -cpu {INTEL[processor]}", Path(sys.executable).resolve())
    elif not is_ready():
        _set_up_arm()


def _set_up_arm() -> None:
    _program("qemu-aarch64")
    _unpack_system()
    _install_wheels()
    for processor in PROCESSORS:
        _write_processor(processor)
    (FOLDER / "ready").touch()


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is not on this machine; Debian's package qemu-user has the emulator")
    return found


def _unpack_system() -> None:
    apt, get, extract = FOLDER / "apt", _program("apt-get"), _program("dpkg-deb")
    for folder in ("lists/partial", "archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()  # nothing is installed: all packages that Python depends on are fetched
    places = {
        "APT::Architecture": "arm64", "APT::Architectures": "arm64", "APT::Sandbox::User": "",
        "Dir::State": apt, "Dir::State::status": apt / "status", "Dir::State::lists": apt / "lists",
        "Dir::Cache": apt, "Debug::NoLocking": "true",
    }  # fmt: skip  # a table
    options = [f"-o{name}={place}" for name, place in places.items()]
    subprocess.run([get, *options, "-qq", "update"], check=True)
    install = ["install", "--yes", "--download-only", "--no-install-recommends", "python3", "libstdc++6"]
    subprocess.run([get, *options, "-qq", *install], check=True)
    for package in sorted((apt / "archives").glob("*.deb")):
        subprocess.run([extract, "--extract", package, SYSTEM], check=True)
    if not (SYSTEM / "lib").exists():  # Debian 13 has all of it in usr, and a link that another package holds
        (SYSTEM / "lib").symlink_to("usr/lib")


def _install_wheels() -> None:
    version = (SYSTEM / "usr" / "bin" / "python3").resolve().name.removeprefix("python")
    platforms = [f"--platform={name}" for name in _PLATFORMS]
    to = ["--target", SITE, "--upgrade", "--only-binary=:all:", *platforms, "--python-version", version]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = ["--constraint", ROOT / "constraints.txt", *project["dependencies"], *TESTS]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *map(str, (*to, *pinned))], check=True)


def _write_processor(processor: str) -> None:
    """Write a system of links to the unpacked one, with its own `/proc/cpuinfo`, and the program to start."""
    system = FOLDER / processor
    shutil.rmtree(system, ignore_errors=True)
    (system / "proc").mkdir(parents=True)
    (system / "proc" / "cpuinfo").write_text(cpuinfo(processor))
    for part in SYSTEM.iterdir():
        (system / part.name).symlink_to(part)
    emulator = f"qemu-aarch64 -cpu {PROCESSORS[processor][0]} -L {system}"
    _write_launcher(processor, emulator, SYSTEM / "usr" / "bin" / "python3")


def _write_launcher(processor: str, emulator: str, python: Path) -> None:
    """Write the program to start; Python uses its name to start itself again."""
    program = launcher(processor)
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {emulator} -0 {program} {python} "$@"\n')
    program.chmod(0o755)


def main(arguments: Sequence[str]) -> int:
    """Run Python on a processor; return its exit code."""
    if not arguments or arguments[0] not in {**PROCESSORS, **INTEL}:
        print(f"{__doc__}\nProcessors: {', '.join([*PROCESSORS, *INTEL])}")
        return 2
    processor, *rest = arguments
    set_up(processor)
    return subprocess.run([launcher(processor), *rest], env=environment(processor), check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
