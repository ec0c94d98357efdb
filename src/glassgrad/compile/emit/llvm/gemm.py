"""Matrix products of our own: C = A B by tiles held in vector registers.

The scheme is the usual one (Goto and van de Geijn 2008): B is cut into panels as wide as two or three vectors; a panel
of a few hundred rows is packed into contiguous memory, where it stays in the first-level cache; the rows of A pass by
it, `rows` of them at a time, every product accumulating in registers. A is read where it lies, in either order. Shapes
and strides are constants in the code, so that addresses cost nothing.

A large C lies far away. It is fetched while the products of a tile are summed, and panels are longer, so that C is not
read and written again for every panel, though B then comes from the second-level cache: a tenth of the time of a step
whose products have a thousand rows, columns and terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from glassgrad.compile.emit.llvm.ir import BITS, LLVM_TYPE, Builder, Function, LoopNest, Module, Value, type_name
from glassgrad.compile.emit.llvm.memory_ops import load_vector, prefetch, store_vector

# Rows of a panel: what fits the first-level cache, and what spares a large C.
_DEPTH, _LONG_DEPTH = 128, 1024


@dataclass(frozen=True)
class TileShape:
    """How many rows and vectors of C are held in registers, and how many terms a packed panel has."""

    rows: int
    vectors: int
    depth: int


def tile_shape(columns: int, lanes: int, *, far: bool = False) -> TileShape:
    """Return the tile for 32 registers: 27 or 28 of them hold sums, the rest a row of B and an element of A.

    `far` says that C is too large for the caches.
    """
    depth = _LONG_DEPTH if far else _DEPTH
    return TileShape(14, 2, depth) if columns <= 2 * lanes else TileShape(9, 3, depth)


@dataclass(frozen=True)
class Gemm:
    """A product with everything constant but the addresses and the range of rows or columns.

    Strides are in elements; one of each pair is 1. `rows` and `columns` are the sizes that shares have. `fetch` asks
    for a tile of C before its sums are ready.
    """

    kind: str
    k: int
    a_strides: tuple[int, int]
    b_strides: tuple[int, int]
    c_stride: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    lanes: int
    shape: TileShape
    pack: bool
    pack_a: bool = False
    accumulate: bool = False
    fetch: bool = False

    @property
    def width(self) -> int:
        return self.lanes * self.shape.vectors

    @property
    def blocks(self) -> tuple[int, int]:
        """Number of blocks of terms, and terms in each but the last."""
        count = -(-self.k // self.shape.depth)
        depth = -(-self.k // count)
        return count, -(-depth // 8) * 8 if count > 1 else self.k

    @property
    def panel(self) -> int:
        """Elements a packed panel of B takes."""
        return (self.blocks[1] + self.lanes) * self.width if self.pack else 0

    @property
    def scratch(self) -> int:
        """Bytes that packed parts of B and A take."""
        left = max(self.rows) * self.blocks[1] + 4 * self.lanes if self.pack_a else 0
        return (self.panel + left) * BITS[self.kind] // 8


@dataclass(frozen=True)
class Micro:
    """One tile's code: its size, strides, whether it adds to C, how many columns of it exist, whether C is fetched."""

    kind: str
    rows: int
    vectors: int
    lanes: int
    columns: int
    a_strides: tuple[int, int]
    b_stride: int
    c_stride: int
    adds: bool
    fetch: bool = False


def best_rows(sizes: Sequence[int], most: int) -> int:
    """Return the tile height that wastes least: few tiles, and no thin one at the end."""

    def cost(rows: int) -> float:
        total = 0.0
        for size in sizes:
            full, rest = divmod(size, rows)
            # A tile costs its rows, a part that does not depend on them, and more if it is too thin to hide latency.
            total += full * (rows + 0.7) + (max(rest, 4) + 0.7 if rest else 0)
        return total

    return min(range(most, 0, -1), key=cost)


def _gep(b: Builder, kind: str, base: str, offset: str | int) -> str:
    if str(offset) == "0":
        return base
    return b.pointer(f"getelementptr {LLVM_TYPE[kind]}, ptr {base}, i64 {offset}")


