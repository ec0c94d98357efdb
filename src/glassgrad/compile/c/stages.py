"""The way from a graph to kernels in order with their memory: the stages of native code, for one thread.

Every array lies in an arena of its element kind, so the written program has no memory of two types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from glassgrad.compile.c.abilities import abilities
from glassgrad.compile.c.refusals import refuse_hosts
from glassgrad.compile.ir import passes
from glassgrad.compile.ir.graph import Graph, Var
from glassgrad.compile.llvm.module.ir import KINDS, kind_of
from glassgrad.compile.plan.cheap import without_cheap
from glassgrad.compile.plan.indexing.bounds import Computed, IndexCheck
from glassgrad.compile.plan.indexing.checks import find_checks, with_guards
from glassgrad.compile.plan.kernels import Kernel, make_plan
from glassgrad.compile.plan.memory import pinned_vars, plan_memory
from glassgrad.compile.plan.native_form import normalise
from glassgrad.compile.plan.order import dependencies, place_updates
from glassgrad.compile.plan.recompute import recomputed
from glassgrad.compile.plan.schedule import Task, make_schedule


@dataclass(frozen=True)
class Planned:
    """A graph on its way to C.

    Attributes:
        small: the graph after the passes.
        graph: the graph in native form.
        checks, computed: the indices among its inputs, and those that it computes.
        kernels: in the order in which they run.
        alias: new values that are written into the memory of an input.
        offsets: the place of an array in the arena of its kind, in elements.
        sizes: the elements of each arena.
    """

    small: Graph
    graph: Graph
    checks: Sequence[IndexCheck]
    computed: Sequence[Computed]
    kernels: Sequence[Kernel]
    alias: Mapping[Var, Var]
    offsets: Mapping[Var, int]
    sizes: Mapping[str, int]


def planned(given: Graph) -> Planned:
    """Plan a graph as it was traced.

    Raises:
        CompileError: for an op that has no C, with its line.
    """
    small = passes.simplified(passes.decompose(given))
    checks, computed = find_checks(small)
    target = abilities()
    guarded = with_guards(passes.settle(small), computed)
    guarded = passes.with_exact_means(passes.widen_products(guarded, target.takes_product))
    graph = without_cheap(recomputed(normalise(guarded, target, alone=True)))
    refuse_hosts(graph, target)
    plan = make_plan(graph, target)
    alias = place_updates(plan, target)
    tasks = {kernel: Task(kernel, 0.0, ()) for kernel in plan.kernels}
    schedule = make_schedule([tasks[kernel] for kernel in plan.kernels], dependencies(plan, alias, tasks), 1)
    pinned = set(pinned_vars(graph))
    written = {var for kernel in plan.kernels for var in kernel.writes}
    offsets: dict[Var, int] = {}
    sizes: dict[str, int] = {}
    for kind in dict.fromkeys(KINDS.values()):
        others = {var for var in written if kind_of(var.dtype) != kind}
        memory = plan_memory(schedule, pinned | others, alias)
        if memory.offsets:
            item = next(iter(memory.offsets)).dtype.itemsize
            offsets.update({var: offset // item for var, offset in memory.offsets.items()})
            sizes[kind] = memory.size // item
    kernels = [task.kernel for _, task in schedule.tasks()]
    return Planned(small, graph, checks, computed, kernels, alias, offsets, sizes)
