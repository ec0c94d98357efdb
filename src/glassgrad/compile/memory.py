"""Where every array lies: what is written in place, and which buffers share memory.

Times are those of the schedule: tasks for one share, phases for several (within a phase shares are not ordered, so a
buffer may be reused only in a later phase).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glassgrad.compile.graph import Var
from glassgrad.compile.nests import Nest, Store
from glassgrad.compile.plan import Kernel
from glassgrad.compile.schedule import Schedule

ALIGNMENT = 64


@dataclass(eq=False)
class _Block:
    """A stretch of memory and the arrays that use it one after the other."""

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
        passes = [reduction.value.stage for reduction in nest.reductions] + [other.value.stage for other in nest.stores]
        if store.value.stage < max(passes):
            return False
    for access, is_store in nest.accesses():
        if is_store or access.root is not root:
            continue
        if access.computed or access.mask is not None or access.index != store.access.index:
            return False
    return True


def plan_memory(schedule: Schedule, pinned: set[Var], alias: Mapping[Var, Var]) -> MemoryPlan:
    """Place every array that a kernel writes and that has no place of its own (`pinned`, or `alias` of one)."""
    last_read, readers = _lifetimes(schedule)
    blocks: dict[Var, _Block] = {}
    reused = 0
    for time, task in schedule.tasks():
        for var in sorted(task.kernel.writes, key=lambda var: var.id):
            if var in pinned or var in alias:
                continue
            host = _replaced(task.kernel, var, time, blocks, (last_read, readers))
            if host is not None:
                block = blocks[host]
                reused += 1
            else:
                block = _Block(_rounded(var.nbytes), time, time)
            block.members.append(var)
            block.stop = max(block.stop, last_read.get(var, time))
            blocks[var] = block
    size = _assign(list(dict.fromkeys(blocks.values())))
    return MemoryPlan({var: block.offset for var, block in blocks.items()}, size, reused)


def _rounded(size: int) -> int:
    return max(-(-size // ALIGNMENT) * ALIGNMENT, ALIGNMENT)


def _lifetimes(schedule: Schedule) -> tuple[dict[Var, int], dict[tuple[Var, int], int]]:
    """Return when each array is last read, and how many tasks read it at a time."""
    last_read: dict[Var, int] = {}
    readers: dict[tuple[Var, int], int] = {}
    for time, task in schedule.tasks():
        for var in task.kernel.reads:
            last_read[var] = max(last_read.get(var, 0), time)
            readers[var, time] = readers.get((var, time), 0) + 1
    return last_read, readers


def _replaced(
    kernel: Kernel, var: Var, time: int, blocks: Mapping[Var, _Block],
    uses: tuple[Mapping[Var, int], Mapping[tuple[Var, int], int]],
) -> Var | None:  # fmt: skip
    """Return an array that dies in this kernel and whose memory `var` can take over."""
    last_read, readers = uses
    if kernel.nest is None:
        return None
    store = next(store for store in kernel.nest.stores if store.access.root is var)
    for old in sorted(kernel.reads, key=lambda old: old.id):
        block = blocks.get(old)
        if block is None or old is not block.members[-1] or block.stop != time or block.start == time:
            continue
        dies = last_read[old] == time and readers[old, time] == 1
        if dies and old.nbytes == var.nbytes and can_overwrite(kernel.nest, old, store):
            return old
    return None


def _assign(blocks: Sequence[_Block]) -> int:
    """Give every block the lowest offset at which it meets no block alive at the same time; the largest first."""
    placed: list[_Block] = []
    for block in sorted(blocks, key=lambda block: (-block.size, block.start)):
        offset = 0
        for other in sorted(placed, key=lambda other: other.offset):
            together = other.start <= block.stop and block.start <= other.stop
            if together and other.offset < offset + block.size and offset < other.offset + other.size:
                offset = other.offset + other.size
        block.offset = offset
        placed.append(block)
    return max((block.offset + block.size for block in blocks), default=0)