def _times(b: Builder, value: str, factor: int) -> str:
    if factor == 1 or value == "0":
        return value
    return b.define(f"mul i64 {value}, {factor}", "i64").text


def _mask(lanes: int, count: int) -> Value | None:
    if count >= lanes:
        return None
    bits = ", ".join(f"i1 {'true' if lane < count else 'false'}" for lane in range(lanes))
    return Value(f"<{bits}>", "b1", lanes)


def micro_text(module: Module, micro: Micro, name: str) -> str:
    """Return the function (a, b, c, k) that computes one tile."""
    code = LoopNest(Function(module))
    masks = [_mask(micro.lanes, micro.columns - number * micro.lanes) for number in range(micro.vectors)]
    outer = code.current
    zero = outer.const(0, micro.kind, micro.lanes)
    cells = [(row, number) for row in range(micro.rows) for number in range(micro.vectors)]
    if micro.fetch:
        _fetch_target(outer, micro)
    with code.loop("0", "%k", 1) as loop:
        b = code.current
        sums = [loop.carry(b, zero) for _ in cells]
        right = _right_vectors(b, micro, loop.counter.text, masks)
        left = _times(b, loop.counter.text, micro.a_strides[1])
        base = _gep(b, micro.kind, "%a", left)
        following = []
        for row in range(micro.rows):
            place = _gep(b, micro.kind, base, row * micro.a_strides[0])
            scalar = b.define(f"load {LLVM_TYPE[micro.kind]}, ptr {place}", micro.kind)
            spread = b.splat(scalar, micro.lanes)
            mine = sums[row * micro.vectors : (row + 1) * micro.vectors]
            following += [b.fma(spread, side, total) for side, total in zip(right, mine, strict=True)]
        loop.next = following
    for (row, number), total in zip(cells, following, strict=True):
        _finish(outer, micro, (row, number), total, masks[number])
    outer.raw("ret void")
    head = f"define internal void @{name}(ptr %a, ptr %b, ptr %c, i64 %k) noinline #0"
    return f"{head} {{\nentry:\n" + "\n".join(outer.lines) + "\n}\n"


def _fetch_target(b: Builder, micro: Micro) -> None:
    for row in range(micro.rows):
        for column in range(0, micro.columns, micro.lanes):
            place = _gep(b, micro.kind, "%c", row * micro.c_stride + column)
            prefetch(b, place, writes=True)


def _right_vectors(b: Builder, micro: Micro, counter: str, masks: Sequence[Value | None]) -> list[Value]:
    start = _gep(b, micro.kind, "%b", _times(b, counter, micro.b_stride))
    packed = micro.b_stride == micro.lanes * micro.vectors
    found = []
    for number, mask in enumerate(masks):
        place = _gep(b, micro.kind, start, number * micro.lanes)
        found.append(load_vector(b, micro.kind, place, (micro.lanes, 1, 0, None if packed else mask), [], None, place))
    return found


def _finish(b: Builder, micro: Micro, cell: tuple[int, int], total: Value, mask: Value | None) -> None:
    row, number = cell
    if micro.columns <= number * micro.lanes:
        return
    place = _gep(b, micro.kind, "%c", row * micro.c_stride + number * micro.lanes)
    layout = (micro.lanes, 1, 0, mask)
    if micro.adds:
        total = b.fadd(load_vector(b, micro.kind, place, layout, [], None, place), total)
    store_vector(b, total, place, layout)


# --- packing --------------------------------------------------------------------------------------


