"""The order of kernels, and state that is updated in place.

A new value of an input is written straight into the input's memory if every kernel that reads the old value can run
first. Otherwise the new value gets its own memory and is copied at the end.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from glassgrad.compile.ir.graph import Var
from glassgrad.compile.plan.kernels import Kernel, Plan, copy_kernel
from glassgrad.compile.plan.memory import can_overwrite
from glassgrad.compile.plan.schedule import Task
from glassgrad.compile.plan.target import Target

# Ops that return a copy of their first operand with the elements at some index replaced.
_WRITES_AT_PLACES = frozenset({"at_set", "put_along_axis"})


def place_updates(plan: Plan, machine: Target) -> dict[Var, Var]:
    """Let new values of updated inputs be written straight into the inputs' memory where the order allows it.

    Reorders the kernels so that all readers of the old value come first. Where that is impossible, a copy is
    appended. Returns {new value: input}.
    """
    alias: dict[Var, Var] = {}
    edges: dict[Kernel, set[Kernel]] = _edges(plan.kernels)
    writers = {var: kernel for kernel in reversed(plan.kernels) for var in kernel.writes}
    users: dict[Var, list[Kernel]] = {}
    for kernel in plan.kernels:
        for var in kernel.reads:
            users.setdefault(var, []).append(kernel)
    returned = {out for out in plan.graph.outputs if isinstance(out, Var)}  # they have memory of their own
    for target, value in plan.graph.updates:
        writer = writers[value]
        readers = [kernel for kernel in users.get(target, ()) if kernel is not writer]
        # Several inputs may get the same value, for example equal gradients.
        free = value not in alias and value not in returned
        if free and _in_place(writer, target, value) and not any(_reaches(edges, writer, reader) for reader in readers):
            alias[value] = target
            for reader in readers:
                edges[reader].add(writer)
        else:
            copy = copy_kernel(value, target, machine.stored_kind(value.dtype) or "")
            plan.kernels.append(copy)
            users.setdefault(value, []).append(copy)
            writers.setdefault(target, copy)
            edges[copy] = set()
            edges[writer].add(copy)
            for reader in [*readers, writer]:
                edges[reader].add(copy)
    plan.kernels[:] = _sorted(plan.kernels, edges)
    return alias


def _in_place(writer: Kernel, target: Var, value: Var) -> bool:
    if target not in writer.reads:
        return True
    if writer.nest is None:
        return _changes_places(writer, target)
    store = next(store for store in writer.nest.stores if store.access.root is value)
    return can_overwrite(writer.nest, target, store)


def _changes_places(writer: Kernel, target: Var) -> bool:
    """Tell whether a kernel writes some elements of a copy of `target`; it can then write to `target` itself."""
    if writer.instrs[0].op not in _WRITES_AT_PLACES:
        return False
    first, *others = writer.operands
    if first is None or any(operand is not None and operand.root is target for operand in others):
        return False
    return first.root is target and first.contiguous and not first.offset and first.shape == target.shape


def _edges(kernels: Sequence[Kernel]) -> dict[Kernel, set[Kernel]]:
    writer = {var: kernel for kernel in kernels for var in kernel.writes}
    edges: dict[Kernel, set[Kernel]] = {kernel: set() for kernel in kernels}
    for kernel in kernels:
        for var in kernel.reads:
            if var in writer and writer[var] is not kernel:
                edges[writer[var]].add(kernel)
    return edges


def _reaches(edges: dict[Kernel, set[Kernel]], start: Kernel, goal: Kernel) -> bool:
    seen: set[Kernel] = set()
    stack = [start]
    while stack:
        kernel = stack.pop()
        if kernel is goal:
            return True
        if kernel not in seen:
            seen.add(kernel)
            stack += edges[kernel]
    return False


def _sorted(kernels: Sequence[Kernel], edges: dict[Kernel, set[Kernel]]) -> list[Kernel]:
    """Sort topologically; independent kernels keep the given order."""
    waiting = dict.fromkeys(kernels, 0)
    for successors in edges.values():
        for kernel in successors:
            waiting[kernel] += 1
    position = {kernel: number for number, kernel in enumerate(kernels)}
    ready = [(position[kernel], kernel) for kernel in kernels if not waiting[kernel]]
    heapq.heapify(ready)
    order = []
    while ready:
        _, kernel = heapq.heappop(ready)
        order.append(kernel)
        for successor in edges[kernel]:
            waiting[successor] -= 1
            if not waiting[successor]:
                heapq.heappush(ready, (position[successor], successor))
    assert len(order) == len(kernels)
    return order


def dependencies(plan: Plan, alias: Mapping[Var, Var], tasks: dict[Kernel, Task]) -> dict[Task, list[tuple[Task, Var]]]:
    """Return the tasks that each task must follow, each with the array that causes the dependency."""
    writer: dict[Var, Kernel] = {}
    readers: dict[Var, list[Kernel]] = {}
    after: dict[Task, list[tuple[Task, Var]]] = {}
    targets = {target for target, _ in plan.graph.updates}
    for kernel in plan.kernels:
        before = after.setdefault(tasks[kernel], [])
        for var in kernel.reads:
            if var in writer:
                before.append((tasks[writer[var]], alias.get(var, var)))
            readers.setdefault(var, []).append(kernel)
        for var in kernel.writes:
            place = alias.get(var, var)
            if place in targets:
                before += [(tasks[other], place) for other in readers.get(place, ()) if other is not kernel]
            writer[var] = kernel
    return after
