"""The dependencies of machine code besides its text: the processor as LLVM sees it, and the compiler.

LLVM is queried once per machine. Its answers are cached on disk, under a name derived from its inputs: the processor's
identification and the LLVM library. So if machine code is found on disk, the library need not be loaded, which takes
longer than the rest of a first op.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from glassgrad import errors
from glassgrad._version import __version__
from glassgrad.base import provenance
from glassgrad.compile.kept import files
from glassgrad.compile.llvm.objects import processor


@dataclass(frozen=True)
class Machine:
    """LLVM's answers.

    Attributes:
        triple: the architecture and the system.
        cpu: the processor's name.
        features: the instruction sets that it has and lacks.
        layout: LLVM's data layout of types.
        llvmlite, llvm: the versions of the libraries.
    """

    triple: str
    cpu: str
    features: str
    layout: str
    llvmlite: str
    llvm: str


# The instruction sets of x86-64-v3, in LLVM's names: those of every processor with AVX2 since Intel's Haswell.
_V3 = """
64bit avx avx2 bmi bmi2 cmov crc32 cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf
sse sse2 sse3 sse4.1 sse4.2 ssse3 xsave
"""


@functools.cache
def machine() -> Machine:
    """Return the machine that this process compiles for: its own, or the subset that ``GLASSGRAD_ISA`` names.

    Raises:
        ImportError: without llvmlite.
        ArgumentError: if ``GLASSGRAD_ISA`` is unknown, or the processor lacks it.
    """
    name = _name()
    found = None if name is None else _kept(name)
    if found is None:
        found = asked()
        if name is not None:
            files.write(name, asdict(found), b"")
    return limited(found, os.environ.get("GLASSGRAD_ISA", ""))


def limited(found: Machine, isa: str) -> Machine:
    """Return a machine without the instructions beyond `isa`, which is "avx2", or empty for no limit.

    The vector width, AMX, bfloat16 and the keys of cached code follow from the name and the features of the processor.
    A machine whose widest vectors are those of AVX2 is returned unchanged.

    Raises:
        ArgumentError: for another `isa`, or one that the processor lacks.
    """
    if not isa:
        return found
    if isa != "avx2":
        raise errors.ISA_UNKNOWN(given=isa)
    features = found.features.split(",")
    if not {"+avx2", "+fma"} <= set(features):
        raise errors.ISA_MISSING(given=isa, cpu=found.cpu)
    if "+avx512f" not in features:
        return found
    known = set(_V3.split())
    kept = [f"{'+' if name[1:] in known else '-'}{name[1:]}" for name in features]
    return replace(found, cpu="haswell", features=",".join(kept))


def asked() -> Machine:
    """Query LLVM."""
    import llvmlite
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    triple = llvm.get_process_triple()
    layout = str(llvm.Target.from_triple(triple).create_target_machine(codemodel="jitdefault", jit=True).target_data)
    return Machine(
        triple,
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        layout,
        llvmlite.__version__,
        str(llvm.llvm_version_info),
    )


def _kept(name: str) -> Machine | None:
    entry = files.read(name)
    if entry is None:
        return None
    values = [entry[0].get(field.name) for field in fields(Machine)]
    return Machine(*map(str, values)) if all(isinstance(value, str) for value in values) else None


def _name() -> str | None:
    """Return the name of the cache entry; None if the inputs of LLVM or its library are unknown."""
    said, library = processor.answers(), _library()
    if said is None or library is None:
        return None
    return files.name_of("machine", __version__, *sources(), library, said)


def _library() -> str | None:
    """Return path, size, time and inode of LLVM's library and of the file with llvmlite's version."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return None
    room, about = Path(spec.origin).parent, []
    for file in (room / "_version.py", room / "binding" / "libllvmlite.so"):
        try:
            found = file.stat()
        except OSError:
            return None
        about.append(f"{file} {found.st_size} {found.st_mtime_ns} {found.st_ino}")
    return "\n".join(about)


@functools.cache
def versions() -> str:
    """Return the identification of the compiler: versions, and sizes and times of its source files and the ops'."""
    found = machine()
    return "\n".join([__version__, found.llvmlite, found.llvm, *sources()])


@functools.cache
def sources() -> list[str]:
    """Return name, size and time of every source file that affects compiled code."""
    here, found = str(Path(provenance.PACKAGE)), []
    # Avoid `Path.rglob`, which takes five times as long; the first large op of a process waits for this.
    for room in ("compile", "ops"):
        for place, _, names in os.walk(f"{here}{os.sep}{room}"):
            for path in [f"{place}{os.sep}{name}" for name in names if name.endswith(".py")]:
                with contextlib.suppress(OSError):  # removed while we looked
                    about = os.stat(path)  # noqa: PTH116 -- as above
                    found.append(f"{path[len(here) + 1 :]} {about.st_size} {about.st_mtime_ns}")
    return sorted(found)
