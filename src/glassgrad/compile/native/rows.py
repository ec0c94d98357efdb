"""What a compiled step consists of, as plain data: one row a kernel, and totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from glassgrad.compile.ir.graph import Var, type_text
from glassgrad.compile.llvm.cuts import nest_flops, touched_bytes
from glassgrad.compile.llvm.step import Code, StepModule
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.schedule import Schedule, Task


@dataclass(frozen=True)
class Row:
    """One kernel of a step.

    Attributes:
        phase: between which barriers it runs.
        kind: loop, product, scatter, window or host.
        ops: the instructions in it.
        result: type of what it stores (the first, if several).
        flops, bytes: its arithmetic and its traffic, if every array is read and written once.
        cut: how threads share it: rows, tiles, columns, batch, or the one share that does all of it.
        origins: where its instructions come from.
        where: the same as the user's lines, each once.
    """

    phase: int
    kind: str
    ops: tuple[str, ...]
    result: str
    flops: int
    bytes: int
    cut: str
    origins: tuple[Any, ...] = ()

    @property
    def where(self) -> tuple[str, ...]:
        """The lines, looked up when somebody asks: for all kernels that takes a tenth of the time of compiling."""
        return tuple(dict.fromkeys(str(origin) for origin in self.origins))

    def __str__(self) -> str:
        ops = "+".join(self.ops) if len(self.ops) <= 6 else "+".join(self.ops[:5]) + f"+{len(self.ops) - 5} more"
        return f"{self.phase:>3} {self.kind:<8} {self.result:<22} {self.flops:>12} {self.bytes:>11} {self.cut:<9} {ops}"


@dataclass(frozen=True)
class Stats:
    """Totals of a step.

    Attributes:
        flops: floating-point operations of one call, a fused multiply-add counted as two.
        bytes: memory traffic of one call, if every kernel reads and writes each of its arrays once.
        kernels: loop nests, products and other units of work.
        phases: barriers, more or less.
        peak_bytes: memory for values between kernels.
        threads: into how many shares the work is cut.
        plan_seconds, compile_seconds: what making it took.
        cached: whether the machine code came from the disk.
        instructions: of the graph, after the passes.
    """

    flops: int
    bytes: int
    kernels: int
    phases: int
    peak_bytes: int
    threads: int
    plan_seconds: float
    compile_seconds: float
    cached: bool = False
    functions: int = 0
    reused_buffers: int = 0
    instructions: int = 0
    extra: Mapping[str, float] = field(default_factory=dict)


def rows_of(schedule: Schedule, module: StepModule) -> list[Row]:
    """Return one row a kernel, in the order in which they run."""
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
