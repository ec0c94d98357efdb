"""A compiled step as an entry of the cache: its layout as plain data, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from glassgrad.compile.emit.llvm.blas import GEMM, blas
from glassgrad.compile.executable import Layout
from glassgrad.compile.explain import Stats
from glassgrad.compile.graph import Graph, Var
from glassgrad.compile.indexing import Computed, IndexBounds, IndexCheck

# Constants that the compiler made itself and that are larger are not worth storing.
_MOST_BYTES = 1 << 20


def to_header(graph: Graph, layout: Layout, stats: Stats) -> dict[str, Any] | None:
    """Return what an entry says besides its code; None for a step that cannot be stored.

    `graph` is the one that the entry is found by: its inputs and constants need not be stored.
    """
    if any(host is not None for _, host in layout.segments):
        return None  # it calls Python functions
    variables = list(layout.slots)
    number = {var: place for place, var in enumerate(variables)}
    own = {var: place for place, (var, _) in enumerate(graph.constants)}
    constants: list[Any] = []
    for var, value in layout.constants:
        if var in own:
            constants.append([number[var], own[var]])
            continue
        array = np.ascontiguousarray(value, var.dtype)
        if array.nbytes > _MOST_BYTES:
            return None
        constants.append([number[var], array.tobytes().hex()])
    return {
        "vars": [[list(var.shape), var.dtype.str] for var in variables],
        "slots": [layout.slots[var] for var in variables],
        "inputs": [number[var] for var in layout.inputs],
        "outputs": [number[var] for var in layout.outputs],
        "written": [number[var] for var in layout.inputs if var in layout.written],
        "buffers": [[number[var], offset] for var, offset in layout.buffers.items()],
        "constants": constants,
        "segments": [count for count, _ in layout.segments],
        "guards": len(layout.guards),
        "checks": [[number[check.var], check.extent, check.low, check.spare] for check in layout.checks],
        "sizes": [layout.shares, layout.phases, layout.arena, layout.scratch],
        "stats": {one.name: getattr(stats, one.name) for one in fields(stats) if one.name != "extra"},
    }


def to_layout(
    graph: Graph, header: dict[str, Any], uses: Callable[[], tuple[list[IndexCheck], list[Computed]]]
) -> tuple[Layout, Stats]:
    """Return the layout that an entry describes, for a graph with the same structure; `uses` as in `Layout`."""
    variables = [Var(-1 - place, tuple(shape), np.dtype(dtype)) for place, (shape, dtype) in enumerate(header["vars"])]
    for place, var in zip(header["inputs"], graph.inputs, strict=True):
        variables[place] = var
    constants = []
    for place, source in header["constants"]:
        var = variables[place]
        if isinstance(source, int):
            constants.append((var, graph.constants[source][1]))
        else:
            constants.append((var, np.frombuffer(bytes.fromhex(source), var.dtype).reshape(var.shape)))
    shares, phases, arena, scratch = header["sizes"]
    outputs = [variables[place] for place in header["outputs"]]
    layout = Layout(
        shares=shares, phases=phases, slots=dict(zip(variables, header["slots"], strict=True)),
        pointers=[blas().pointers.get(kind, 0) for kind in GEMM], inputs=graph.inputs, outputs=outputs,
        written={variables[place] for place in header["written"]},
        buffers={variables[place]: offset for place, offset in header["buffers"]}, constants=constants,
        checks=[IndexBounds(variables[place], *bounds) for place, *bounds in header["checks"]],
        segments=[(turns, None) for turns in header["segments"]], arena=arena, scratch=scratch,
        guards=outputs[len(outputs) - header["guards"] :], uses=uses,
    )  # fmt: skip
    return layout, Stats(**header["stats"])
