"""The kernels of a compiled step as data: which nodes share one, and what each costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from glassgrad.compile.front.origin import FORWARD, Origin
from glassgrad.compile.ir import passes
from glassgrad.compile.ir.graph import Graph
from glassgrad.compile.ir.totals import Row
from glassgrad.compile.report import rows_of
from glassgrad.drawing.graph import Kernel

_SECONDS = 1.0  # for measuring all kernels
_MOST, _LEAST = 0.002, 0.00002  # for measuring one, once
_REPEAT = 3
_TIMED = (
    "Timed one by one, on one thread and warm, the best of three; in a step several threads may share one. "
    "Ops that Python computes are left out."
)

At = Mapping[int, Sequence[int]]


def native_kernels(program: Graph, arrays: Sequence[Any], at: At) -> tuple[list[Kernel], str]:
    """Return the kernels of native code, each timed by itself if there are arrays to run on, and what the costs are."""
    from glassgrad.compile.profile import profile
    from glassgrad.compile.stages import native, prepared

    small = prepared(program)
    if not arrays:
        rows = native(small, 1, as_it_is=True, stored=False).explain()
        return [_kernel(row, None, at) for row in rows], "Not timed: shares of the bytes that each reads and writes."
    budget = min(_MOST, max(_LEAST, _SECONDS / max(len(small.instrs), 1) / _REPEAT))
    timings = profile(small, arrays, repeat=_REPEAT, budget=budget)
    return [_kernel(one.row, one.seconds, at) for one in timings], _TIMED


def numpy_kernels(program: Graph, arrays: Sequence[Any], at: At) -> tuple[list[Kernel], str]:
    """Return the instructions of a NumPy program that do some work; they are not timed."""
    del arrays
    rows = rows_of(passes.simplified(program))
    return [_kernel(row, None, at) for row in rows], "A NumPy program, not timed: shares of the bytes read and written."


def _kernel(row: Row, seconds: float | None, at: At) -> Kernel:
    made: set[int] = set()
    worked: set[int] = set()
    for origin in row.origins:
        forward = not isinstance(origin, Origin) or origin.role == FORWARD
        (made if forward else worked).update(at.get(id(origin), ()))
    return Kernel(row.kind, list(row.ops), row.result, row.flops, row.bytes, sorted(made), sorted(worked), seconds)
