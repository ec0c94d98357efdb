"""When each kernel runs, and which thread runs which part of it.

A step is a list of *phases* with a barrier after each. Within a phase every share runs its tasks in order, without
waiting for the others. So a kernel may be in the same phase as one it depends on only if each share reads nothing
but what the same share wrote: both run on one share, or both are cut at the same places of the arrays between them.
Small kernels are not cut; they go to the share with the least to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from glassgrad.compile.ir.graph import Var
from glassgrad.compile.plan.indexing.indices import Index
from glassgrad.compile.plan.kernels import Kernel

# Nanoseconds of one thread's work that make cutting a kernel worth a barrier.
_WORTH_CUTTING = 1500.0


@dataclass(frozen=True)
class Cut:
    """One way to share a kernel: share s computes the units [bounds[s], bounds[s + 1]).

    `axis` names the axis that is cut (a word of the emitter). `regions` maps each array to the places that share s
    touches, as (period, ranges), or to None if every share touches all of it.
    """

    axis: str
    bounds: tuple[int, ...]
    regions: dict[Var, Region | None]


@dataclass(frozen=True)
class Region:
    """Places of an array: positions whose remainder by `period` lies in ranges[share]."""

    period: int
    ranges: tuple[tuple[int, int], ...]

    def within(self, other: Region) -> bool:
        """Tell whether every share's places here are among its places there."""
        return self.period == other.period and all(
            low >= high or (other_low <= low and high <= other_high)
            for (low, high), (other_low, other_high) in zip(self.ranges, other.ranges, strict=True)
        )


@dataclass(eq=False)
class Task:
    """A kernel with its place in the schedule: cut into shares, or whole on one share.

    `recut` cuts at given places, for kernels that can be cut anywhere; it returns None for places that do not suit.
    `by_host` marks a task that Python computes; it has its own phase, and later tasks run in later phases.
    """

    kernel: Kernel
    cost: float
    cuts: Sequence[Cut]
    recut: Callable[[Region], Cut | None] | None = None
    by_host: bool = False
    cut: Cut | None = None
    share: int = 0
    phase: int = 0

    def may_follow(self, other: Task, var: Var) -> bool:
        """Tell whether this task may touch `var` after `other` did, without a barrier between them."""
        if self.cut is None or other.cut is None:
            return self.cut is None and other.cut is None and self.share == other.share
        mine, theirs = self.cut.regions.get(var), other.cut.regions.get(var)
        return mine is not None and theirs is not None and mine.within(theirs) and is_disjoint(theirs)


def is_disjoint(region: Region) -> bool:
    """Tell whether no two shares touch the same place."""
    ordered = sorted(pair for pair in region.ranges if pair[0] < pair[1])
    return all(first[1] <= second[0] for first, second in pairwise(ordered))


@dataclass(eq=False)
class Schedule:
    """Tasks by phase, in the order in which every share runs them."""

    shares: int
    phases: list[list[Task]] = field(default_factory=list)

    def segments(self) -> list[tuple[int, Task | None]]:
        """Return the alternation of native code and host: (native phases to run, the host task after them)."""
        found: list[tuple[int, Task | None]] = []
        count = 0
        for phase in self.phases:
            if phase and phase[0].by_host:
                found.append((count, phase[0]))
                count = 0
            else:
                count += 1
        return [*found, (count, None)] if count or not found else found

    def tasks(self) -> Iterable[tuple[int, Task]]:
        """Iterate over (time, task); memory planning compares the times."""
        if self.shares == 1:
            # Tasks run one after another, so every task has its own time.
            yield from enumerate(task for phase in self.phases for task in phase)
        else:
            yield from ((number, task) for number, phase in enumerate(self.phases) for task in phase)


def make_schedule(
    tasks: Sequence[Task], after: dict[Task, list[tuple[Task, Var]]], shares: int, *, separate: bool = False
) -> Schedule:
    """Place tasks, given in an order in which they can run; `after` holds what each task must follow, and why.

    `separate` gives every task a phase of its own, so that each can be timed.
    """
    schedule = Schedule(shares)
    load: list[list[float]] = []
    first = 0
    for task in tasks:
        if task.by_host:
            task.phase = len(schedule.phases)
            first = task.phase + 1
        elif separate:
            task.phase = len(schedule.phases)
        elif shares == 1:
            task.phase = first
        else:
            _place(task, after.get(task, []), load, (shares, first))
        while len(schedule.phases) <= task.phase:
            schedule.phases.append([])
        schedule.phases[task.phase].append(task)
    return schedule


