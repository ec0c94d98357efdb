"""A loop nest as machine code: one function that runs a range of its units of work.

The position of the contiguous axis determines the form of a nest. *Lanes*: it is an outer axis; every lane of the
vector is a separate problem (elementwise chains, batch norm over rows, sums over axis 0). *Rows*: it is an inner axis;
the vector runs along the reduction and is folded at the end of each pass (softmax, layer norm).

The unit of work is a tile of lanes, or a row; callers pass the range [lo, hi) of units. A value is computed once, in
the outermost loop that knows all its counters, and cached there. Expensive values that a later pass over the inner axes
needs again are kept in scratch memory; others are recomputed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from glassgrad.compile.ir.graph import Var
from glassgrad.compile.llvm.loops.memory_ops import load_vector, memory_kind, prefetch, store_vector
from glassgrad.compile.llvm.loops.nest_layout import NestPlan
from glassgrad.compile.llvm.loops.scalar import Parts, divide_by_parts, divisor_parts, emit_elementwise
from glassgrad.compile.llvm.module.ir import Builder, Function, LoopNest, Module, Value, type_name
from glassgrad.compile.plan.indexing.indices import Axis, Index
from glassgrad.compile.plan.nests import Access, Expr, Nest

_FAR_BYTES = 1 << 18  # arrays of at least this size are prefetched ...
_AHEAD = 2048  # ... this many bytes ahead
BLOCK = 128  # terms that one accumulator sums before it is added to the total


@dataclass(eq=False)
class Chunk:
    """One vector's worth of the vector axis: its offset from the tile's start, and which lanes exist."""

    offset: int
    mask: Value | None = None


@dataclass
class _Level:
    """The values known inside one loop."""

    bound: set[Axis]
    cache: dict[Any, Any] = field(default_factory=dict)

    def copied(self) -> _Level:
        """Return an independent copy."""
        return _Level(set(self.bound), dict(self.cache))


class NestEmitter:
    """Emits one nest as a function; see the module docstring."""

    def __init__(self, module: Module, nest: Nest, plan: NestPlan) -> None:
        self.module = module
        self.nest = nest
        self.plan = plan
        self.function = Function(module)
        self.code = LoopNest(self.function)
        self.levels = [_Level(set())]
        self.counters: dict[Axis, Value] = {}
        self.roots: list[Var] = list(dict.fromkeys(access.root for access, _ in nest.accesses()))
        self.finished_kept: set[Expr] = set()
        self.started_kept: set[Expr] = set()
        self.finished_level = 0  # the level at which the results of reductions are known
        self.tile_start: Value = Value("0", "i64")

    # --- scopes ------------------------------------------------------------------------------------

    @property
    def b(self) -> Builder:
        return self.code.current

    @contextmanager
    def loop(self, axes: set[Axis], start: str, stop: str, step: int | str = 1) -> Iterator[Any]:
        """Open a loop that binds axes."""
        with self.code.loop(start, stop, step) as loop:
            self.levels.append(_Level(self.levels[-1].bound | axes))
            yield loop
            self.levels.pop()

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Run code only if the condition holds; values computed in it are not reused after it."""
        then, after = self.function.fresh("then"), self.function.fresh("endif")
        self.b.raw(f"br i1 {condition}, label %{then}, label %{after}")
        self.b.start(then)
        saved = self.levels
        # A copy: values from outside may be used inside, but not vice versa.
        self.levels = [level.copied() for level in saved]
        yield
        self.levels = saved
        self.b.raw(f"br label %{after}")
        self.b.start(after)

    # --- values ------------------------------------------------------------------------------------

    def _place(self, axes: frozenset[Axis]) -> int:
        """Return the outermost level that knows all of the axes."""
        for number, level in enumerate(self.levels):
            if axes <= level.bound:
                return number
        raise AssertionError(f"axes {set(axes)} are not bound")

    def _level_of(self, expr: Expr) -> int:
        """Return the outermost level at which an expression can be computed.

        A reduction over a value that varies along no outer axis is still computed inside the outer loops, so values
        that depend on it cannot move out of them, whatever their axes.
        """
        place = self._place(expr.axes)
        return max(place, self.finished_level) if expr.stage else place

    def value(self, expr: Expr, chunk: Chunk) -> Value:
        """Return an expression's value; a vector if it varies along the vector axis."""
        varies = self.plan.axis in expr.axes
        key = (expr, chunk if varies else None)
        for level in self.levels:
            if key in level.cache:
                cached: Value = level.cache[key]
                return cached
        number = self._level_of(expr)
        b = self.code.stack[number]
        if expr in self.finished_kept:
            result = self._reload(expr, chunk, b)
        else:
            result = self._compute(expr, chunk if varies else None, chunk, b)
            if expr in self.plan.kept:
                self._keep(expr, result, chunk, b)
        self.levels[number].cache[key] = result
        return result

    def _compute(self, expr: Expr, own: Chunk | None, chunk: Chunk, b: Builder) -> Value:
        match expr.op:
            case "const":
                return b.const(expr.data, expr.kind)
            case "counter":
                return self._counter(expr.data, own, b)
            case "load":
                return self._load(expr, own, chunk, b)
            case "reduced":
                raise AssertionError("a reduced value is used before its pass")
        if expr.op == "within" and own is not None:
            uniform = self._uniform_window(expr, own, b)
            if uniform is not None:
                return uniform
        args = [self.value(arg, chunk) for arg in expr.args]
        if expr.op == "divide" and own is not None and args[1].lanes == 1 and expr.kind in {"f32", "f64"}:
            return divide_by_parts(b, args[0], self._divisor(expr.args[1], args[1]))
        return emit_elementwise(b, expr.op, args, expr.data)

    def _divisor(self, expr: Expr, value: Value) -> Parts:
        """Return the parts of a divisor that all lanes share, computed at the level where the divisor is known."""
        key = ("divisor", expr)
        found = self._find(key)
        if found is None:
            number = self._level_of(expr)
            found = self.levels[number].cache[key] = divisor_parts(self.code.stack[number], value)
        parts: Parts = found
        return parts

    def _uniform_window(self, expr: Expr, chunk: Chunk, b: Builder) -> Value | None:
        """If a window's ends fall between vectors, it holds for all lanes or none, so one comparison is enough."""
        index: Index = expr.args[0].data
        lanes, axis = self.plan.lanes, self.plan.axis
        if expr.args[0].op != "counter" or lanes == 1 or dict(index.terms).get(axis or 0) != 1:
            return None
        others = tuple((other, stride) for other, stride in index.terms if other != axis)
        ends = (*expr.data, *(stride + index.offset for _, stride in others))
        if any((end - index.offset) % lanes for end in ends):
            return None
        rest = self._counter(Index(index.offset + chunk.offset, others), None, b)
        return emit_elementwise(b, "within", [b.binary("add", self.tile_start, rest)], expr.data)

    def _counter(self, index: Index, chunk: Chunk | None, b: Builder) -> Value:
        total = b.const(index.offset, "i64")
        for axis, stride in index.terms:
            term = self._position(chunk, b) if axis == self.plan.axis and chunk is not None else self.counters[axis]
            scaled = term if stride == 1 else b.binary("mul", term, b.like(stride, term))
            total = scaled if total.text == "0" else b.binary("add", scaled, total)
        return total

    def _position(self, chunk: Chunk, b: Builder) -> Value:
        """Return the vector axis's counter in every lane."""
        lanes = self.plan.lanes
        start = b.binary("add", self.tile_start, b.const(chunk.offset, "i64")) if chunk.offset else self.tile_start
        return b.binary("add", start, b.lane_numbers(lanes)) if lanes > 1 else start

    # --- scratch -----------------------------------------------------------------------------------

    def _scratch_place(self, expr: Expr, chunk: Chunk, b: Builder) -> str:
        """Return the address in scratch memory of a value at this point of the inner axes."""
        position = b.const(0, "i64")
        varies = self.plan.axis in expr.axes
        for axis in self.nest.inner:
            if axis not in expr.axes:
                continue
            counter = self.tile_start if axis == self.plan.axis else self.counters[axis]
            position = b.binary("mul", position, b.const(self.nest.extents[axis], "i64"))
            position = b.binary("add", position, counter)
        if self.plan.lane_mode and varies:
            position = b.binary("mul", position, b.const(self.plan.tile, "i64"))
        if chunk.offset and varies:
            position = b.binary("add", position, b.const(chunk.offset, "i64"))
        start = b.pointer(f"getelementptr i8, ptr %scratch, i64 {self.plan.kept[expr]}")
        return b.pointer(f"getelementptr {type_name(memory_kind(expr.kind), 1)}, ptr {start}, i64 {position.text}")

    def _keep(self, expr: Expr, value: Value, chunk: Chunk, b: Builder) -> None:
        lanes = self.plan.lanes if self.plan.axis in expr.axes else 1
        store_vector(b, value, self._scratch_place(expr, chunk, b), (lanes, 1, 0, None))
        self.started_kept.add(expr)

    def _reload(self, expr: Expr, chunk: Chunk, b: Builder) -> Value:
        lanes = self.plan.lanes if self.plan.axis in expr.axes else 1
        return load_vector(b, expr.kind, self._scratch_place(expr, chunk, b), (lanes, 1, 0, None), [], None, "")

    # --- memory ------------------------------------------------------------------------------------

    def _pointer(self, access: Access, terms: list[tuple[Axis, int]], offset: int, kind: str) -> str:
        """Return the address of `root[offset + terms]`, each counter added in the loop that knows it."""
        element = "i8" if kind == "b1" else type_name(kind, 1)
        name = f"%a{self.roots.index(access.root)}"
        key: Any = ("address", access.root, offset)
        if offset:
            name = self._cached_pointer(key, frozenset(), f"getelementptr {element}, ptr {name}, i64 {offset}")
        ordered = sorted(terms, key=lambda term: self._place(frozenset([term[0]])))
        bound: frozenset[Axis] = frozenset()
        for axis, stride in ordered:
            bound |= {axis}
            key = (*key, axis, stride)
            counter = self.tile_start if axis == self.plan.axis else self.counters[axis]
            name = self._step(key, bound, name, (element, counter.text, stride))
        return name

    def _step(self, key: Any, bound: frozenset[Axis], name: str, move: tuple[str, str, int]) -> str:
        element, counter, stride = move
        number = self._place(bound)
        cached = self._find(key)
        if cached is not None:
            return str(cached)
        b = self.code.stack[number]
        if stride != 1:
            counter = b.define(f"mul i64 {counter}, {stride}", "i64").text
        return self._cached_pointer(key, bound, f"getelementptr {element}, ptr {name}, i64 {counter}")

    def _find(self, key: Any) -> Any:
        return next((level.cache[key] for level in self.levels if key in level.cache), None)

    def _cached_pointer(self, key: Any, bound: frozenset[Axis], text: str) -> str:
        cached = self._find(key)
        if cached is None:
            number = self._place(bound)
            cached = self.levels[number].cache[key] = self.code.stack[number].pointer(text)
        return str(cached)

    def _split_access(self, access: Access) -> tuple[list[tuple[Axis, int]], int]:
        """Return the terms and the stride along the vector axis; a stride other than 0 or 1 keeps its term."""
        strides = dict(access.index.terms)
        return list(access.index.terms), strides.get(self.plan.axis, 0) if self.plan.axis is not None else 0

    def _load(self, expr: Expr, own: Chunk | None, chunk: Chunk, b: Builder) -> Value:
        access: Access = expr.data
        terms, stride = self._split_access(access)
        pointer = self._pointer(access, terms, access.index.offset, expr.kind)
        mask = None if access.mask is None else self.value(access.mask, chunk)
        computed = [(self.value(part, chunk), step) for part, step in access.computed]
        if own is not None and stride == 1 and not computed:
            self._prefetch(b, access, pointer, own, writes=False)
        return load_vector(b, expr.kind, pointer, self._lane_layout(own, stride), computed, mask, self._root(access))

    def _prefetch(self, b: Builder, access: Access, pointer: str, chunk: Chunk, *, writes: bool) -> None:
        """Prefetch the data of later iterations, if the array is too large for a cache.

        Hardware prefetchers follow steps within a page at best; a loop with much arithmetic between two lines waits for
        each line.
        """
        if access.root.nbytes < _FAR_BYTES:
            return
        ahead = chunk.offset * access.root.dtype.itemsize + _AHEAD
        prefetch(b, b.pointer(f"getelementptr i8, ptr {pointer}, i64 {ahead}"), writes=writes)

    def _lane_layout(self, chunk: Chunk | None, stride: int) -> tuple[int, int, int, Value | None]:
        """Return (lanes, stride, offset of the chunk, lanes that exist)."""
        if chunk is None:
            return 1, 0, 0, None
        return self.plan.lanes, stride, chunk.offset, chunk.mask

    def _root(self, access: Access) -> str:
        return f"%a{self.roots.index(access.root)}"

    def _store(self, number: int, chunk: Chunk) -> None:
        store = self.nest.stores[number]
        terms, stride = self._split_access(store.access)
        value = self.value(store.value, chunk)
        kind = store.value.kind
        pointer = self._pointer(store.access, terms, store.access.index.offset, kind)
        own = chunk if stride else None
        if own is not None and stride == 1:
            self._prefetch(self.b, store.access, pointer, own, writes=True)
        store_vector(self.b, value, pointer, self._lane_layout(own, stride))
