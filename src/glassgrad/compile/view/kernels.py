"""The kernels of a compiled step as data: which nodes share one, and what each costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glassgrad.base.drawing.graph import Kernel
from glassgrad.compile.front.origin import FORWARD, Origin
from glassgrad.compile.ir import passes
from glassgrad.compile.ir.graph import Graph, type_text
from glassgrad.compile.ir.totals import Row
from glassgrad.compile.plan.kernels import Plan
from glassgrad.compile.report import flops, rows_of
from glassgrad.ops.core import Array

_SECONDS = 1.0  # for measuring all kernels together
_MOST, _LEAST = 0.002, 0.00002  # for measuring one kernel once
_REPEAT = 3
# Above these sizes, planning a step or compiling it with separate kernels takes longer than the rest of its page.
MOST_PLANNED = 7_500  # instructions
MOST_TIMED = 1_000  # kernels
_TIMED = (
    "Timed one by one, on one thread and warm, the best of three; in a step several threads may share one. "
    "Ops that Python computes are left out."
)

At = Mapping[int, Sequence[int]]


def native_kernels(program: Graph, arrays: Sequence[Array], at: At) -> tuple[list[Kernel], str]:
    """Return the kernels of native code, timed separately if arrays are given, and a description of the costs."""
    from glassgrad.compile.profile import profile
    from glassgrad.compile.stages import planned

    length = len(program.instrs)
    if length > MOST_PLANNED:
        why = f"{length:,} instructions are more than the {MOST_PLANNED:,} that a page plans"
        return [], f"No kernels: {why}; explain() lists them."
    way = planned(program, 1)
    count = len(way.plan.kernels)
    if not arrays or count > MOST_TIMED:
        why = "" if not arrays else f", since {count:,} kernels are more than {MOST_TIMED:,}"
        rows = _rows(way.plan)
        return [_kernel(row, None, at) for row in rows], f"Not timed{why}: shares of the bytes read and written."
    budget = min(_MOST, max(_LEAST, _SECONDS / max(count, 1) / _REPEAT))
    timings = profile(program, arrays, repeat=_REPEAT, budget=budget, begun=way)
    return [_kernel(one.row, one.seconds, at) for one in timings], _TIMED


def _rows(plan: Plan) -> list[Row]:
    """Return the rows of kernels without compiled code, in the order of the plan."""
    from glassgrad.compile.llvm.module.cuts import nest_flops
    from glassgrad.compile.native.rows import kernel_bytes

    rows = []
    for kernel in plan.kernels:
        ops, nest = tuple(instr.op for instr in kernel.instrs), kernel.nest
        kind, work = ("loop", nest_flops(nest)) if nest is not None else (ops[0], sum(map(flops, kernel.instrs)))
        first = min(kernel.writes, key=lambda var: var.id)
        origins = tuple(instr.where for instr in kernel.instrs if instr.where is not None)
        rows.append(Row(0, kind, ops, type_text(first), work, kernel_bytes(kernel), "", origins))
    return rows


def numpy_kernels(program: Graph, arrays: Sequence[Array], at: At) -> tuple[list[Kernel], str]:
    """Return the instructions of a NumPy program that do work; they are not timed."""
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
