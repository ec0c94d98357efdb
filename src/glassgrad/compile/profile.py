"""Time per kernel of a step: the step is compiled once more with separate kernels, on one thread."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from glassgrad.compile.ir.graph import Graph
from glassgrad.compile.ir.totals import Row
from glassgrad.compile.llvm.module import support
from glassgrad.compile.stages import Planned, native
from glassgrad.ops.core import Array

_Phase = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


@dataclass(frozen=True)
class Timing:
    """One kernel and its shortest time."""

    row: Row
    seconds: float

    @property
    def gflops(self) -> float:
        """Billions of floating-point operations a second."""
        return self.row.flops / max(self.seconds, 1e-12) / 1e9

    @property
    def gbytes(self) -> float:
        """Billions of bytes a second, if every array is read and written once."""
        return self.row.bytes / max(self.seconds, 1e-12) / 1e9

    def __str__(self) -> str:
        return f"{self.seconds * 1e6:>9.2f} us {self.gflops:>7.1f} GF/s {self.gbytes:>6.1f} GB/s  {self.row}"


def profile(
    graph: Graph, arrays: Sequence[Array], *, repeat: int = 5, budget: float = 0.002, begun: Planned | None = None
) -> list[Timing]:
    """Time every kernel on copies of the arrays; kernels that the host runs are left out.

    Each is called until `budget` seconds are used, `repeat` times; the best average counts. `begun` is the result of
    `planned` for the graph and one thread.
    """
    executable = native(graph, 1, as_it_is=True, stored=False, separate=True, begun=begun)
    step = executable.step
    copies = tuple([np.array(array, copy=True) for array in arrays])
    # The context keeps the addresses of the arrays of its last call, so they must stay alive here.
    results = step(*copies)
    context = step.context
    count = int(context.words[support.PHASES // 8])
    table = (ctypes.c_int64 * count).from_address(int(context.words[support.TABLE // 8]))
    rows = [row for row in executable.explain() if row.kind != "host"]
    timings = [
        Timing(row, _time(_Phase(int(address)), context.address, repeat, budget))
        for row, address in zip(rows, table, strict=True)
    ]
    del results
    return timings


def _time(function: Callable[..., object], context: int, repeat: int, budget: float) -> float:
    began = time.perf_counter()
    function(context, 0)
    once = time.perf_counter() - began
    turns = max(1, min(1000, int(budget / max(once, 1e-7))))
    best = float("inf")
    for _ in range(repeat):
        began = time.perf_counter()
        for _ in range(turns):
            function(context, 0)
        best = min(best, (time.perf_counter() - began) / turns)
    return best
