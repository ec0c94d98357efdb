"""The order of the stages: `made` goes from a graph to machine code, one line per stage.

A NumPy program has three stages, which `backends.build` names.
"""

from __future__ import annotations

import functools
import sys
import time
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from glassgrad.compile.ir import passes
from glassgrad.compile.ir.graph import Graph
from glassgrad.compile.llvm.abilities import abilities
from glassgrad.compile.llvm.module.step import StepModule, memory_of
from glassgrad.compile.llvm.module.target import LoadedCode, host
from glassgrad.compile.llvm.objects.separate import joined, separate
from glassgrad.compile.native import cache, cache_entry, products
from glassgrad.compile.native.ahead import Ahead
from glassgrad.compile.native.assemble import Emitted, layout_of, stats_of
from glassgrad.compile.native.executable import Layout, NativeStep
from glassgrad.compile.native.runtime import available_cores
from glassgrad.compile.native.threads import choose_threads, expected_threads
from glassgrad.compile.plan.budget import within
from glassgrad.compile.plan.cheap import without_cheap
from glassgrad.compile.plan.indexing.bounds import Computed, IndexCheck
from glassgrad.compile.plan.indexing.checks import find_checks, with_guards
from glassgrad.compile.plan.kernels import Plan, make_plan
from glassgrad.compile.plan.memory import pinned_vars, plan_memory
from glassgrad.compile.plan.native_form import normalise
from glassgrad.compile.plan.order import dependencies, place_updates
from glassgrad.compile.plan.recompute import recomputed
from glassgrad.compile.plan.schedule import make_schedule
from glassgrad.compile.stored import Executable, Looked, look
from glassgrad.engine.memory import fresh
from glassgrad.engine.reports.announced import announced


def native(
    given: Graph,
    threads: int | None = None,
    *,
    as_it_is: bool = False,
    stored: bool = True,
    separate: bool = False,
    begun: Planned | None = None,
    memory: int | None = None,
) -> Executable:
    """Compile a graph to native code, or find it compiled on the disk.

    Args:
        given: the graph as it was traced.
        threads: the number of shares the work is cut into; by default the size of the step and the number of cores that
            this process may use decide.
        as_it_is: skip the passes.
        stored: look up the step on the disk, by the graph before the passes, and store it there.
        separate: give each kernel a phase of its own, so that it can be timed.
        begun: the result of `planned` for the same graph.
        memory: limit in bytes for the values between kernels; enough values are recomputed to stay below it.
    """
    with announced("compiling"):
        looked = look(given, threads, _here, as_it_is=as_it_is, memory=memory) if stored else None
        if looked is not None and looked.found is not None:
            return looked.found
        return made(given, threads, looked, as_it_is=as_it_is, separate=separate, begun=begun, memory=memory)


def made(
    given: Graph,
    threads: int | None,
    looked: Looked | None,
    *,
    as_it_is: bool = False,
    separate: bool = False,
    begun: Planned | None = None,
    memory: int | None = None,
    apart: bool = False,
) -> Executable:
    """Make native code, one stage after the other; arguments as for `native`.

    Args:
        given, threads, as_it_is, separate, begun, memory: as there.
        looked: where on the disk to store it, if anywhere.
        apart: whether other steps are likely to contain the same functions, so each is translated by itself.
    """
    began, state = (time.perf_counter(), fresh.taken()) if looked is None else (looked.began, looked.state)
    with Ahead() as early:
        early.touch(state)  # one core plans now and writes the code later; meanwhile another touches the memory
        way = begun or planned(given, threads, as_it_is=as_it_is, memory=memory)
        small, checks, computed, graph, plan = way.small, way.checks, way.computed, way.graph, way.plan
        # The order of the kernels; threads.
        alias = place_updates(plan, abilities())
        shares = choose_threads(plan, threads)
        # The code: functions of the kernels, a schedule of phases, memory, the module's text.
        module = StepModule(plan, shares, apart=apart and host().divides)
        tasks = module.tasks(alias)
        after = dependencies(plan, alias, tasks)
        schedule = make_schedule([tasks[kernel] for kernel in plan.kernels], after, shares, separate=separate)
        pinned = pinned_vars(graph)
        places = plan_memory(schedule, set(pinned), alias)
        space = early.place(places.size + shares * module.scratch)
        text = module.emit(schedule, pinned)
        emitted = Emitted(graph, checks, computed, alias, schedule, places, module, text)
        ready = time.perf_counter()
        # What runs: machine code with its memory.
        code, known, step = loaded(emitted, layout_of(emitted, lambda: find_checks(small)), space)
        stats = stats_of(emitted, len(small.instrs), ready - began, time.perf_counter() - ready, cached=known)
        if memory is not None and stats.peak_bytes > memory:
            stats = replace(stats, least_bytes=stats.peak_bytes)
        if looked is not None:
            cache_entry.write(looked.key, given, step.layout, stats, code)
    return Executable(lambda: small, step, stats, _here, emitted)


