"""Choose the emitter of a graph, and prepare the graph for it."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from glassgrad import errors, provenance
from glassgrad.compile.ir import passes
from glassgrad.compile.ir.graph import Graph

_NATIVE = "glassgrad.compile.stages"  # loaded by name, since it needs llvmlite
_warned = False


def chosen(backend: str) -> str:
    """Return the backend that a name stands for; warns once when native code cannot be made.

    Raises:
        ArgumentError: for any other name.
    """
    if backend not in {"auto", "llvm", "numpy"}:
        raise errors.COMPILE_BACKEND(given=backend, where=provenance.here(2))
    if backend == "numpy":
        return backend
    reason = _why_no_llvm()
    if reason is None:
        return "llvm"
    global _warned
    if not _warned or backend == "llvm":
        _warned = True
        warnings.warn(errors.NO_LLVM.text(reason=reason), errors.CompileWarning, stacklevel=provenance.stack_level())
    return "numpy"


def _why_no_llvm() -> str | None:
    try:
        importlib.import_module(_NATIVE)
    except (ImportError, OSError, RuntimeError) as error:
        return str(error)
    return None


def build(graph: Graph, backend: str, threads: int | None) -> Any:
    """Return the program that runs a graph, whose attribute `graph` is what the passes made of it.

    `stages.native` makes native code; the last line below makes a NumPy program.
    """
    if backend == "llvm":
        return importlib.import_module(_NATIVE).native(graph, threads)
    from glassgrad.compile.numpy.program import NumpyStep

    return NumpyStep(passes.simplified(passes.widen_products(graph)))
