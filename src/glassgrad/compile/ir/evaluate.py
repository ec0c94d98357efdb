"""The reference interpreter of graphs, which runs one instruction at a time in NumPy; a check of compiled programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glassgrad.compile.ir.graph import Graph, Var
from glassgrad.ops.core import PRIMITIVES, Array


def evaluate(graph: Graph, inputs: Sequence[Array]) -> dict[Var, Array]:
    """Return every value of a graph for the given input arrays."""
    values: dict[Var, Array] = dict(zip(graph.inputs, inputs, strict=True))
    values.update(graph.constants)
    for instr in graph.instrs:
        args = tuple(values[operand] if isinstance(operand, Var) else operand for operand in instr.inputs)
        with np.errstate(all="ignore"):  # native code does not warn either
            result = PRIMITIVES[instr.op].compute(args, instr.params)
        results = result if len(instr.outputs) > 1 else (result,)
        values.update(zip(instr.outputs, map(np.asarray, results), strict=True))
    return values
