"""From a graph to something that runs: the public entry of the native backend."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.ir.passes.clean import settle
from glassgrad.compile.llvm.blas import GEMM, blas
from glassgrad.compile.llvm.cuts import FLOPS_PER_NS, kernel_time
from glassgrad.compile.llvm.ir import kind_of
from glassgrad.compile.llvm.scalar import COSTS
from glassgrad.compile.llvm.solid import SOLIDS
from glassgrad.compile.llvm.step import StepModule, accepts_layout
from glassgrad.compile.llvm.table import LOOPS
from glassgrad.compile.llvm.target import host
from glassgrad.compile.native import cache
from glassgrad.compile.native.cache_entry import to_header, to_layout
from glassgrad.compile.native.executable import HostCall, Layout, NativeStep
from glassgrad.compile.native.rows import Row, Stats, rows_of
from glassgrad.compile.native.runtime import available_cores
from glassgrad.compile.plan.index_checks import Computed, IndexCheck, find_checks, with_guards
from glassgrad.compile.plan.kernels import Kernel, Lowerings, Plan, make_plan
from glassgrad.compile.plan.memory import MemoryPlan, plan_memory
from glassgrad.compile.plan.native_form import normalise
from glassgrad.compile.plan.order import dependencies, place_updates
from glassgrad.compile.plan.schedule import Schedule, make_schedule
from glassgrad.compile.plan.view_chains import is_view
from glassgrad.ops.core import PRIMITIVES


class Executable:
    """A graph compiled to native code; call it with one array for every input.

    Returns a tuple of new arrays, one for every output that is an array; inputs with updates are written in place.

    Attributes:
        inputs, outputs: types of arguments and results.
        stats: totals.
    """

    def __init__(self, prepared: Prepared, step: NativeStep, stats: Stats, lowering: Lowering | None = None) -> None:
        self.step = step
        self.stats = stats
        self.inputs = step.inputs
        self.outputs = step.outputs[: len(step.outputs) - len(step.layout.guards)]
        self._prepared = prepared
        self._lowering = lowering

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Run the program; safe from any number of threads."""
        return self.step(*arrays)

    @property
    def graph(self) -> Graph:
        """What was compiled; a step that came from the disk goes through the passes when somebody asks."""
        return self._prepared.graph

    def _plan(self) -> Lowering:
        # A step that came from the disk was never planned in this process.
        if self._lowering is None:
            self._lowering = Lowering(self._prepared, self.stats.threads)
        return self._lowering

    @property
    def llvm(self) -> str:
        """The module as text, before LLVM's own passes."""
        return self._plan().text

    @property
    def assembly(self) -> str:
        """The machine code as text; made anew each time it is asked for."""
        return host().assembly(self.llvm)

    def explain(self) -> list[Row]:
        """Return one row for every kernel, in the order in which they run."""
        plan = self._plan()
        return rows_of(plan.schedule, plan.module)


class Prepared:
    """A graph and what it becomes before it is compiled: by the passes, which run when somebody asks."""

    def __init__(self, given: Graph, prepare: Callable[[Graph], Graph] | None) -> None:
        self.given = given
        self._prepare = prepare

    @property
    def key(self) -> str:
        """What decides about the code: the graph as it was given, and whether passes change it."""
        return f"{'as it is' if self._prepare is None else 'prepared'} {self.given.key()}"

    @cached_property
    def graph(self) -> Graph:
        return self.given if self._prepare is None else self._prepare(self.given)

    def uses(self) -> tuple[list[IndexCheck], list[Computed]]:
        """Find the indices in the graph."""
        return find_checks(self.graph)


def lower(graph: Graph, *, threads: int | None = None, prepare: Callable[[Graph], Graph] | None = None) -> Executable:
    """Compile a graph to native code, or find it compiled on the disk.

    `threads` is into how many shares the work is cut; by default the size of the step and the number of cores that this
    process may use decide. `prepare` runs the passes, of which there is one kind only: a graph that was compiled before
    is found by what it was before them, and spares them.
    """
    started = time.perf_counter()
    prepared = Prepared(graph, prepare)
    threads_key = threads or f"auto {available_cores()}"
    key = cache.key_of("step", prepared.key, threads_key, blas().name, blas().always)
    stored = _stored(key, prepared, started)
    if stored is not None:
        return stored
    lowering = Lowering(prepared, threads)
    executable = lowering.finish()
    header_of_entry = to_header(graph, lowering.layout, executable.stats)
    if header_of_entry is not None:
        cache.write(key, header_of_entry, lowering.object_code)
    return executable


def _stored(key: str, prepared: Prepared, started: float) -> Executable | None:
    """Return a step from the disk; None when there is none, or its description does not make sense."""
    entry = cache.read(key)
    if entry is None:
        return None
    header, code = entry
    try:
        layout, stats = to_layout(prepared.given, header, prepared.uses)
        step = NativeStep(code, layout)
    except (ValueError, TypeError, LookupError, OverflowError, AttributeError, MemoryError):
        cache.forget(key)
        return None
    took = time.perf_counter() - started
    return Executable(prepared, step, replace(stats, plan_seconds=0.0, compile_seconds=took, cached=True))


def is_loop(instr: Instr) -> bool:
    """Tell whether an instruction runs as (part of) a loop nest."""
    return instr.op in LOOPS and _has_kinds(instr)


def _has_kinds(instr: Instr) -> bool:
    dtypes = [var.dtype for var in (*instr.reads(), *instr.outputs)]
    return all(native_kind(dtype) is not None for dtype in dtypes)


def native_kind(dtype: np.dtype[Any]) -> str | None:
    """Return the element kind of a dtype that native code handles here.

    A processor that cannot convert halves would call functions of a C library that may not be there.
    """
    kind = kind_of(dtype)
    return None if kind == "f16" and not host().has_halves else kind


