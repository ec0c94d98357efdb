"""The contents of a native step: one row per kernel."""

from __future__ import annotations

from glassgrad.compile.ir.graph import Var, type_text
from glassgrad.compile.ir.totals import Row
from glassgrad.compile.llvm.module.cuts import nest_flops, touched_bytes
from glassgrad.compile.llvm.module.step import Code, StepModule
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.schedule import Schedule, Task


def rows_of(schedule: Schedule, module: StepModule) -> list[Row]:
    """Return one row per kernel, in execution order."""
    rows = []
    for number, tasks in enumerate(schedule.phases):
        rows += [_row(number, task, module.code[task.kernel]) for task in tasks]
    return rows


def _row(phase: int, task: Task, code: Code) -> Row:
    kernel = task.kernel
    results = sorted(kernel.writes, key=lambda var: var.id)
    text = type_text(results[0]) + (f" and {len(results) - 1} more" if len(results) > 1 else "")
    if kernel.nest is not None:
        kind, flops = "loop", nest_flops(kernel.nest)
    else:
        assert code.solid is not None
        kind, flops = code.solid.label, code.solid.flops
    cut = f"share {task.share}" if task.cut is None else task.cut.axis
    origins = tuple(instr.where for instr in kernel.instrs if instr.where is not None)
    return Row(phase, kind, tuple(instr.op for instr in kernel.instrs), text, flops, kernel_bytes(kernel), cut, origins)


def kernel_bytes(kernel: Kernel) -> int:
    """Return the traffic of a kernel if it reads and writes each array once."""
    if kernel.nest is not None:
        return touched_bytes(kernel.nest)
    arrays: set[Var] = kernel.reads | kernel.writes
    return sum(var.nbytes for var in arrays)
