"""The two records of a finished step: its layout, which is run and stored, and its totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from glassgrad.compile.ir.graph import Graph, Var
from glassgrad.compile.ir.totals import Row, Stats
from glassgrad.compile.llvm.module.blas import GEMM, blas
from glassgrad.compile.llvm.module.step import StepModule
from glassgrad.compile.native.executable import HostCall, Layout
from glassgrad.compile.native.host_calls import host_call
from glassgrad.compile.native.rows import rows_of
from glassgrad.compile.plan.indexing.bounds import Computed, IndexCheck
from glassgrad.compile.plan.indexing.indices import row_strides
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.memory import MemoryPlan
from glassgrad.compile.plan.recompute import extra_flops
from glassgrad.compile.plan.schedule import Schedule
from glassgrad.ops.core import PRIMITIVES


@dataclass(frozen=True, eq=False)
class Emitted:
    """The results of the stages before machine code.

    Attributes:
        graph: the graph in native form.
        checks, computed: the indices among its inputs, and those that it computes.
        alias: the new values that are written into the memory of an input.
        text: the text of the module.
    """

    graph: Graph
    checks: Sequence[IndexCheck]
    computed: Sequence[Computed]
    alias: Mapping[Var, Var]
    schedule: Schedule
    memory: MemoryPlan
    module: StepModule
    text: str

    def rows(self) -> list[Row]:
        """Return one row for every kernel, in execution order."""
        return rows_of(self.schedule, self.module)


def layout_of(emitted: Emitted, uses: Callable[[], tuple[list[IndexCheck], list[Computed]]]) -> Layout:
    """Return everything that a step consists of besides its code; `uses` as in `Layout`."""
    graph, module = emitted.graph, emitted.module
    guards = graph.outputs[len(graph.outputs) - len(emitted.computed) :]
    free = _movable(emitted.schedule, emitted.memory)
    return Layout(
        shares=emitted.schedule.shares,
        phases=max(module.phases, 1),
        slots=module.slots,
        pointers=[blas().pointers.get(kind, 0) for kind in GEMM],
        inputs=graph.inputs,
        outputs=[out for out in graph.outputs if isinstance(out, Var)],
        written={target for target, _ in graph.updates},
        buffers=emitted.memory.offsets,
        constants=graph.constants,
        checks=emitted.checks,
        segments=[
            (count, None if task is None else _host_call(task.kernel, emitted.alias, free))
            for count, task in emitted.schedule.segments()
        ],
        arena=emitted.memory.size,
        scratch=module.scratch,
        guards=[var for var in guards if isinstance(var, Var)],
        uses=uses,
    )


def _movable(schedule: Schedule, memory: MemoryPlan) -> frozenset[Var]:
    """Return the arrays that one kernel writes and that either only the host reads, once, or only native code reads."""
    makers: dict[Var, list[Kernel]] = {}
    readers: dict[Var, list[bool]] = {}
    for _, task in schedule.tasks():
        for var in task.kernel.writes:
            makers.setdefault(var, []).append(task.kernel)
        for var in task.kernel.reads:
            readers.setdefault(var, []).append(task.by_host)
    return frozenset(
        var
        for var in memory.offsets
        if len(makers[var]) == 1
        and var not in makers[var][0].reads
        and (readers.get(var) == [True] or True not in readers.get(var, []))
    )


def _host_call(kernel: Kernel, alias: Mapping[Var, Var], free: frozenset[Var]) -> HostCall:
    instr = kernel.instrs[0]
    operands = tuple(
        number if block is None else (alias.get(block.root, block.root), block.offset, block.shape, block.strides)
        for number, block in zip(instr.inputs, kernel.operands, strict=True)
    )
    results = tuple((alias.get(out, out), 0, out.shape, row_strides(out.shape)) for out in instr.outputs)
    primitive, params = PRIMITIVES[instr.op], dict(instr.params)
    return host_call(primitive, params, operands, results, free)


def stats_of(
    emitted: Emitted, instructions: int, plan_seconds: float, compile_seconds: float, *, cached: bool
) -> Stats:
    """Compute the totals."""
    rows, schedule, module = emitted.rows(), emitted.schedule, emitted.module
    return Stats(
        flops=sum(row.flops for row in rows),
        bytes=sum(row.bytes for row in rows),
        kernels=len(rows),
        phases=len(schedule.phases),
        peak_bytes=emitted.memory.size + module.scratch * schedule.shares,
        threads=schedule.shares,
        plan_seconds=plan_seconds,
        compile_seconds=compile_seconds,
        cached=cached,
        functions=module.functions,
        reused_buffers=emitted.memory.reused,
        instructions=instructions,
        extra_flops=extra_flops(emitted.graph),
    )
