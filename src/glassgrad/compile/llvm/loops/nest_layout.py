"""The layout of a loop nest as code: its vector axis, the work shared among threads, values kept from pass to pass.

`nest.py` writes the values in the loops, `nest_code.py` the loops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from glassgrad.compile.llvm.module.ir import BITS, is_float
from glassgrad.compile.plan.build_nest import vector_axis
from glassgrad.compile.plan.indexing.indices import Axis
from glassgrad.compile.plan.nests import Expr, Nest, Reduction, operands

_STRAIGHT_CHUNKS = 8  # up to this many vectors of a row need no loop ...
_STRAIGHT_COST = 400  # ... if their code is not too long
_KEEP_COST = 12  # more expensive values are kept for the next pass, not recomputed
_SWEEP_BYTES = 1 << 15  # arrays beyond this size (first-level cache) are summed row by row
_LONG_SUMS = 160  # most instructions in the body of a reduction along columns that is unrolled twice


@dataclass(frozen=True)
class NestPlan:
    """The layout of a loop nest as code, with the data that the caller needs to share it among threads.

    Attributes:
        axis: the vector axis, None for a scalar nest.
        lanes: vector length.
        unroll: vectors in a tile.
        lane_mode: see the module docstring.
        units: total units of work.
        split_tiles: whether units are tiles of the vector axis (instead of iterations of the outer loops).
        scratch: bytes of scratch memory each thread needs.
        kept: expressions kept from one pass to the next, with their offset in scratch.
        flexible: whether the number of elements is a run-time argument.
        straight: whether a row needs no loop.
        shared: the outer axes that run as one loop, whose iterations threads share.
        serial: the outer axes inside those, in separate loops.
        swept: offsets in scratch of the accumulators of a sweep, two for each reduction: totals and a block's sums.
    """

    axis: Axis | None
    lanes: int
    unroll: int
    lane_mode: bool
    units: int
    split_tiles: bool
    scratch: int
    kept: dict[Expr, int]
    flexible: bool = False
    straight: bool = False
    shared: tuple[Axis, ...] = ()
    serial: tuple[Axis, ...] = ()
    swept: tuple[tuple[int, int], ...] = ()

    @property
    def tile(self) -> int:
        return self.lanes * self.unroll


def plan_nest(nest: Nest, vector_bytes: int, threads: int) -> NestPlan:
    """Decide vector axis, vector length, unrolling, units of work and the values kept between passes."""
    axis = vector_axis(nest)
    if axis is None:
        return NestPlan(None, 1, 1, True, 1, False, 0, {})
    lane_mode = axis not in nest.inner
    lanes = _lanes(nest, vector_bytes, axis)
    extent = nest.extents[axis]
    chunks = -(-extent // lanes)
    unroll = min(_unroll(nest, lane_mode, chunks, threads), chunks)
    sweeps = lane_mode and _sweeps(nest, axis)
    others = [other for other in nest.outer if other != axis]
    rows = math.prod(nest.extents[other] for other in others)
    tiles = -(-extent // (lanes * unroll))
    few = rows < threads if sweeps else rows < 2 * threads and tiles > rows
    split_tiles = lane_mode and (rows == 1 or few)
    shared, serial = ((), tuple(others)) if split_tiles else _shared_axes(nest, others, threads)
    units = tiles if split_tiles else math.prod(nest.extents[other] for other in shared)
    kept, scratch = _kept(nest, axis, lanes * unroll)
    straight = not lane_mode and _is_straight(nest, chunks)
    if straight:
        kept, scratch = {}, 0
    swept, scratch = _accumulators(nest, axis, lanes * unroll) if sweeps else ((), scratch)
    flexible = split_tiles and len(nest.extents) == 1 and not kept
    return NestPlan(
        axis,
        lanes,
        unroll,
        lane_mode,
        units,
        split_tiles,
        scratch,
        kept,
        flexible,
        straight,
        shared,
        serial,
        swept,
    )


def _shared_axes(nest: Nest, others: list[Axis], threads: int) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """Split the outer axes: the fewest that give every thread enough iterations run as one loop, because each of its
    iterations recovers the counters by division; the others are plain loops.
    """
    shared, serial = list(others), list[Axis]()
    while len(shared) > 1 and math.prod(nest.extents[axis] for axis in shared[:-1]) >= 16 * threads:
        serial.insert(0, shared.pop())
    return tuple(shared), tuple(serial)


def _sweeps(nest: Nest, axis: Axis) -> bool:
    """Tell whether sums along the columns of a large array are faster row by row, all columns at once.

    Column by column, every row costs a cache miss that no prefetcher predicts. Row by row, memory is read in order and
    the partial sums stay in the first-level cache.
    """
    if not nest.inner or nest.extents[nest.inner[-1]] < 8 or len(pass_roots(nest)) != 1:
        return False
    if any(axis not in red.value.axes or red.how.startswith("arg") for red in nest.reductions):
        return False
    turns = math.prod(nest.extents[other] for other in nest.inner)
    widest = max(BITS[red.value.kind] for red in nest.reductions) if nest.reductions else 0
    return turns * nest.extents[axis] * widest // 8 > _SWEEP_BYTES


def _accumulators(nest: Nest, axis: Axis, tile: int) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return the offsets in scratch of a sweep's accumulators, and their total size in bytes."""
    places, offset = [], 0
    for reduction in nest.reductions:
        # Reserve one extra tile, because the last vector is written in full.
        size = -(-(nest.extents[axis] + tile) * max(BITS[reduction.value.kind] // 8, 1) // 64) * 64
        places.append((offset, offset + size))
        offset += 2 * size
    return tuple(places), offset


def _lanes(nest: Nest, vector_bytes: int, axis: Axis) -> int:
    kinds = {expr.kind for expr in nest.expressions() if axis in expr.axes}
    floats = [BITS[kind] for kind in kinds if is_float(kind)]
    bits = max(floats) if floats else max((BITS[kind] for kind in kinds if kind != "b1"), default=8)
    return max(vector_bytes * 8 // max(bits, 8), 1)


def nest_cost(nest: Nest) -> int:
    """Return roughly the number of instructions of one iteration of the innermost loop."""
    return sum(max(expr.cost - sum(arg.cost for arg in expr.args), 1) for expr in nest.expressions())


def _unroll(nest: Nest, lane_mode: bool, chunks: int, threads: int) -> int:
    cost = nest_cost(nest)
    # Two adjacent columns hide the latency of sums along the columns.
    unroll = 4 if cost <= 16 else 2 if cost <= (_LONG_SUMS if lane_mode and nest.inner else 48) else 1
    if lane_mode and nest.inner:
        # Only lanes can be shared among threads here.
        while unroll > 1 and chunks < 4 * threads * unroll:
            unroll //= 2
    return unroll


def _is_straight(nest: Nest, chunks: int) -> bool:
    return len(nest.inner) == 1 and chunks <= _STRAIGHT_CHUNKS and chunks * nest_cost(nest) <= _STRAIGHT_COST


def pass_roots(nest: Nest) -> dict[int, tuple[list[Reduction], list[int]]]:
    """Return for each pass over the inner axes its reductions and its stores (by number)."""
    inner = set(nest.inner)
    passes: dict[int, tuple[list[Reduction], list[int]]] = {}
    for reduction in nest.reductions:
        passes.setdefault(reduction.value.stage, ([], []))[0].append(reduction)
    for number, store in enumerate(nest.stores):
        if store.access.index.axes & inner:
            passes.setdefault(_store_stage(nest, number), ([], []))[1].append(number)
    return dict(sorted(passes.items()))


def _store_stage(nest: Nest, number: int) -> int:
    store = nest.stores[number]
    return max([store.value.stage, *(expr.stage for expr, _ in store.access.computed)])


def _kept(nest: Nest, axis: Axis, tile: int) -> tuple[dict[Expr, int], int]:
    """Return the expressions to keep between passes, and their total size in bytes.

    Each is kept once for every index of the inner axes along which it varies; it is computed outside the loops of the
    others.
    """
    inner, done = set(nest.inner), set()
    kept: dict[Expr, int] = {}
    offset = 0
    for reductions, stores in pass_roots(nest).values():
        stack = [red.value for red in reductions] + [nest.stores[number].value for number in stores]
        fresh: set[Expr] = set()
        while stack:
            expr = stack.pop()
            if expr in fresh or not expr.axes & inner or expr in kept:
                continue
            if expr in done and expr.cost >= _KEEP_COST and expr.op not in {"const", "counter"}:
                kept[expr] = offset
                per_value = math.prod(nest.extents[other] for other in nest.inner if other in expr.axes)
                if axis in expr.axes and axis not in inner:
                    per_value *= tile
                # Reserve one extra tile, because the last vector of a row is written in full.
                offset += -(-(per_value + tile) * max(BITS[expr.kind] // 8, 1) // 64) * 64
                continue
            fresh.add(expr)
            if expr.op != "reduced":
                stack += operands(expr)
        done |= fresh
    return kept, offset
