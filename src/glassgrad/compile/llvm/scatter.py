"""Adding or writing at computed places: the backward of indexing, `x[i] = v`, embedding gradients.

Values are visited in the order NumPy visits them, so that places named twice come out as there, and bit for bit the
same for any number of threads: a thread owns a range of the first indexed axis and skips all places outside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.ir import BITS, LLVM_TYPE, Builder, Function, LoopNest, Module, Value, kind_of
from glassgrad.compile.llvm.memory_ops import first_lanes, load_vector, memory_kind, store_vector
from glassgrad.compile.llvm.scalar import ELEMENTWISE, emit_elementwise
from glassgrad.compile.llvm.table import array_layout
from glassgrad.compile.plan.indices import row_strides
from glassgrad.ops.places import IndexArray, Slice


@dataclass(frozen=True)
class Route:
    """Where the index along one axis of the result comes from.

    Either dimension `dim` of the values, as ``start + step * i``, or index array number `array`, whose dimensions are
    the values' dimensions `dims` (None where it is broadcast). Neither: the constant `start`.
    """

    extent: int
    dim: int | None = None
    start: int = 0
    step: int = 1
    array: int | None = None
    dims: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Scatter:
    """One scatter: `routes` of the result's axes, shapes, and what is done at each place.

    `base` tells whether the result starts as a copy of an operand rather than as zeros.
    """

    routes: tuple[Route, ...]
    shape: tuple[int, ...]
    values: tuple[int, ...]
    kind: str
    index_kinds: tuple[str, ...]
    index_shapes: tuple[tuple[int, ...], ...]
    adds: bool
    base: bool


def scatter_of(instr: Instr) -> Scatter | None:
    """Describe a put_add, put_along_add or at_set instruction; None when it has another form."""
    out = instr.output
    kind = kind_of(out.dtype)
    if kind is None:
        return None
    if instr.op == "put_along_add":
        return _along(instr, kind)
    skip = 2 if instr.op == "at_set" else 1
    value, arrays = instr.inputs[skip - 1], [operand for operand in instr.inputs[skip:] if isinstance(operand, Var)]
    if not isinstance(value, Var) or not arrays:
        return None
    routes, shape = _routes(instr, arrays, out.shape)
    if value.shape != shape:
        return None
    return Scatter(
        routes,
        out.shape,
        value.shape,
        kind,
        tuple(kind_of(array.dtype) or "" for array in arrays),
        tuple(array.shape for array in arrays),
        instr.op == "put_add",
        instr.op == "at_set",
    )


def _along(instr: Instr, kind: str) -> Scatter:
    value, index = instr.inputs
    assert isinstance(value, Var)
    assert isinstance(index, Var)
    axis, out = instr.params["axis"], instr.output
    dims = tuple(None if extent == 1 else place for place, extent in enumerate(index.shape))
    routes = tuple(
        Route(extent, array=0, dims=dims) if place == axis else Route(extent, dim=place)
        for place, extent in enumerate(out.shape)
    )
    return Scatter(routes, out.shape, value.shape, kind, (kind_of(index.dtype) or "",), (index.shape,), True, False)


def _routes(instr: Instr, arrays: Sequence[Var], shape: tuple[int, ...]) -> tuple[tuple[Route, ...], tuple[int, ...]]:
    entries, position, rank = array_layout(instr, shape)
    routes: list[Route] = []
    plain: list[int] = []  # extents of the values' dimensions that no array gives
    broadcast = [max(extents) for extents in zip(*(_padded(array.shape, rank) for array in arrays), strict=True)]
    supply = iter(enumerate(arrays))
    for part in entries:
        if part is None:
            plain.append(1)
            continue
        extent = shape[len(routes)]
        if isinstance(part, IndexArray):
            number, array = next(supply)
            lead = rank - array.ndim
            dims = tuple(None if size == 1 else position + lead + at for at, size in enumerate(array.shape))
            routes.append(Route(extent, array=number, dims=dims))
        elif isinstance(part, int):
            routes.append(Route(extent, start=part % extent))
        else:
            assert type(part) is Slice
            first, last, step = slice(*part).indices(extent)
            behind = rank if len(plain) >= position else 0
            routes.append(Route(extent, dim=len(plain) + behind, start=first, step=step))
            plain.append(len(range(first, last, step)))
    values = (*plain[:position], *broadcast, *plain[position:])
    return tuple(routes), values


def _padded(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return (1,) * (rank - len(shape)) + shape


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
        """Return the vector length along the values' last dimension, 1 where its places do not lie side by side."""
        scatter = self.scatter
        last = len(scatter.values) - 1
        if last < 0 or any(last in route.dims for route in scatter.routes):
            return 1
        route = scatter.routes[-1]
        fits = route.dim == last and route.step == 1 and scatter.values[-1] > 1
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
            b.raw(f"call void @llvm.memcpy.p0.p0.i64(ptr {place}, ptr {source}, i64 {length}, i1 false)")
        else:
            declarations["memset"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
            b.raw(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {length}, i1 false)")

    def _size(self) -> int:
        return max(BITS[self.scatter.kind] // 8, 1)

    def _dimension(self, dim: int) -> None:
        """Loop over one dimension of the values; where all arrays are known, go on only for owned places."""
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
        """Return the dimension from which on the owned axis's index is known."""
        route = self.scatter.routes[0]
        if route.array is not None:
            return max((place for place in route.dims if place is not None), default=-1) + 1
        return 0 if route.dim is None else route.dim + 1

    def _if_owned(self) -> _Guard:
        index = self._index(self.scatter.routes[0])
        b = self.b
        shifted = b.define(f"sub i64 {index.text}, %lo", "i64").text
        count = b.define("sub i64 %hi, %lo", "i64").text
        return _Guard(self, b.define(f"icmp ult i64 {shifted}, {count}", "b1").text)

    def _index(self, route: Route) -> Value:
        b = self.b
        if route.array is None:
            if route.dim is None:
                return b.const(route.start, "i64")
            counter = self.counters.get(route.dim, b.const(0, "i64"))
            scaled = b.binary("mul", counter, b.const(route.step, "i64"))
            return b.binary("add", scaled, b.const(route.start, "i64"))
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
        """Return where to go on for the elements that fill no vector, and with how many lanes.

        A row that was just written is often written again. The processor hands a whole vector from a store to the next
        load in five cycles and makes a masked one wait for memory, so that two shorter vectors are quicker than it.
        """
        sizes = [1 << bit for bit in reversed(range(count.bit_length())) if count >> bit & 1]
        if len(sizes) > 2:
            return [(start, self.lanes, first_lanes(count, self.lanes))]
        return [(start + sum(sizes[:number]), lanes, None) for number, lanes in enumerate(sizes)]

    def _move(self, lanes: int, mask: Value | None) -> None:
        """Add or write one value, or one vector of them."""
        b, scatter = self.b, self.scatter
        source = b.const(0, "i64")
        for dim, stride in enumerate(row_strides(scatter.values)):
            if dim in self.counters and scatter.values[dim] > 1:
                source = b.binary("add", source, b.binary("mul", self.counters[dim], b.const(stride, "i64")))
        target = b.const(0, "i64")
        for route, stride in zip(scatter.routes, row_strides(scatter.shape), strict=True):
            target = b.binary("add", target, b.binary("mul", self._index(route), b.const(stride, "i64")))
        element = LLVM_TYPE[memory_kind(scatter.kind)]
        read = b.pointer(f"getelementptr {element}, ptr %values, i64 {source.text}")
        write = b.pointer(f"getelementptr {element}, ptr %out, i64 {target.text}")
        layout = (max(lanes, 1), 1, 0, mask)
        value = load_vector(b, scatter.kind, read, layout, [], None, read)
        if scatter.adds:
            old = load_vector(b, scatter.kind, write, layout, [], None, write)
            value = emit_elementwise(b, "add", [old, value], None)
        store_vector(b, value, write, layout)


class _Guard:
    """Code that runs only if a condition holds, inside a loop."""

    def __init__(self, writer: ScatterWriter, condition: str) -> None:
        self.writer = writer
        self.condition = condition
        self.after = writer.function.fresh("skip")

    def __enter__(self) -> None:
        b = self.writer.b
        then = self.writer.function.fresh("own")
        b.raw(f"br i1 {self.condition}, label %{then}, label %{self.after}")
        b.start(then)

    def __exit__(self, *_error: object) -> None:
        b = self.writer.b
        b.raw(f"br label %{self.after}")
        b.start(self.after)
