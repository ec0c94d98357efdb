"""An extra output of a training step: whether all values that it writes into weights are finite.

Each new weight times 0 is 0, or NaN if the weight is NaN or infinite. The loops that write the weights also sum these
products, so no weight is read twice.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from glassgrad.compile.ir.graph import GraphBuilder, Var


def zero_if_finite(builder: GraphBuilder, values: Iterable[Var]) -> Var | None:
    """Append the sum of 0 times each value: 0, or NaN if one is not finite. Return None if there are no values."""
    total = None
    for value in values:
        if value.dtype.kind not in "fcV" or not value.size:
            continue
        term = builder.apply("multiply", (value, 0.0), value.shape, value.dtype)
        term = summed(builder, term)
        if term.dtype.kind == "c":
            term = builder.apply("abs", (term,), (), np.empty(0, term.dtype).real.dtype)
        if term.dtype != np.float32:
            term = builder.apply("astype", (term,), (), np.float32, {"dtype": np.dtype(np.float32)})
        total = term if total is None else builder.apply("add", (total, term), (), np.float32)
    return total


def summed(builder: GraphBuilder, value: Var) -> Var:
    """Append the sum of a value: first of each row, which threads can share, then of the row sums."""
    if len(value.shape) > 1:
        value = _sum(builder, value, range(1, len(value.shape)))
    return _sum(builder, value, (0,)) if value.shape else value


def _sum(builder: GraphBuilder, value: Var, axes: Iterable[int]) -> Var:
    axis = tuple(axes)
    kept = tuple(extent for at, extent in enumerate(value.shape) if at not in axis)
    return builder.apply("sum", (value,), kept, value.dtype, {"axis": axis, "keepdims": False})
