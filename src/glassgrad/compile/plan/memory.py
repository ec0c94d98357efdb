"""Where every array lies: what is written in place, and which buffers share memory.

Times are those of the schedule: tasks for one share, phases for several. Within a phase shares are not ordered; a
buffer is reused there only where each share keeps to the same part of the old and of the new array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad.compile.ir.graph import Graph, Var
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.nests import Nest, Store
from glassgrad.compile.plan.schedule import Schedule, is_disjoint

ALIGNMENT = 64


@dataclass(eq=False)
class _Block:
    """A stretch of memory and the arrays that use it one after the other, from `start` to `stop`, both included."""

    size: int
    start: int
    stop: int
    members: list[Var] = field(default_factory=list)
    offset: int = -1


@dataclass
class MemoryPlan:
    """Offsets of the buffers in the arena, and its size.

    `reused` counts buffers that took over the memory of an array they replace element by element.
    """

    offsets: dict[Var, int]
    size: int
    reused: int = 0


def can_overwrite(nest: Nest, root: Var, store: Store) -> bool:
    """Tell whether a store may go to the memory of an array that the nest reads.

    It may when every read is of the very element that is stored, and no later pass reads again.
    """
    inner = set(nest.inner)
    if store.access.index.axes & inner:
        passes = [reduction.value.stage for reduction in nest.reductions]
        passes += [other.value.stage for other in nest.stores if (other.value.axes | other.access.index.axes) & inner]
        if store.value.stage < max(passes):
            return False
    for access, is_store in nest.accesses():
        if is_store or access.root is not root:
            continue
        if access.computed or access.mask is not None or access.index != store.access.index:
            return False
    return True


def pinned_vars(graph: Graph) -> list[Var]:
    """Return the Vars whose memory is not the step's to choose: arguments, constants and results."""
    outputs = (out for out in graph.outputs if isinstance(out, Var))
    return [*graph.inputs, *(var for var, _ in graph.constants), *outputs]


def plan_memory(schedule: Schedule, pinned: set[Var], alias: Mapping[Var, Var]) -> MemoryPlan:
    """Place every array that a kernel writes and that has no place of its own (`pinned`, or `alias` of one)."""
    uses = Uses(schedule)
    blocks: dict[Var, _Block] = {}
    reused = 0
    for number, (time, task) in enumerate(uses.tasks):
        for var in sorted(task.kernel.writes, key=lambda var: var.id):
            if var in pinned or var in alias:
                continue
            host = uses.replaced(task.kernel, var, number, blocks)
            if host is not None:
                block = blocks[host]
                reused += 1
            else:
                block = uses.left_over(var, number, blocks) or _Block(_rounded(var.nbytes), time, time)
            block.members.append(var)
            block.stop = max(block.stop, uses.tasks[uses.last(var)][0])
            blocks[var] = block
    size = _assign(list(dict.fromkeys(blocks.values())))
    return MemoryPlan({var: block.offset for var, block in blocks.items()}, size, reused)


def _rounded(size: int) -> int:
    return max(-(-size // ALIGNMENT) * ALIGNMENT, ALIGNMENT)


class Uses:
    """Who touches which array when.

    Within a phase shares are not ordered. But where every task of a phase that touches an array is cut, and each share
    keeps to its own part of it, then each share's turns with its part are ordered all the same: the part may be written
    again, or become the same part of another array, as soon as that share has done with it.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.tasks = list(schedule.tasks())
        self.touched: dict[Var, list[int]] = {}
        self._touched_at: dict[tuple[Var, int], list[int]] = {}
        self._parts: dict[tuple[Var, int], Any] = {}
        for number, (time, task) in enumerate(self.tasks):
            for var in task.kernel.reads | task.kernel.writes:
                self.touched.setdefault(var, []).append(number)
                self._touched_at.setdefault((var, time), []).append(number)

    def last(self, var: Var) -> int:
        """Return the number of the last task that touches an array."""
        return self.touched[var][-1]

    def _at(self, var: Var, time: int) -> list[int]:
        return self._touched_at.get((var, time), [])

    def parts(self, var: Var, time: int) -> Any:
        """Return the bytes that each share keeps to at a time, as a key; None if shares do not keep to parts."""
        if (var, time) not in self._parts:
            self._parts[var, time] = self._parts_at(var, time)
        return self._parts[var, time]

    def _parts_at(self, var: Var, time: int) -> Any:
        regions = set()
        for number in self._at(var, time):
            cut = self.tasks[number][1].cut
            regions.add(None if cut is None else cut.regions.get(var))
        region = regions.pop() if len(regions) == 1 else None
        if region is None or not is_disjoint(region):
            return None
        size = var.dtype.itemsize
        return var.nbytes, region.period * size, tuple((low * size, high * size) for low, high in region.ranges)

    def replaced(self, kernel: Kernel, var: Var, number: int, blocks: Mapping[Var, _Block]) -> Var | None:
        """Return an array that dies in this kernel and whose memory `var` can take over element by element."""
        time = self.tasks[number][0]
        if kernel.nest is None:
            return None
        store = next(store for store in kernel.nest.stores if store.access.root is var)
        for old in sorted(kernel.reads, key=lambda old: old.id):
            block = blocks.get(old)
            if block is None or old is not block.members[-1] or self.last(old) != number:
                continue
            alone = self._at(old, time) == [number]
            if not alone and (self.parts(old, time) is None or self.parts(old, time) != self.parts(var, time)):
                continue
            # Of half of an array, numbers of twice the bytes take as many in all, and lie where others are still read.
            same = old.nbytes == var.nbytes and old.dtype.itemsize == var.dtype.itemsize
            if same and can_overwrite(kernel.nest, old, store):
                return old
        return None

    def left_over(self, var: Var, number: int, blocks: Mapping[Var, _Block]) -> _Block | None:
        """Return a block of the same parts whose last array died earlier in this phase, the latest."""
        time = self.tasks[number][0]
        wanted = self.parts(var, time)
        if wanted is None or self._at(var, time)[0] != number:
            return None
        for earlier in range(number - 1, -1, -1):
            if self.tasks[earlier][0] != time:
                return None
            kernel = self.tasks[earlier][1].kernel
            for old in sorted(kernel.reads | kernel.writes, key=lambda old: old.id):
                block = blocks.get(old)
                free = block is not None and block.members[-1] is old and self.last(old) == earlier
                if block is not None and free and self.parts(old, time) == wanted:
                    return block
        return None


def _assign(blocks: Sequence[_Block]) -> int:
    """Give every block the lowest offset at which it meets no block alive at the same time; the largest first."""
    placed = np.zeros(
        (4, len(blocks)), np.int64
    )  # begin and end in memory, first and last time; in order of the begins
    for count, block in enumerate(sorted(blocks, key=lambda block: (-block.size, block.start))):
        begins, ends, starts, stops = placed[:, :count]
        together = (starts <= block.stop) & (block.start <= stops)
        # Where what lies below ends; a block fits before the first one that begins far enough above that.
        below = np.concatenate([[0], np.maximum.accumulate(ends[together])])
        gaps = np.flatnonzero(begins[together] - below[:-1] >= block.size)
        block.offset = int(below[gaps[0]] if len(gaps) else below[-1])
        at = int(np.searchsorted(begins, block.offset))
        placed[:, at + 1 : count + 1] = placed[:, at:count]
        placed[:, at] = block.offset, block.offset + block.size, block.start, block.stop
    return int(placed[1].max(initial=0))