class Lowering:
    """The stages from graph to executable, and what each leaves for the next."""

    def __init__(self, given: Prepared, threads: int | None, *, separate: bool = False) -> None:
        self.started = time.perf_counter()
        self.given = given
        self.checks, computed = given.uses()
        settled = with_guards(settle(given.graph), computed)
        prepared = normalise(
            settled, is_loop, lambda instr: not _is_host(instr), expected_threads(settled, threads), _has_kinds
        )
        guards = prepared.outputs[len(prepared.outputs) - len(computed) :]
        self.guards = [var for var in guards if isinstance(var, Var)]
        self.prepared = prepared
        loops = {op: LOOPS[op] for op in LOOPS}
        self.plan = make_plan(prepared, Lowerings(loops, native_kind, accepts_layout, COSTS, _is_host))
        self.alias = place_updates(self.plan, kind_of)
        self.shares = choose_threads(self.plan, threads)
        self.module = StepModule(self.plan, self.shares)
        tasks = self.module.tasks(self.alias)
        after = dependencies(self.plan, self.alias, tasks)
        ordered = [tasks[kernel] for kernel in self.plan.kernels]
        self.schedule = make_schedule(ordered, after, self.shares, separate=separate)
        self.outputs = [out for out in prepared.outputs if isinstance(out, Var)]
        pinned = [*prepared.inputs, *(var for var, _ in prepared.constants), *self.outputs]
        self.memory = plan_memory(self.schedule, set(pinned), self.alias)
        self.text = self.module.emit(self.schedule, pinned)
        self.planned = time.perf_counter()

    def finish(self) -> Executable:
        """Compile and put everything together."""
        self.object_code, cached = cache.code_for(self.text, host().compile)
        self.layout = Layout(
            shares=self.shares,
            phases=max(self.module.phases, 1),
            slots=self.module.slots,
            pointers=[blas().pointers.get(kind, 0) for kind in GEMM],
            inputs=self.prepared.inputs,
            outputs=self.outputs,
            written={target for target, _ in self.prepared.updates},
            buffers=self.memory.offsets,
            constants=self.prepared.constants,
            checks=self.checks,
            segments=[
                (count, None if task is None else self._host_call(task.kernel))
                for count, task in self.schedule.segments()
            ],
            arena=self.memory.size,
            scratch=self.module.scratch,
            guards=self.guards,
            uses=self.given.uses,
        )
        step = NativeStep(self.object_code, self.layout)
        rows = rows_of(self.schedule, self.module)
        stats = make_stats(rows, self.schedule, self.memory, self.module, (self.started, self.planned))
        stats = replace(stats, cached=cached, instructions=len(self.given.graph.instrs))
        return Executable(self.given, step, stats, self)

    def _host_call(self, kernel: Kernel) -> HostCall:
        instr = kernel.instrs[0]
        place = self.alias
        operands = tuple(
            number if block is None else (place.get(block.root, block.root), block.offset, block.shape, block.strides)
            for number, block in zip(instr.inputs, kernel.operands, strict=True)
        )
        results = tuple((place.get(out, out), 0, out.shape, _strides(out.shape)) for out in instr.outputs)
        return HostCall(_host_function(instr), operands, results)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    from glassgrad.compile.plan.indices import row_strides

    return row_strides(shape)


def _host_function(instr: Instr) -> Callable[..., Any]:
    primitive, params = PRIMITIVES[instr.op], dict(instr.params)
    return lambda *arrays: primitive.compute(arrays, params)


def _is_host(instr: Instr) -> bool:
    """Tell whether an instruction has no native code."""
    if is_view(instr) and _has_kinds(instr):
        return False
    if instr.op in LOOPS:
        return not _has_kinds(instr)
    solid = SOLIDS.get(instr.op)
    return solid is None or not _has_kinds(instr) or not solid.takes(instr)


# Estimated nanoseconds of work for each thread that takes part. Barriers cost a quarter of a microsecond; what costs
# more is that each core reads what the other has just written. Measured on a small network: two threads break even at
# an estimate of about 100 microseconds (40 of real time), and the names MLP takes 27 on one thread and 37 on two.
_PER_THREAD = 60000.0


def expected_threads(graph: Graph, threads: int | None) -> int:
    """Return into how many shares a step will surely be cut, before it is planned: its products alone are work for all.

    1 where that is not sure.
    """
    if threads is not None:
        return max(1, threads)
    work = sum(
        2.0 * instr.output.size * instr.inputs[0].shape[-1]
        for instr in graph.instrs
        if instr.op == "matmul" and isinstance(instr.inputs[0], Var) and instr.inputs[0].ndim
    )
    cores = available_cores()
    return cores if work / FLOPS_PER_NS >= 2 * cores * _PER_THREAD else 1


def choose_threads(plan: Plan, threads: int | None) -> int:
    """Return into how many shares to cut: no more than cores, and none with too little to do."""
    if threads is not None:
        return max(1, threads)
    work = sum(kernel_time(kernel) for kernel in plan.kernels)
    return max(1, min(available_cores(), int(work / _PER_THREAD)))


def make_stats(
    rows: list[Row], schedule: Schedule, memory: MemoryPlan, module: StepModule, times: tuple[float, float]
) -> Stats:
    """Add everything up."""
    started, planned = times
    return Stats(
        flops=sum(row.flops for row in rows),
        bytes=sum(row.bytes for row in rows),
        kernels=len(rows),
        phases=len(schedule.phases),
        peak_bytes=memory.size + module.scratch * schedule.shares,
        threads=schedule.shares,
        plan_seconds=planned - started,
        compile_seconds=time.perf_counter() - planned,
        functions=module.functions,
        reused_buffers=memory.reused,
    )
