"""The memory of every array: updates in place, and buffers that share memory.

Times are those of the schedule: tasks for one share, phases for several. Within a phase shares are not ordered; there
a buffer is reused only if each share accesses the same part of the old and of the new array.
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
    """A range of memory and the arrays that use it one after another, from time `start` to `stop`, both inclusive."""

    size: int
    start: int
    stop: int
    members: list[Var] = field(default_factory=list)
    offset: int = -1


@dataclass
class MemoryPlan:
    """Offsets of the buffers in the arena, and its size.

    `reused` counts buffers that take over the memory of an array that they replace element by element.
    """

    offsets: dict[Var, int]
    size: int
    reused: int = 0


def can_overwrite(nest: Nest, root: Var, store: Store) -> bool:
    """Tell whether a store may overwrite an array that the nest reads.

    It may if every read is of the same element that is stored, and no later pass reads the array.
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
    """Return the Vars whose memory the step does not choose: arguments, constants and results."""
    outputs = (out for out in graph.outputs if isinstance(out, Var))
    return [*graph.inputs, *(var for var, _ in graph.constants), *outputs]


def plan_memory(schedule: Schedule, pinned: set[Var], alias: Mapping[Var, Var]) -> MemoryPlan:
    """Assign memory to every array that a kernel writes, except `pinned` ones and those with an `alias`."""
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
    """The accesses to each array over time.

    Within a phase shares are not ordered. But if every task of a phase that accesses an array is cut, and each share
    accesses only its own part, then each share's accesses to its part are still ordered. So the part may be
    overwritten, or become the same part of another array, as soon as that share is done with it.
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
        """Return the number of the last task that accesses an array."""
        return self.touched[var][-1]

    def _at(self, var: Var, time: int) -> list[int]:
        return self._touched_at.get((var, time), [])

    def parts(self, var: Var, time: int) -> Any:
        """Return, as a key, the bytes that each share accesses at a time; None if shares do not have separate parts."""
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
            # Equal total sizes are not enough: with other item sizes, a store would overwrite elements that are still
            # read.
            same = old.nbytes == var.nbytes and old.dtype.itemsize == var.dtype.itemsize
            if same and can_overwrite(kernel.nest, old, store):
                return old
        return None

    def left_over(self, var: Var, number: int, blocks: Mapping[Var, _Block]) -> _Block | None:
        """Return the latest block with the same parts whose last array died earlier in this phase."""
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
    """Give every block, largest first, the lowest offset that does not overlap blocks alive at the same time."""
    placed = np.zeros((4, len(blocks)), np.int64)  # begin and end in memory, first and last time; sorted by begin
    for count, block in enumerate(sorted(blocks, key=lambda block: (-block.size, block.start))):
        begins, ends, starts, stops = placed[:, :count]
        together = (starts <= block.stop) & (block.start <= stops)
        # The end of everything below each block; the new block fits into the first sufficient gap.
        below = np.concatenate([[0], np.maximum.accumulate(ends[together])])
        gaps = np.flatnonzero(begins[together] - below[:-1] >= block.size)
        block.offset = int(below[gaps[0]] if len(gaps) else below[-1])
        at = int(np.searchsorted(begins, block.offset))
        placed[:, at + 1 : count + 1] = placed[:, at:count]
        placed[:, at] = block.offset, block.offset + block.size, block.start, block.stop
    return int(placed[1].max(initial=0))
