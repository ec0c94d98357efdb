"""The data of a step's page: a call or a trace as one graph."""

from __future__ import annotations

from glassgrad import errors
from glassgrad.base.drawing.graph import Graph
from glassgrad.compile.front.calls.captured import Capture
from glassgrad.compile.front.calls.parameters import Args, Function, Kwargs
from glassgrad.compile.source.listing import listing_of
from glassgrad.compile.view.graph import Maker
from glassgrad.compile.view.groups import gather
from glassgrad.compile.view.kernels import native_kernels, numpy_kernels
from glassgrad.compile.view.seen import Seen, from_trace, see

_NO_VALUES = "No values: the arguments of earlier calls are gone. Pass some, as in step.show(x, y)."


def step_graph(function: Function, args: Args, kwargs: Kwargs, *, backend: str = "llvm") -> Graph:
    """Return one call of a function as a graph with values, the program, and the compiled kernels.

    All side effects of the call are undone afterwards.

    Raises:
        CompileError: when the function cannot be traced as it is written.
    """
    return _graph(see(function, args, kwargs), backend)


def trace_graph(captured: Capture, backend: str) -> Graph:
    """Return a trace as the same graph without values."""
    graph = _graph(from_trace(captured), backend)
    graph.notes.insert(0, _NO_VALUES)
    return graph


def _graph(seen: Seen, backend: str) -> Graph:
    notes = []
    try:
        listing = listing_of(seen.captured, seen.gradients)
    except errors.CompileError as error:  # an op without NumPy text
        listing = None
        notes.append(f"No program: {error}")
    maker = Maker(seen, listing)
    graph = maker.made()
    graph.notes += notes
    kernels = native_kernels if backend == "llvm" else numpy_kernels
    try:
        graph.kernels, graph.measured = kernels(seen.captured.graph, seen.arrays, maker.at)
    except (RuntimeError, errors.CompileError) as error:
        graph.measured = f"No kernels: {error}"
    gather(graph)
    return graph
