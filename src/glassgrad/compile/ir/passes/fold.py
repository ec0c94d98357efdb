"""Constant folding: compute values that depend on no input at compile time."""

from __future__ import annotations

import numpy as np

from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.ir.passes.rewriter import Rewriter
from glassgrad.ops.core import PRIMITIVES, Elementwise

# A folded result this large is not worth the memory, unless its operands are as large.
_LIMIT = 1 << 16


def fold(graph: Graph) -> Graph:
    """Replace instructions on constants by their results."""
    rewriter = Rewriter(graph)
    for instr in graph.instrs:
        if all(var.size == 0 for var in instr.outputs):
            # An empty array is known.
            for var in instr.outputs:
                rewriter.instead(var, rewriter.constant(np.empty(var.shape, var.dtype)))
            continue
        if instr.reads() and all(var.size == 0 for var in instr.reads()):
            # A reduction over an empty axis is known too; folding it spares emitters loops without iterations.
            values: list[object] = [
                np.empty(one.shape, one.dtype) if isinstance(one, Var) else one for one in instr.inputs
            ]
            _replace(rewriter, instr, values)
            continue
        values = [
            rewriter.known.get(operand, operand) if isinstance(operand, Var) else operand
            for operand in map(rewriter.now, instr.inputs)
        ]
        if any(isinstance(value, Var) for value in values) or not _worthwhile(instr, values):
            rewriter.keep(_with_numbers(instr, rewriter))
            continue
        _replace(rewriter, instr, values)
    return rewriter.finish()


def _replace(rewriter: Rewriter, instr: Instr, values: list[object]) -> None:
    """Replace an instruction by its results on these values."""
    with np.errstate(all="ignore"):  # eager mode would warn when it runs, not now
        result = PRIMITIVES[instr.op].compute(tuple(values), instr.params)
    results = result if len(instr.outputs) > 1 else (result,)
    for var, part in zip(instr.outputs, results, strict=True):
        rewriter.instead(var, rewriter.constant(np.asarray(part, dtype=var.dtype)))


def _worthwhile(instr: Instr, values: list[object]) -> bool:
    read = sum(value.nbytes for value in values if isinstance(value, np.ndarray))
    made = sum(var.nbytes for var in instr.outputs)
    return made <= _LIMIT or made <= read


def _with_numbers(instr: Instr, rewriter: Rewriter) -> Instr:
    """Write 0-d constants as Python numbers where that changes neither the dtype nor the value."""
    if not isinstance(PRIMITIVES[instr.op], Elementwise):
        return instr
    inputs = list(map(rewriter.now, instr.inputs))
    for position, operand in enumerate(inputs):
        value = rewriter.known.get(operand) if isinstance(operand, Var) else None
        if value is None or value.ndim or value.dtype.kind not in "fiV":
            continue
        trial = [*inputs]
        trial[position] = value.item()
        if any(isinstance(other, Var) and other.dtype == value.dtype for other in trial if other is not operand):
            inputs = trial
    return Instr(instr.op, tuple(inputs), instr.outputs, instr.params, instr.where)
