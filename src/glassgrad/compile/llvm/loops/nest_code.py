"""The loops around the expressions of a nest: tiles, rows, passes, accumulators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from glassgrad.compile.ir.graph import Var
from glassgrad.compile.llvm.loops import reduce
from glassgrad.compile.llvm.loops.memory_ops import first_lanes, load_vector, memory_kind, store_vector
from glassgrad.compile.llvm.loops.nest import BLOCK, Chunk, NestEmitter
from glassgrad.compile.llvm.loops.nest_layout import NestPlan, pass_roots
from glassgrad.compile.llvm.module.ir import Builder, Module, Value, type_name
from glassgrad.compile.plan.indexing.indices import Axis
from glassgrad.compile.plan.nests import Expr, Nest, Reduction

States = list[reduce.State]
Slot = tuple[Reduction, Chunk]
Body = Callable[[list[Chunk]], None]


@dataclass(frozen=True)
class NestFunction:
    """An emitted function: its text with a placeholder for the name, and its array parameters in order."""

    body: str
    roots: list[Var]

    def definition(self, name: str) -> str:
        """Return the LLVM definition."""
        params = [f"ptr %a{number}" for number in range(len(self.roots))]
        params += ["ptr %scratch", "i64 %lo", "i64 %hi", "i64 %n"]
        return f"define internal void @{name}({', '.join(params)}) #0 {{\n{self.body}\n}}\n"


def emit_nest(module: Module, nest: Nest, plan: NestPlan) -> NestFunction:
    """Return the function that runs units [lo, hi) of a nest."""
    writer = NestWriter(module, nest, plan)
    writer.run()
    writer.b.raw("ret void")
    return NestFunction("\n".join(["entry:", *writer.b.lines]), writer.roots)


class NestWriter(NestEmitter):
    """Writes the loops; the values in them come from `NestEmitter`."""

    def __init__(self, module: Module, nest: Nest, plan: NestPlan) -> None:
        super().__init__(module, nest, plan)
        self.reduced: dict[int, list[Expr]] = {}
        for expr in nest.expressions():
            if expr.op == "reduced":
                self.reduced.setdefault(id(expr.data), []).append(expr)

    def run(self) -> None:
        """Write the whole body."""
        with self.when(self.b.define("icmp ult i64 %lo, %hi", "b1").text):
            if self.plan.axis is None:
                self._passes([Chunk(0)])
            else:
                body = self._sweep if self.plan.swept else self._tiles if self.plan.lane_mode else self._row
                self._outer_loops(body)

    def _outer_loops(self, body: Callable[[], None]) -> None:
        """Run the shared axes as one loop over [lo, hi), the others as loops inside it."""
        shared = list(self.plan.shared)
        if not shared:
            self._serial_loops(list(self.plan.serial), body)
            return
        with self.loop(set(shared), "%lo", "%hi") as loop:
            self._unravel(shared, loop.counter)
            self._serial_loops(list(self.plan.serial), body)

    def _serial_loops(self, axes: list[Axis], body: Callable[[], None]) -> None:
        if not axes:
            body()
            return
        stop = str(self.nest.extents[axes[0]])
        with self.loop({axes[0]}, "0", stop) as loop:
            self.counters[axes[0]] = loop.counter
            self._serial_loops(axes[1:], body)

    def _unravel(self, axes: list[Axis], flat: Value) -> None:
        for axis in reversed(axes[1:]):
            extent = str(self.nest.extents[axis])
            self.counters[axis] = self.b.define(f"urem i64 {flat.text}, {extent}", "i64")
            flat = self.b.define(f"udiv i64 {flat.text}, {extent}", "i64")
        self.counters[axes[0]] = flat

    # --- lanes -----------------------------------------------------------------------------------

    def _tiles(self) -> None:
        if self.plan.flexible:
            assert self.plan.axis is not None
            self._flexible_tiles(self.plan.axis)
        else:
            self._each_tile(self._passes)

    def _each_tile(self, body: Body) -> None:
        """Run `body` for the chunks of every tile of this share."""
        plan = self.plan
        assert plan.axis is not None
        full, rest = divmod(self.nest.extents[plan.axis], plan.tile)
        if plan.split_tiles:
            if full:
                stop = self.b.call("umin", Value("%hi", "u64"), Value(str(full), "u64"))
                with self.when(self.b.define(f"icmp ult i64 %lo, {stop.text}", "b1").text):
                    self._tile_loop(plan.axis, "%lo", stop.text, body)
            if rest:
                with self.when(self.b.define(f"icmp ugt i64 %hi, {full}", "b1").text):
                    self._single_tile(plan.axis, full * plan.tile, self._rest_chunks(rest), body)
            return
        if full:
            self._tile_loop(plan.axis, "0", str(full), body)
        if rest:
            self._single_tile(plan.axis, full * plan.tile, self._rest_chunks(rest), body)

    def _flexible_tiles(self, axis: Axis) -> None:
        tile = self.plan.tile
        full = self.b.define(f"udiv i64 %n, {tile}", "i64")
        stop = self.b.call("umin", Value("%hi", "u64"), Value(full.text, "u64"))
        with self.when(self.b.define(f"icmp ult i64 %lo, {stop.text}", "b1").text):
            self._tile_loop(axis, "%lo", stop.text, self._passes)
        with self.when(self.b.define(f"icmp ugt i64 %hi, {full.text}", "b1").text):
            first = self.b.define(f"mul i64 {full.text}, {tile}", "i64")
            with self.loop({axis}, first.text, "%n", self.plan.lanes) as loop:
                left = self.b.define(f"sub i64 %n, {loop.counter.text}", "i64")
                self.tile_start = loop.counter
                lanes = self.b.lane_numbers(self.plan.lanes)
                self._passes([Chunk(0, self.b.compare("lt", lanes, left))])

    def _tile_loop(self, axis: Axis, start: str, stop: str, body: Body) -> None:
        tile = self.plan.tile
        if tile != 1 and start != "0":
            start = self.b.define(f"mul i64 {start}, {tile}", "i64").text
        if not stop.startswith("%"):
            stop = str(int(stop) * tile)
        elif tile != 1:
            stop = self.b.define(f"mul i64 {stop}, {tile}", "i64").text
        with self.loop({axis}, start, stop, tile) as loop:
            self.tile_start = loop.counter
            body([Chunk(number * self.plan.lanes) for number in range(self.plan.unroll)])

    def _single_tile(self, axis: Axis, start: int, chunks: list[Chunk], body: Body) -> None:
        """Write one tile without a loop; values that depend on its position are not reused elsewhere."""
        saved = self.levels
        self.levels = [level.copied() for level in saved]
        self.levels[-1].bound.add(axis)
        self.tile_start = Value(str(start), "i64")
        body(chunks)
        self.levels = saved

    def _rest_chunks(self, rest: int) -> list[Chunk]:
        """Return the chunks that cover `rest` elements, the last one masked."""
        lanes = self.plan.lanes
        chunks = [Chunk(offset) for offset in range(0, rest - rest % lanes, lanes)]
        if rest % lanes:
            chunks.append(Chunk(rest - rest % lanes, first_lanes(rest % lanes, lanes)))
        return chunks

    # --- sweeps ------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Process the rows one by one; add all columns of each to accumulators in scratch memory."""
        ((reductions, stores),) = pass_roots(self.nest).values()
        *others, axis = self.nest.inner
        extent = self.nest.extents[axis]
        blocks = extent > 2 * BLOCK
        sums = 1 if blocks or others else 0  # blocks have separate sums, which are added to the totals
        self._each_tile(lambda chunks: self._clear(reductions, chunks, 0))
        with ExitStack() as loops:
            for other in others:
                loop = loops.enter_context(self.loop({other}, "0", str(self.nest.extents[other])))
                self.counters[other] = loop.counter
            if blocks:
                block = loops.enter_context(self.loop(set(), "0", str(extent), BLOCK)).counter
                ends = block.text, self._block_end(block, 1, str(extent))
            else:
                ends = "0", str(extent)
            if sums:
                self._each_tile(lambda chunks: self._clear(reductions, chunks, 1))
            with self.loop({axis}, *ends) as loop:
                self.counters[axis] = loop.counter
                self._each_tile(lambda chunks: self._sweep_tile(reductions, chunks, stores, sums))
            if sums:
                self._each_tile(lambda chunks: self._add_block(reductions, chunks))
        self._each_tile(lambda chunks: self._swept(reductions, chunks))

    def _cells(self, reductions: list[Reduction], chunks: list[Chunk], which: int) -> Iterator[tuple[Slot, str]]:
        """Iterate over the accumulators of a tile with their addresses: totals, or a block's sums."""
        for reduction, places in zip(reductions, self.plan.swept, strict=True):
            element = type_name(memory_kind(reduction.value.kind), 1)
            start = self.b.pointer(f"getelementptr i8, ptr %scratch, i64 {places[which]}")
            place = self.b.pointer(f"getelementptr {element}, ptr {start}, i64 {self.tile_start.text}")
            for chunk in chunks:
                yield (reduction, chunk), place

    def _cell(self, slot: Slot, place: str, value: Value | None = None) -> Value:
        """Read an accumulator, or write it."""
        reduction, chunk = slot
        layout = self.plan.lanes, 1, chunk.offset, None
        if value is None:
            return load_vector(self.b, reduction.value.kind, place, layout, [], None, place)
        store_vector(self.b, value, place, layout)
        return value

    def _clear(self, reductions: list[Reduction], chunks: list[Chunk], which: int) -> None:
        for slot, place in self._cells(reductions, chunks, which):
            (start,) = reduce.start(self.b, slot[0], self.plan.lanes)
            self._cell(slot, place, start)

    def _sweep_tile(self, reductions: list[Reduction], chunks: list[Chunk], stores: list[int], which: int) -> None:
        cells = list(self._cells(reductions, chunks, which))
        terms = self._point([slot for slot, _ in cells], chunks, stores)
        for (slot, place), term in zip(cells, terms, strict=True):
            (total,) = reduce.accumulate(self.b, slot[0], (self._cell(slot, place),), term)
            self._cell(slot, place, total)

    def _add_block(self, reductions: list[Reduction], chunks: list[Chunk]) -> None:
        totals, sums = (list(self._cells(reductions, chunks, which)) for which in (0, 1))
        for (slot, total), (_, block) in zip(totals, sums, strict=True):
            joined = reduce.join(self.b, slot[0], (self._cell(slot, total),), (self._cell(slot, block),))
            self._cell(slot, total, joined[0])

    def _swept(self, reductions: list[Reduction], chunks: list[Chunk]) -> None:
        for slot, place in self._cells(reductions, chunks, 0):
            self._finish(*slot, (self._cell(slot, place),))
        self._store_rest(chunks)

    # --- rows ------------------------------------------------------------------------------------

    def _row(self) -> None:
        if not self.plan.straight:
            self._passes([])
            return
        assert self.plan.axis is not None
        self.levels[-1].bound.add(self.plan.axis)
        self.tile_start = Value("0", "i64")
        self._passes(self._rest_chunks(self.nest.extents[self.plan.axis]))

    # --- passes ------------------------------------------------------------------------------------

    def _passes(self, chunks: list[Chunk]) -> None:
        """Run every pass over the inner axes, then store the values that do not vary along them."""
        self.finished_kept = set()
        self.started_kept = set()
        for reductions, stores in pass_roots(self.nest).values():
            self._pass(chunks, reductions, stores)
            self.finished_kept |= self.started_kept
        self._store_rest(chunks)

    def _store_rest(self, chunks: list[Chunk]) -> None:
        """Store the values that do not vary along the inner axes."""
        inner = set(self.nest.inner)
        rest = [number for number, store in enumerate(self.nest.stores) if not store.access.index.axes & inner]
        varying = [number for number in rest if self.plan.axis in self.nest.stores[number].access.index.axes]
        self._store_all(varying, chunks)
        self._store_all([number for number in rest if number not in varying], chunks[:1] or [Chunk(0)])

    def _pass(self, chunks: list[Chunk], reductions: list[Reduction], stores: list[int]) -> None:
        if any(self.nest.extents[axis] == 0 for axis in self.nest.inner):
            for reduction in reductions:
                state = reduce.start(self.b, reduction, 1)
                self.finished_level = len(self.levels) - 1
                for expr in self.reduced.get(id(reduction), ()):
                    value = reduce.result(self.b, reduction, state)
                    for key in [None, *chunks]:
                        self.levels[-1].cache[expr, key] = value
            return
        if self.plan.lane_mode:
            slots = [(red, chunk) for red in reductions for chunk in chunks]
            totals = self._over(list(self.nest.inner), slots, lambda: self._point(slots, chunks, stores))
            for (reduction, chunk), state in zip(slots, totals, strict=True):
                self._finish(reduction, chunk, state)
            return
        lanes_of = [Chunk(number * self.plan.lanes) for number in range(max(self._row_slots(chunks), 1))]
        slots = [(red, chunk) for red in reductions for chunk in lanes_of]
        totals = self._over(list(self.nest.inner[:-1]), slots, lambda: self._along_row(chunks, slots, stores))
        for number, reduction in enumerate(reductions):
            mine = totals[number * len(lanes_of) : (number + 1) * len(lanes_of)]
            state = mine[0]
            for other in mine[1:]:
                state = reduce.join(self.b, reduction, state, other)
            self._finish(reduction, None, reduce.fold(self.b, reduction, state))

    def _row_slots(self, chunks: list[Chunk]) -> int:
        """Return the number of parallel accumulators of a row."""
        return min(len(chunks), 4) if chunks else self.plan.unroll

    def _finish(self, reduction: Reduction, chunk: Chunk | None, state: reduce.State) -> None:
        value = reduce.result(self.b, reduction, state)
        self.finished_level = len(self.levels) - 1
        for expr in self.reduced.get(id(reduction), ()):
            self.levels[-1].cache[expr, chunk if self.plan.axis in expr.axes else None] = value

    def _over(self, axes: list[Axis], slots: list[Slot], body: Callable[[], States]) -> States:
        """Run `body` in loops over the axes; each loop accumulates the results of its inner loop."""
        if not axes:
            return body()
        axis = axes[0]
        return self._counted(
            {axis},
            "0",
            str(self.nest.extents[axis]),
            1,
            slots,
            lambda counter: self._with_counter(axis, counter, axes[1:], slots, body),
        )

    def _with_counter(
        self, axis: Axis, counter: Value, rest: list[Axis], slots: list[Slot], body: Callable[[], States]
    ) -> States:
        self.counters[axis] = counter
        return self._over(rest, slots, body)

    def _counted(
        self, axes: set[Axis], start: str, stop: str, step: int, slots: list[Slot], body: Callable[[Value], States]
    ) -> States:
        """Run a loop with accumulators. A long loop runs in blocks with separate accumulators, so that the error of a
        sum grows with the length of a block and the number of blocks, not with their product.
        """
        turns = int(stop) // step if stop.isdigit() and start.isdigit() else 0
        if turns > 2 * BLOCK and slots:
            return self._counted(
                set(),
                start,
                stop,
                step * BLOCK,
                slots,
                lambda block: self._counted(axes, block.text, self._block_end(block, step, stop), step, slots, body),
            )
        starts = [reduce.start(self.b, red, self._lanes_of(red)) for red, _ in slots]
        with self.loop(axes, start, stop, step) as loop:
            carried = [tuple(loop.carry(self.b, part) for part in state) for state in starts]
            terms = body(loop.counter)
            sums = [
                reduce.accumulate(self.b, red, state, term)
                for (red, _), state, term in zip(slots, carried, terms, strict=True)
            ]
            loop.next = [part for state in sums for part in state]
        return sums

    def _block_end(self, block: Value, step: int, stop: str) -> str:
        end = self.b.define(f"add i64 {block.text}, {step * BLOCK}", "i64")
        return self.b.call("umin", Value(end.text, "u64"), Value(stop, "u64")).text

    def _lanes_of(self, reduction: Reduction) -> int:
        return self.plan.lanes if self.plan.axis in reduction.value.axes or not self.plan.lane_mode else 1

    # --- innermost ---------------------------------------------------------------------------------

    def _term(self, reduction: Reduction, chunk: Chunk) -> reduce.State:
        b = self.b
        values = [self.value(reduction.value, chunk)]
        if reduction.position is not None:
            values.append(self.value(reduction.position, chunk))
        lanes = self._lanes_of(reduction)
        return tuple(b.splat(value, lanes) for value in values)

    def _point(self, slots: list[Slot], chunks: list[Chunk], stores: list[int]) -> States:
        terms = [self._term(reduction, chunk) for reduction, chunk in slots]
        self._store_all(stores, chunks)
        return terms

    def _store_all(self, stores: list[int], chunks: list[Chunk]) -> None:
        """Compute all values before any store, because a store may overwrite an operand."""
        pairs = [(number, chunk) for number in stores for chunk in chunks]
        for number, chunk in pairs:
            self.value(self.nest.stores[number].value, chunk)
        for number, chunk in pairs:
            self._store(number, chunk)

    def _along_row(self, chunks: list[Chunk], slots: list[Slot], stores: list[int]) -> States:
        """Run along the vector axis of a row; `chunks` holds the whole row if there is no loop."""
        if chunks:
            return self._straight(None, chunks, slots, stores)
        plan = self.plan
        assert plan.axis is not None
        full, rest = divmod(self.nest.extents[plan.axis], plan.tile)
        states: States | None = None
        if full:
            whole = [chunk for _, chunk in slots] or [Chunk(n * plan.lanes) for n in range(plan.unroll)]
            whole = list(dict.fromkeys(whole))
            states = self._counted(
                {plan.axis},
                "0",
                str(full * plan.tile),
                plan.tile,
                slots,
                lambda counter: self._tile_of_row(counter, whole, slots, stores),
            )
        if rest:
            saved = self.levels
            self.levels = [level.copied() for level in saved]
            self.levels[-1].bound.add(plan.axis)
            self.tile_start = Value(str(full * plan.tile), "i64")
            states = self._straight(states, self._rest_chunks(rest), slots, stores)
            self.levels = saved
        assert states is not None
        return states

    def _tile_of_row(self, counter: Value, whole: list[Chunk], slots: list[Slot], stores: list[int]) -> States:
        self.tile_start = counter
        return self._point(slots, whole, stores)

    def _straight(self, states: States | None, chunks: list[Chunk], slots: list[Slot], stores: list[int]) -> States:
        """Add chunks to the accumulators in turn, without a loop."""
        b = self.b
        totals: list[reduce.State | None] = list(states) if states is not None else [None] * len(slots)
        columns = len(dict.fromkeys(chunk for _, chunk in slots))
        for number, chunk in enumerate(chunks):
            for slot, (reduction, _) in enumerate(slots):
                if slot % columns == number % columns:
                    value = reduce.term(b, reduction, self._term(reduction, chunk), chunk.mask)
                    old = totals[slot]
                    totals[slot] = value if old is None else reduce.accumulate(b, reduction, old, value)
            self._store_all(stores, [chunk])
        return [
            reduce.start(b, slots[slot][0], self._lanes_of(slots[slot][0])) if state is None else state
            for slot, state in enumerate(totals)
        ]


__all__ = ["Builder", "NestFunction", "emit_nest"]