@dataclass(frozen=True)
class Planned:
    """A graph on its way to native code, with its kernels.

    Attributes:
        small: after the passes.
        checks, computed: the indices among its inputs, and the indices that it computes.
        graph: in native form.
    """

    small: Graph
    checks: list[IndexCheck]
    computed: list[Computed]
    graph: Graph
    plan: Plan


def planned(given: Graph, threads: int | None = None, *, as_it_is: bool = False, memory: int | None = None) -> Planned:
    """Return the first half of the way to native code; arguments as for `native`."""
    # The graph: large ops are decomposed, passes run, its form is checked; then the conditions on every index.
    small = prepared(given, as_it_is=as_it_is)
    checks, computed = find_checks(small)
    guarded = with_guards(passes.settle(small), computed)
    # The plan: ops in a few standard forms; views, fusion and kernels.
    target = abilities()
    guarded = passes.with_exact_means(passes.widen_products(guarded, target.takes_product))
    graph = normalise(guarded, target, expected_threads(guarded, threads), alone=1 in {threads, available_cores()})
    # Recomputation: of checkpoints, of cheap values, and to stay below a memory limit.
    graph = _keeping_to(memory, graph, threads)
    return Planned(small, checks, computed, graph, make_plan(graph, target))


def _keeping_to(memory: int | None, graph: Graph, threads: int | None) -> Graph:
    """Return the graph with enough values recomputed to need at most this many bytes, or as few as possible."""
    marked = recomputed(graph)
    usual = without_cheap(marked)
    if memory is None:
        return usual
    size_of = functools.partial(needs, threads=threads)
    size = size_of(usual)
    if size <= memory:
        return usual
    found = within(graph, memory, size_of)
    return found if usual is marked or size_of(found) < size else usual


def needs(graph: Graph, threads: int | None = None) -> int:
    """Return the memory that the step of a graph will need: its `peak_bytes`."""
    plan = make_plan(graph, abilities())
    shares = choose_threads(plan, threads)
    return memory_of(plan, shares, place_updates(plan, abilities()))


def loaded(emitted: Emitted, layout: Layout, space: Any) -> tuple[bytes, bool, NativeStep]:
    """Return the machine code of a step, whether it was on the disk, and what runs.

    Raises:
        RuntimeError: where LLVM refuses the module, or this process lacks a function that its code calls. The kernel at
            fault is a variable of this frame, where `refusal` finds the op and the line to name.
    """
    try:
        if emitted.module.module.apart:
            from glassgrad.compile.llvm.module import units  # only eager ops need it

            code = units.object_code(emitted.module.module, host())
            return code, False, NativeStep(code, layout, space)
        code, known = cache.code_for(emitted.text, host().compile)
        if emitted.module.kept:
            code = joined([*map(products.object_code, emitted.module.kept), *separate(code)])
        return code, known, NativeStep(code, layout, space)
    except RuntimeError as error:
        kernel = emitted.module.refused(_is_accepted)
        error.add_note(f"The kernel at fault: {'none by itself' if kernel is None else kernel.name}.")
        raise


def _is_accepted(text: str) -> bool:
    try:
        LoadedCode(host().compile(text))
    except RuntimeError:
        return False
    return True


def prepared(graph: Graph, *, as_it_is: bool = False) -> Graph:
    """Return a graph in the form that native code needs before planning."""
    return graph if as_it_is else passes.simplified(passes.decompose(graph))


def _here() -> ModuleType:
    return sys.modules[__name__]
