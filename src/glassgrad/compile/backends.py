"""Which emitter runs a graph, and what it wants done to the graph first."""

from __future__ import annotations

import functools
import importlib
import warnings
from typing import Any

from glassgrad import errors, provenance
from glassgrad.compile.ir import passes
from glassgrad.compile.ir.graph import Graph
from glassgrad.compile.ir.well_formed import verify

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
        importlib.import_module("glassgrad.compile.native.lower")
    except (ImportError, OSError, RuntimeError) as error:
        return str(error)
    return None


def build(graph: Graph, backend: str, threads: int | None) -> Any:
    """Return the program that runs a graph, whose attribute `graph` is what the passes made of it."""
    if backend == "llvm":
        lower = importlib.import_module("glassgrad.compile.native.lower").lower
        return lower(graph, threads=threads, prepare=_for_native_code)
    from glassgrad.compile.numpy.program import NumpyStep

    return NumpyStep(_prepared(graph))


def _for_native_code(graph: Graph) -> Graph:
    return _prepared(passes.decompose(graph))


def _prepared(graph: Graph) -> Graph:
    """Run the passes; the form of the graph is checked after each, its types after the last."""
    return verify(passes.run(graph, check=functools.partial(verify, types=False)))