def pack_rows_text(module: Module, gemm: Gemm, columns: int, name: str) -> str:
    """Return the function (b, panel, k) that packs a panel of a B whose rows lie in order."""
    code = LoopNest(Function(module))
    vectors = -(-columns // gemm.lanes)
    with code.loop("0", "%k", 1) as loop:
        b = code.current
        source = _gep(b, gemm.kind, "%b", _times(b, loop.counter.text, gemm.b_strides[0]))
        target = _gep(b, gemm.kind, "%panel", _times(b, loop.counter.text, gemm.width))
        for number in range(vectors):
            mask = _mask(gemm.lanes, columns - number * gemm.lanes)
            place = _gep(b, gemm.kind, source, number * gemm.lanes)
            value = load_vector(b, gemm.kind, place, (gemm.lanes, 1, 0, mask), [], None, place)
            store_vector(b, value, _gep(b, gemm.kind, target, number * gemm.lanes), (gemm.lanes, 1, 0, None))
    code.current.raw("ret void")
    head = f"define internal void @{name}(ptr %b, ptr %panel, i64 %k) noinline #0"
    return f"{head} {{\nentry:\n" + "\n".join(code.current.lines) + "\n}\n"


def pack_columns_text(module: Module, gemm: Gemm, columns: int, name: str) -> str:
    """Return the function (b, panel, k) that packs a panel of a B whose columns lie in order: blocks, transposed."""
    code = LoopNest(Function(module))
    lanes = gemm.lanes
    with code.loop("0", "%k", lanes) as loop:
        b = code.current
        left = b.define(f"sub i64 %k, {loop.counter.text}", "i64")
        exists = b.compare("lt", b.lane_numbers(lanes), left)
        for number in range(-(-columns // lanes)):
            rows = []
            for lane in range(lanes):
                # Columns that do not exist repeat the last one; what comes of them is never stored.
                column = min(number * lanes + lane, columns - 1)
                place = _gep(b, gemm.kind, _gep(b, gemm.kind, "%b", loop.counter.text), column * gemm.b_strides[1])
                rows.append(load_vector(b, gemm.kind, place, (lanes, 1, 0, exists), [], None, place))
            target = _gep(b, gemm.kind, "%panel", _times(b, loop.counter.text, gemm.width))
            for lane, value in enumerate(transposed(b, rows)):
                place = _gep(b, gemm.kind, target, lane * gemm.width + number * lanes)
                store_vector(b, value, place, (lanes, 1, 0, None))
    code.current.raw("ret void")
    head = f"define internal void @{name}(ptr %b, ptr %panel, i64 %k) noinline #0"
    return f"{head} {{\nentry:\n" + "\n".join(code.current.lines) + "\n}\n"


def pack_left_text(module: Module, gemm: Gemm, rows: int, name: str) -> str:
    """Return the function (a, packed, k) that packs a tile of an A whose columns lie in order, without gaps."""
    code = LoopNest(Function(module))
    with code.loop("0", "%k", 1) as loop:
        b = code.current
        source = _gep(b, gemm.kind, "%a", _times(b, loop.counter.text, gemm.a_strides[1]))
        target = _gep(b, gemm.kind, "%packed", _times(b, loop.counter.text, rows))
        for number in range(-(-rows // gemm.lanes)):
            mask = _mask(gemm.lanes, rows - number * gemm.lanes)
            place = _gep(b, gemm.kind, source, number * gemm.lanes)
            value = load_vector(b, gemm.kind, place, (gemm.lanes, 1, 0, mask), [], None, place)
            # Written whole: what runs over is overwritten by the next column.
            store_vector(b, value, _gep(b, gemm.kind, target, number * gemm.lanes), (gemm.lanes, 1, 0, None))
    code.current.raw("ret void")
    head = f"define internal void @{name}(ptr %a, ptr %packed, i64 %k) noinline #0"
    return f"{head} {{\nentry:\n" + "\n".join(code.current.lines) + "\n}\n"


def transposed(b: Builder, rows: list[Value]) -> list[Value]:
    """Transpose a square block in registers: log2(n) rounds of exchanging halves between pairs of rows."""
    lanes = len(rows)
    distance = lanes // 2
    while distance:
        keep = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        swap = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        for row in range(lanes):
            if not row & distance:
                first, second = rows[row], rows[row + distance]
                rows[row], rows[row + distance] = _shuffle(b, first, second, keep), _shuffle(b, first, second, swap)
        distance //= 2
    return rows


def _shuffle(b: Builder, x: Value, y: Value, lanes: Sequence[int]) -> Value:
    mask = ", ".join(f"i32 {lane}" for lane in lanes)
    kind = type_name(x.kind, x.lanes)
    return b.define(f"shufflevector {kind} {x.text}, {kind} {y.text}, <{len(lanes)} x i32> <{mask}>", x.kind, x.lanes)


# --- the loops around the tiles -------------------------------------------------------------------


class GemmWriter:
    """Writes one product as a function (a, b, c, panel, rows, columns) of starting addresses and sizes of a share."""

    def __init__(self, module: Module, gemm: Gemm) -> None:
        self.module = module
        self.gemm = gemm
        self.rows = best_rows(gemm.rows, gemm.shape.rows)
        self.code = LoopNest(Function(module))

    @property
    def b(self) -> Builder:
        return self.code.current

    def definition(self, name: str) -> str:
        """Return the whole function."""
        count, depth = self.gemm.blocks
        for block in range(min(count, 1)):
            self._block(str(block * depth), min(depth, self.gemm.k), adds=self.gemm.accumulate)
        if count > 2:
            with self.code.loop(str(depth), str(depth * (count - 1)), depth) as loop:
                self._block(loop.counter.text, depth, adds=True)
        if count > 1:
            self._block(str(depth * (count - 1)), self.gemm.k - depth * (count - 1), adds=True)
        self.b.raw("ret void")
        head = f"define internal void @{name}(ptr %a, ptr %b, ptr %c, ptr %panel, i64 %rows, i64 %columns) #0"
        return f"{head} {{\nentry:\n" + "\n".join(self.b.lines) + "\n}\n"

    def _block(self, start: str, depth: int, *, adds: bool) -> None:
        """All tiles for the terms [start, start + depth)."""
        gemm, b = self.gemm, self.b
        a = _gep(b, gemm.kind, "%a", _times(b, start, gemm.a_strides[1]))
        if gemm.pack_a:
            self._pack_left(a, depth)
            b = self.b
        right = _gep(b, gemm.kind, "%b", _times(b, start, gemm.b_strides[0]))
        width = gemm.width
        if max(gemm.columns) >= width:
            full = b.define(f"udiv i64 %columns, {width}", "i64")
            stop = b.define(f"mul i64 {full.text}, {width}", "i64").text
            with self._if_more("0", stop), self.code.loop("0", stop, width) as loop:
                self._panel((a, right, loop.counter.text), width, depth, adds=adds)
        for rest in sorted({columns % width for columns in gemm.columns} - {0}):
            b = self.b
            have = b.define(f"urem i64 %columns, {width}", "i64").text
            first = b.define(f"sub i64 %columns, {have}", "i64").text
            with self._if(b.define(f"icmp eq i64 {have}, {rest}", "b1").text):
                self._panel((a, right, first), rest, depth, adds=adds)

    def _pack_left(self, a: str, depth: int) -> None:
        """Pack all rows of A for this block, tile after tile."""
        gemm = self.gemm

        def one(row: str, rows: int) -> None:
            b = self.b
            target = self._packed_left(b, row, depth)
            source = _gep(b, gemm.kind, a, row)
            key = f"pack_left_{gemm.kind}_{gemm.lanes}_{gemm.a_strides[1]}_{rows}"
            name = self._named(key, lambda name: pack_left_text(self.module, gemm, rows, name))
            b.raw(f"call void @{name}(ptr {source}, ptr {target}, i64 {depth})")

        self._over_rows(one)

    def _packed_left(self, b: Builder, row: str, depth: int) -> str:
        base = _gep(b, self.gemm.kind, "%panel", self.gemm.panel)
        return _gep(b, self.gemm.kind, base, _times(b, row, depth))

    def _over_rows(self, one: Callable[[str, int], None]) -> None:
        """Call `one(first row, rows)` for every tile: a loop over the full ones, then what is left."""
        gemm, b, height = self.gemm, self.b, self.rows
        if max(gemm.rows) >= height:
            full = b.define(f"udiv i64 %rows, {height}", "i64")
            stop = b.define(f"mul i64 {full.text}, {height}", "i64").text
            with self._if_more("0", stop), self.code.loop("0", stop, height) as loop:
                one(loop.counter.text, height)
        for rest in sorted({rows % height for rows in gemm.rows} - {0}):
            b = self.b
            have = b.define(f"urem i64 %rows, {height}", "i64").text
            first = b.define(f"sub i64 %rows, {have}", "i64").text
            with self._if(b.define(f"icmp eq i64 {have}, {rest}", "b1").text):
                one(first, rest)

    def _panel(self, places: tuple[str, str, str], columns: int, depth: int, *, adds: bool) -> None:
        """All rows against one panel."""
        gemm, b = self.gemm, self.b
        a, right, column = places
        source = _gep(b, gemm.kind, right, _times(b, column, gemm.b_strides[1]))
        c = _gep(b, gemm.kind, "%c", column)
        stride = gemm.b_strides[0]
        if gemm.pack:
            b.raw(f"call void @{self._packer(columns)}(ptr {source}, ptr %panel, i64 {depth})")
            source, stride = "%panel", gemm.width
        micro = Micro(
            gemm.kind, self.rows, -(-columns // gemm.lanes), gemm.lanes, columns, gemm.a_strides, stride, gemm.c_stride,
            adds, gemm.fetch,
        )  # fmt: skip
        if gemm.pack:
            micro = replace(micro, vectors=gemm.shape.vectors if columns > gemm.lanes else 1)
        self._over_rows(lambda row, rows: self._tile(replace(micro, rows=rows), (a, source, c), row, depth))

    def _tile(self, micro: Micro, places: tuple[str, str, str], row: str, depth: int) -> None:
        b = self.b
        if self.gemm.pack_a:
            micro = replace(micro, a_strides=(1, micro.rows))
            a = self._packed_left(b, row, depth)
        else:
            a = _gep(b, micro.kind, places[0], _times(b, row, micro.a_strides[0]))
        c = _gep(b, micro.kind, places[2], _times(b, row, micro.c_stride))
        name = self._named(f"tile_{_key(micro)}", lambda name: micro_text(self.module, micro, name))
        b.raw(f"call void @{name}(ptr {a}, ptr {places[1]}, ptr {c}, i64 {depth})")

    def _packer(self, columns: int) -> str:
        gemm = self.gemm
        in_rows = gemm.b_strides[1] == 1
        write = pack_rows_text if in_rows else pack_columns_text
        stride = gemm.b_strides[0 if in_rows else 1]
        # Two products in one program may have panels of different widths: everything the function depends on is named.
        key = f"pack_{gemm.kind}_{gemm.lanes}_{'rows' if in_rows else 'columns'}_{stride}_{columns}_{gemm.width}"
        return self._named(key, lambda name: write(self.module, gemm, columns, name))

    def _named(self, name: str, write: Callable[[str], str]) -> str:
        if name not in self.module.definitions:
            self.module.definitions[name] = ""  # reserves the place before what it calls
            self.module.definitions[name] = write(name)
        return name

    def _if(self, condition: str) -> _Branch:
        return _Branch(self.code, condition)

    def _if_more(self, start: str, stop: str) -> _Branch:
        return _Branch(self.code, self.b.define(f"icmp ult i64 {start}, {stop}", "b1").text)


class _Branch:
    """Code that runs if a condition holds."""

    def __init__(self, code: LoopNest, condition: str) -> None:
        self.code, self.condition = code, condition
        self.after = code.function.fresh("skip")

    def __enter__(self) -> None:
        b, then = self.code.current, self.code.function.fresh("do")
        b.raw(f"br i1 {self.condition}, label %{then}, label %{self.after}")
        b.start(then)

    def __exit__(self, *_error: object) -> None:
        b = self.code.current
        b.raw(f"br label %{self.after}")
        b.start(self.after)


def _key(micro: Micro) -> str:
    return (
        f"{micro.kind}_{micro.rows}x{micro.columns}_{micro.vectors}x{micro.lanes}"
        f"_{micro.a_strides[0]}_{micro.a_strides[1]}_{micro.b_stride}"
        f"_{micro.c_stride}_{'add' if micro.adds else 'set'}{'_fetch' if micro.fetch else ''}"
    )