def _place(task: Task, before: list[tuple[Task, Var]], load: list[list[float]], where: tuple[int, int]) -> None:
    """Choose a cut or a share, and the earliest allowed phase."""
    shares, first = where
    options: list[tuple[int, int, Cut | None, int]] = []
    if task.cuts and task.cost >= _WORTH_CUTTING:
        for preference, cut in enumerate([*task.cuts, *_adopted(task, before)]):
            task.cut = cut
            options.append((max(_earliest(task, before), first), preference, cut, 0))
    else:
        for share in range(shares):
            task.cut, task.share = None, share
            options.append((max(_earliest(task, before), first), 0, None, share))
    phase = min(option[0] for option in options)
    while len(load) <= phase:
        load.append([0.0] * shares)
    open_now = [option for option in options if option[0] == phase]
    task.phase, _, task.cut, task.share = min(open_now, key=lambda option: (option[1], load[phase][option[3]]))
    if task.cut is None:
        load[phase][task.share] += task.cost
    else:
        for share in range(shares):
            load[phase][share] += task.cost / shares


def _adopted(task: Task, before: list[tuple[Task, Var]]) -> list[Cut]:
    """Return cuts at the places where the tasks before this one are cut."""
    if task.recut is None:
        return []
    regions = {other.cut.regions.get(var) for other, var in before if other.cut is not None}
    cuts = [task.recut(region) for region in regions if region is not None]
    return [cut for cut in cuts if cut is not None]


def _earliest(task: Task, before: list[tuple[Task, Var]]) -> int:
    phase = 0
    for other, var in before:
        phase = max(phase, other.phase if task.may_follow(other, var) else other.phase + 1)
    # Within a phase, a later task depends on an earlier one only through the pairs listed, so this phase is valid.
    return phase


# --- cutting --------------------------------------------------------------------------------------


def even_bounds(count: int, shares: int, granule: int = 1) -> tuple[int, ...]:
    """Cut `count` into `shares` parts at multiples of a granule that depends only on `count` and `shares`.

    Arrays of equal length are cut at the same places, so kernels that follow each other fit together.
    """
    wanted = 64 if count >= 128 * shares else 16 if count >= 32 * shares else 4 if count >= 8 * shares else 1
    step = max(wanted, granule)
    blocks = -(-count // step)
    inner = [min(blocks * share // shares * step, count) for share in range(shares)]
    return (*inner, count)


def region_of(
    index: Index, cut_axes: Sequence[tuple[int, int]], bounds: Sequence[int], extents: dict[int, int], size: int
) -> Region | None:
    """Return what each share touches of an array read or written at `index`.

    The cut treats the axes (axis, extent) as one flat counter, the slowest first. None means everything.
    """
    axes = list(cut_axes)
    ends = list(bounds)
    # Where all bounds are multiples of an inner axis's extent, the inner axis is not cut.
    while len(axes) > 1 and all(end % axes[-1][1] == 0 for end in ends):
        extent = axes.pop()[1]
        ends = [end // extent for end in ends]
    strides = dict(index.terms)
    unit = strides.get(axes[-1][0], 0)
    if unit <= 0:
        return None
    expected = unit
    for axis, extent in reversed(axes):
        if strides.get(axis, 0) != expected:
            return None
        expected *= extent
    cut = {axis for axis, _ in axes}
    rest = [(axis, stride) for axis, stride in index.terms if axis not in cut]
    inside = index.offset % expected + sum(stride * (extents[axis] - 1) for axis, stride in rest if stride < unit)
    outside = all(stride % expected == 0 for _, stride in rest if stride >= unit)
    if inside >= unit or not outside or any(stride < 0 for _, stride in rest):
        return None
    period = min(expected, size) if expected >= size else expected
    return Region(period, tuple((low * unit, high * unit) for low, high in pairwise(ends)))
