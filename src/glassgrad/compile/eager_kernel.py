"""One primitive alone as native code: what eager mode asks for where NumPy is slow (`ops/kernels/native.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from glassgrad.compile import backends
from glassgrad.compile.ir.graph import GraphBuilder, Shape
from glassgrad.compile.native.runtime import available_cores


def kernel_for(
    op: str, types: Sequence[tuple[Shape, Any]], shape: Shape, params: Mapping[str, Any], threads: int | None
) -> Callable[..., Any] | None:
    """Return a function of arrays in row order that computes a primitive; None where it has no native code.

    `types` are the operands' shapes and dtypes, `shape` is the result's, whose dtype is theirs. It runs on `threads`
    threads, or fewer on a machine with fewer cores; by default on as many as pay.

    Raises:
        ImportError: without llvmlite.
    """
    builder = GraphBuilder(op)
    operands = [builder.input(*one) for one in types]
    output = builder.apply(op, operands, shape, np.result_type(*(dtype for _, dtype in types)), params)
    most = None if threads is None else min(threads, available_cores())
    program = backends.build(builder.build([output]), "llvm", most)
    step = program.step
    if not step.is_plain:
        return None

    def compute(*arrays: Any) -> Any:
        return step(*arrays)[0]

    return compute
