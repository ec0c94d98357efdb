"""Correct the means of normalisations by the mean of the centred values: the corrected two-pass algorithm.

A sum of n numbers has a rounding error of a few units in the last place, and so has the mean m. If the values are
closer together than that, as in a constant row, x - m is only that error, and a norm multiplies it by 1 / sqrt(eps).
The mean of x - m is the error itself: with d = mean(x - m), the exact mean is m + d, and the sum of squared deviations
from it is sum((x - m)**2) - n d**2 (Chan, Golub and LeVeque 1983). Both sums are computed in one pass over x, so the
extra cost is arithmetic in registers.

Gradients need no correction because the derivative of d is 0. So the pass runs after differentiation, and printed
programs show the plain formula. Eager norms do the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var
from glassgrad.compile.ir.passes.rewriter import Rewriter
from glassgrad.ops.narrow import finfo


class _Deviation(NamedTuple):
    """Values whose squares are summed: ``centred = x - mean``, and the weight 1 / n of each in the mean."""

    centred: Var
    x: Operand
    mean: Var
    share: float


def with_exact_means(graph: Graph) -> Graph:
    """Return the graph with a correction of every mean whose deviations are squared and summed."""
    producers = graph.producers()
    rewriter, done = Rewriter(graph), set[Var]()
    for instr in graph.instrs:
        rewriter.keep(instr)
        found = _deviation(instr, producers)
        if found is not None and found.centred not in done:
            done.add(found.centred)
            _correct(rewriter, instr, found)
    return rewriter.finish() if done else graph


def _correct(rewriter: Rewriter, instr: Instr, found: _Deviation) -> None:
    """Replace mean, deviations and total by the corrected ones in later instructions."""
    centred, mean = (rewriter.now(one) for one in (found.centred, found.mean))
    total, axis = instr.output, instr.params["axis"]
    rest = rewriter.apply("sum", centred, like=instr, axis=axis, keepdims=True)
    moved = rewriter.apply("multiply", rest, found.share, like=instr)
    better = rewriter.apply("add", mean, moved, like=instr)
    rewriter.instead(found.mean, better)
    rewriter.instead(found.centred, rewriter.apply("subtract", rewriter.now(found.x), better, like=instr))
    excess: Var = rewriter.apply("multiply", rest, moved, like=instr)
    if excess.shape != total.shape:
        excess = rewriter.apply("reshape", excess, like=instr, shape=total.shape)
    # An overflowed total stays infinite, NaN stays NaN, and no total is below 0.
    excess = rewriter.apply("minimum", excess, float(finfo(total.dtype).max), like=instr)
    left = rewriter.apply("subtract", total, excess, like=instr)
    rewriter.instead(total, rewriter.apply("maximum", left, 0, like=instr))


def _deviation(instr: Instr, producers: dict[Var, Instr]) -> _Deviation | None:
    """Match ``sum(square(x - mean(x)))``; return its parts."""
    if instr.op != "sum" or instr.output.dtype.kind not in "fV":
        return None
    square = _behind(instr.inputs[0], producers, "square", "multiply")
    minus = None if square is None else _behind(square.inputs[0], producers, "subtract")
    if square is None or minus is None or square.inputs[-1] is not square.inputs[0]:
        return None
    x, mean = minus.inputs
    share = _share(mean, x, instr.params["axis"], producers)
    if share is None or minus.output.shape != getattr(x, "shape", None) or minus.output.dtype != instr.output.dtype:
        return None
    assert isinstance(mean, Var)
    return _Deviation(minus.output, x, mean, share)


def _share(mean: Operand, x: Operand, axis: tuple[int, ...], producers: dict[Var, Instr]) -> float | None:
    """Return 1 / n if an operand is the mean of x over n numbers along those axes."""
    scaled = _behind(mean, producers, "multiply", "divide")
    number = None if scaled is None else scaled.inputs[1]
    if scaled is None or not isinstance(number, int | float) or not number:
        return None
    whole = _behind(scaled.inputs[0], producers, "sum")
    if whole is None or whole.inputs[0] is not x or whole.params["axis"] != axis or not whole.params["keepdims"]:
        return None
    assert isinstance(x, Var)
    count = math.prod(x.shape[one] for one in axis)
    factor = number if scaled.op == "multiply" else 1 / number
    return 1 / count if count and math.isclose(factor * count, 1, rel_tol=1e-9) else None


def _behind(operand: Operand, producers: dict[Var, Instr], *ops: str) -> Instr | None:
    instr = producers.get(operand) if isinstance(operand, Var) else None
    return instr if instr is not None and instr.op in ops else None
