"""Scatters, which add or write at indices: the backward of indexing, `x[i] = v`, embedding gradients, col2im.

Values are visited in NumPy's order, so repeated indices have the same result as there, bit for bit, for any number of
threads: a thread owns a range of the first indexed axis and skips all indices outside it.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, ExitStack

from glassgrad.compile.llvm.loops.memory_ops import first_lanes, load_vector, memory_kind, store_vector
from glassgrad.compile.llvm.loops.routes import Route
from glassgrad.compile.llvm.loops.scalar import ELEMENTWISE, emit_elementwise
from glassgrad.compile.llvm.loops.scatter_form import Scatter
from glassgrad.compile.llvm.module.ir import BITS, LLVM_TYPE, Builder, Function, LoopNest, Module, Value
from glassgrad.compile.plan.indexing.indices import row_strides


class ScatterWriter:
    """Writes a scatter as a function (result, base, values, index arrays ..., lo, hi)."""

    def __init__(self, module: Module, scatter: Scatter) -> None:
        self.module = module
        self.scatter = scatter
        self.function = Function(module)
        self.code = LoopNest(self.function)
        self.counters: dict[int, Value] = {}
        self.lanes = self._vector_lanes()

    @property
    def b(self) -> Builder:
        return self.code.current

    def _vector_lanes(self) -> int:
        """Return the vector length along the values' last dimension; 1 if its targets are not contiguous."""
        scatter = self.scatter
        last = len(scatter.values) - 1
        by_last = [route for route in scatter.routes if last in route.read()]
        # A vector whose targets are in two shares would have to be split.
        if not by_last or by_last != list(scatter.routes[1:][-1:]) or scatter.leaves(by_last[0]):
            return 1
        fits = (last, 1) in by_last[0].terms and scatter.values[-1] > 1
        return self.module.vector_bytes // self._size() if fits else 1

    def definition(self, name: str) -> str:
        """Return the whole function."""
        self._fill()
        if math.prod(self.scatter.values):
            self._dimension(0)
        self.b.raw("ret void")
        arrays = "".join(f", ptr %i{number}" for number in range(len(self.scatter.index_kinds)))
        head = f"define internal void @{name}(ptr %out, ptr %base, ptr %values{arrays}, i64 %lo, i64 %hi) #0"
        return f"{head} {{\nentry:\n" + "\n".join(self.b.lines) + "\n}\n"

    def _fill(self) -> None:
        """Set the owned part of the result to zeros or to the base."""
        b, size = self.b, self._size()
        row = math.prod(self.scatter.shape[1:]) * size
        start = b.define(f"mul i64 %lo, {row}", "i64").text
        count = b.define("sub i64 %hi, %lo", "i64").text
        length = b.define(f"mul i64 {count}, {row}", "i64").text
        place = b.pointer(f"getelementptr i8, ptr %out, i64 {start}")
        declarations = self.module.declarations
        if self.scatter.base:
            declarations["memcpy"] = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
            source = b.pointer(f"getelementptr i8, ptr %base, i64 {start}")
            # State that is updated in place needs no copy; `order.place_updates` decides that.
            b.raw("%apart = icmp ne ptr %out, %base")
            b.raw("br i1 %apart, label %copy, label %there")
            b.start("copy")
            b.raw(f"call void @llvm.memcpy.p0.p0.i64(ptr {place}, ptr {source}, i64 {length}, i1 false)")
            b.raw("br label %there")
            b.start("there")
        else:
            declarations["memset"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
            b.raw(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {length}, i1 false)")

    def _size(self) -> int:
        return max(BITS[self.scatter.kind] // 8, 1)

    def _dimension(self, dim: int) -> None:
        """Loop over one dimension of the values; once the owned axis's index is known, continue only if it is owned."""
        values = self.scatter.values
        last = dim == len(values) - 1
        if dim == self._known_at():
            with self._if_owned():
                self._inside(dim, last)
            return
        self._inside(dim, last)

    def _inside(self, dim: int, last: bool) -> None:
        values = self.scatter.values
        if dim == len(values):
            self._move(0, None)
            return
        if last and self.lanes > 1:
            self._vectors(values[dim])
            return
        with self.code.loop("0", str(values[dim]), 1) as loop:
            self.counters[dim] = loop.counter
            self._dimension(dim + 1)

    def _known_at(self) -> int:
        """Return the first dimension at which the owned axis's index is known."""
        return max(self.scatter.routes[0].read(), default=-1) + 1

    def _if_owned(self) -> AbstractContextManager[None]:
        index = self._index(self.scatter.routes[0])
        b = self.b
        shifted = b.define(f"sub i64 {index.text}, %lo", "i64").text
        count = b.define("sub i64 %hi, %lo", "i64").text
        return self.code.when(b.define(f"icmp ult i64 {shifted}, {count}", "b1").text)

    def _index(self, route: Route) -> Value:
        b = self.b
        if route.array is None:
            index = b.const(route.start, "i64")
            for dim, step in route.terms:
                counter = self.counters.get(dim, b.const(0, "i64"))
                index = b.binary("add", b.binary("mul", counter, b.const(step, "i64")), index)
            return index
        shape = self.scatter.index_shapes[route.array]
        offset = b.const(0, "i64")
        for place, stride in zip(route.dims, row_strides(shape), strict=True):
            if place is not None:
                offset = b.binary("add", offset, b.binary("mul", self.counters[place], b.const(stride, "i64")))
        kind = self.scatter.index_kinds[route.array]
        pointer = b.pointer(f"getelementptr {LLVM_TYPE[kind]}, ptr %i{route.array}, i64 {offset.text}")
        value = b.cast(b.define(f"load {LLVM_TYPE[kind]}, ptr {pointer}", kind), "i64")
        return ELEMENTWISE["wrap"][1](b, [value], route.extent)

    def _vectors(self, extent: int) -> None:
        dim = len(self.scatter.values) - 1
        full = extent - extent % self.lanes
        if full:
            with self.code.loop("0", str(full), self.lanes) as loop:
                self.counters[dim] = loop.counter
                self._move(self.lanes, None)
        for start, lanes, mask in self._rest(full, extent - full):
            self.counters[dim] = Value(str(start), "i64")
            self._move(lanes, mask)
            del self.counters[dim]

    def _rest(self, start: int, count: int) -> list[tuple[int, int, Value | None]]:
        """Return the starts, lanes and masks for the remaining elements, which do not fill a vector.

        A row that was just written is often written again. The processor forwards a full vector from a store to the
        next load in five cycles but makes a masked one wait for memory, so two shorter vectors are faster.
        """
        sizes = [1 << bit for bit in reversed(range(count.bit_length())) if count >> bit & 1]
        if len(sizes) > 2:
            return [(start, self.lanes, first_lanes(count, self.lanes))]
        return [(start + sum(sizes[:number]), lanes, None) for number, lanes in enumerate(sizes)]

    def _move(self, lanes: int, mask: Value | None) -> None:
        """Add or write one value, or one vector of them."""
        scatter = self.scatter
        indices = [self._index(route) for route in scatter.routes]
        with ExitStack() as inside:
            for route, index in zip(scatter.routes, indices, strict=True):
                if scatter.leaves(route):
                    within = self.b.define(f"icmp ult i64 {index.text}, {route.extent}", "b1")
                    inside.enter_context(self.code.when(within.text))
            self._combine(indices, lanes, mask)

    def _combine(self, indices: list[Value], lanes: int, mask: Value | None) -> None:
        b, scatter = self.b, self.scatter
        source, target = b.const(0, "i64"), b.const(0, "i64")
        for dim, stride in enumerate(row_strides(scatter.values)):
            if dim in self.counters and scatter.values[dim] > 1:
                source = b.binary("add", source, b.binary("mul", self.counters[dim], b.const(stride, "i64")))
        for index, stride in zip(indices, row_strides(scatter.shape), strict=True):
            target = b.binary("add", target, b.binary("mul", index, b.const(stride, "i64")))
        element = LLVM_TYPE[memory_kind(scatter.kind)]
        read = b.pointer(f"getelementptr {element}, ptr %values, i64 {source.text}")
        write = b.pointer(f"getelementptr {element}, ptr %out, i64 {target.text}")
        layout = (max(lanes, 1), 1, 0, mask)
        value = load_vector(b, scatter.kind, read, layout, [], None, read)
        if scatter.how:
            old = load_vector(b, scatter.kind, write, layout, [], None, write)
            value = emit_elementwise(b, scatter.how, [old, value], None)
        store_vector(b, value, write, layout)
