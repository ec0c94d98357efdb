"""Choose the emitter of a graph, and prepare the graph for it."""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.ir.graph import Graph
from glassgrad.engine.reports.announced import announced
from glassgrad.ops.core import bad_option

# Imported by name on demand: they need llvmlite, and the second is needed only if the first finds nothing.
_STORED, _STAGES = "glassgrad.compile.stored", "glassgrad.compile.stages"
_COMPILER = "glassgrad.compile.c.compiler"
_warned = False


def chosen(backend: str) -> str:
    """Return the backend for a name; without llvmlite it is C if there is a compiler, else NumPy, with one warning.

    Raises:
        ArgumentError: for any other name.
        CompileError: for C without a compiler.
    """
    if backend not in {"auto", "llvm", "c", "numpy"}:
        raise errors.COMPILE_BACKEND(given=backend, where=provenance.here(2))
    if backend == "numpy":
        return backend
    has_compiler = importlib.import_module(_COMPILER).compiler
    if backend == "c":
        if has_compiler() is None:
            raise errors.NO_C_COMPILER(backend=backend)
        return backend
    reason = _why_no_llvm()
    if reason is None:
        return "llvm"
    instead = "c" if backend == "auto" and has_compiler() is not None else "numpy"
    global _warned
    if not _warned or backend == "llvm":
        _warned = True
        told = errors.C_INSTEAD if instead == "c" else errors.NO_LLVM
        warnings.warn(told.text(reason=reason), errors.CompileWarning, stacklevel=provenance.stack_level())
    return instead


def _why_no_llvm() -> str | None:
    try:
        importlib.import_module(_STORED).host()  # fails if a library exists but cannot be loaded
    except (ImportError, OSError, RuntimeError) as error:
        return str(error)
    return None


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Z]*)")


def bytes_of(memory: str | int | None) -> int | None:
    """Return a size such as "256 MB" in bytes. Raises `ArgumentError` for anything else."""
    if memory is None:
        return None
    found = _SIZE.fullmatch(str(memory).strip().upper())
    if isinstance(memory, bool) or found is None or found[2] not in _UNITS:
        raise bad_option("compile", "memory", memory, 'a number of bytes, or a size such as "256 MB" or "1.5 GiB"')
    return int(float(found[1]) * _UNITS[found[2]])


def build(
    graph: Graph,
    backend: str,
    threads: int | None,
    memory: int | None = None,
    *,
    apart: bool = False,
) -> Any:
    """Return the program that runs a graph; its attribute `graph` is the graph after the passes.

    `stored.look` finds native code and `stages.made` compiles it; the last line below makes a NumPy program. For
    `apart` see `stages.made`.
    """
    if backend == "llvm":
        stored, stages = importlib.import_module(_STORED), functools.partial(importlib.import_module, _STAGES)
        with announced("compiling"):
            looked = stored.look(graph, threads, stages, memory=memory)
            return looked.found or stages().made(graph, threads, looked, memory=memory, apart=apart)
    if backend == "c":
        return importlib.import_module("glassgrad.compile.c.running").CStep(graph)
    from glassgrad.compile.ir import passes
    from glassgrad.compile.numpy.program import NumpyStep

    return NumpyStep(passes.simplified(passes.widen_products(graph)), memory)


def tell_of_memory(program: Any, name: str, limit: int | None) -> None:
    """Warn if a program exceeds its memory limit."""
    if limit is not None and program.peak_bytes > limit:
        told = errors.MEMORY_LIMIT.text(name=name, least=f"{program.peak_bytes:,}", given=f"{limit:,}")
        warnings.warn(told, errors.CompileWarning, stacklevel=provenance.stack_level())
