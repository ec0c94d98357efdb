"""Compute bfloat16 products in float32 and round the result, if the processor has no instruction for them.

No digit is lost: a product of two bfloat16 is exact in float32, and the sums are float32 either way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var
from glassgrad.compile.ir.passes.rewriter import Rewriter
from glassgrad.compile.ir.passes.rules import Rules, rule
from glassgrad.ops.narrow import NARROW


def _in_single(rewriter: Rewriter, instr: Instr, a: Operand, b: Operand) -> Var:
    single = np.dtype(np.float32)
    left, right = (rewriter.apply("astype", side, like=instr, dtype=single) for side in (a, b))
    product = rewriter.apply("matmul", left, right, like=instr)
    return rewriter.apply("astype", product, like=instr, dtype=instr.output.dtype)


WIDEN = Rules((rule("matmul", _in_single),))


def widen_products(graph: Graph, takes: Callable[[Instr], bool] = lambda _: False) -> Graph:
    """Rewrite the products of bfloat16, except for those that the target takes."""
    if not any(instr.op == "matmul" and instr.output.dtype.kind == NARROW for instr in graph.instrs):
        return graph
    rewriter = Rewriter(graph)
    return rewriter.rewrite(
        WIDEN, lambda instr: instr.output.dtype.kind == NARROW and not takes(instr), again=False
    ).finish()
