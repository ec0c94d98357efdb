"""The inner functions of a matrix product: one tile of C in vector registers, and the packing of panels of B and A.

The numbers of rows and vectors of a tile are constants in its code. In steps with few products, so is the distance of
A's rows, because each row needs an address in every iteration of the innermost loop; as an argument it costs 10 to 20
ns per call. Values that a tile needs once are arguments. So a program has a few of these functions instead of some for
each product, which would take most of the compile time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from glassgrad.base.kept import Cache
from glassgrad.compile.llvm.loops.memory_ops import first_lanes, load_vector, prefetch, store_vector
from glassgrad.compile.llvm.module.ir import LLVM_TYPE, Builder, Function, LoopNest, Module, Value, shuffled


@dataclass(frozen=True)
class Tile:
    """A tile of `rows` by `vectors` of `lanes`, of an element kind; rows of A are `a_row` elements apart.

    If `a_row` is None, that distance is an argument, so fewer tiles serve more products. `cut` says that the last
    vector of C may reach beyond its end, and `packed` that B's last vector may be read in full anyway; masked reads and
    writes cost instructions.
    """

    kind: str
    rows: int
    vectors: int
    lanes: int
    a_row: int | None
    cut: bool
    packed: bool

    @property
    def further_rows(self) -> range:
        """The rows of A whose distance from the first one is an argument, besides that of the second."""
        return range(3, self.rows if self.a_row is None else 0, 3)


def place(b: Builder, kind: str, base: str, offset: str | int) -> str:
    """Return the address `offset` elements after `base`."""
    if str(offset) == "0":
        return base
    return b.pointer(f"getelementptr {LLVM_TYPE[kind]}, ptr {base}, i64 {offset}")


def named(module: Module, name: str, write: Callable[[str], str]) -> str:
    """Add a function to a module unless it exists; return its name."""
    if name not in module.definitions:
        module.definitions[name] = ""  # reserves the position before its callees
        module.definitions[name] = write(name)
    return name


WRITTEN: Cache[tuple[str, int, bool], Module] = Cache("texts of tiles", 1024)


def named_everywhere(module: Module, name: str, write: Callable[[Module, str], str]) -> str:
    """Like `named`, for a function that its name determines and that calls no other: write it once per process."""
    key = (name, module.vector_bytes, module.has_bfloat)

    def make() -> Module:
        made = Module(module.vector_bytes, module.has_bfloat)
        made.definitions[name] = write(made, name)
        return made

    found = WRITTEN.found(key, make)
    module.declarations.update(found.declarations)
    module.definitions.update(found.definitions)
    return name


TEXTS: Cache[tuple[Hashable, ...], tuple[Module, str]] = Cache("texts of functions", 1024)


def written(module: Module, about: tuple[Hashable, ...], write: Callable[[Module], str]) -> str:
    """Return a function's text, written once per process for all modules.

    Args:
        module: receives the declarations and callees of the function.
        about: everything that the text depends on.
        write: writes the text for a module.
    """
    key = (module.vector_bytes, module.has_bfloat, *about)

    def make() -> tuple[Module, str]:
        made = Module(module.vector_bytes, module.has_bfloat)
        return made, write(made)

    own, text = TEXTS.found(key, make)
    module.declarations.update(own.declarations)
    module.definitions.update(own.definitions)
    return text


_TILE_NUMBERS = ("k", "a_term", "a_next", "b_row", "c_row", "columns", "count", "a_row")


def tile_function(module: Module, tile: Tile) -> str:
    """Return the function (a, b, c, numbers, adds, fetch) that computes `count` tiles, one below the other.

    Terms of a row of A are a_term apart, and A's parts of consecutive tiles a_next; b_row and c_row are the distances
    of rows of B and C. If the tile has no constant a_row, that distance is an argument, followed by those of
    `further_rows`. Only `columns` of a tile exist, which include at least some of the last vector. `adds` tells whether
    the sums are added to C, `fetch` whether C is prefetched before its sums are ready.
    """

    def write(module: Module, name: str) -> str:
        code = LoopNest(Function(module))
        mask = existing(code.current, tile.lanes, (tile.vectors - 1) * tile.lanes)
        height = code.current.define(f"mul i64 %c_row, {tile.rows}", "i64").text
        # One counter for A and one for B, and no separate loop counter: each addition may delay a multiplication.
        stop = code.current.define("mul i64 %k, %b_row", "i64").text
        with code.loop("0", "%count", 1) as loop:
            b, number = code.current, loop.counter.text
            left = place(b, tile.kind, "%a", b.define(f"mul i64 {number}, %a_next", "i64").text)
            target = place(b, tile.kind, "%c", b.define(f"mul i64 {number}, {height}", "i64").text)
            _fetch(code, tile, target)
            sums = _sums(code, tile, left, stop, mask)
            _store_tile(b, tile, target, sums, mask)
        code.current.raw("ret void")
        numbers = [*_TILE_NUMBERS, *(f"a_row{row}" for row in tile.further_rows)]
        params = ["ptr %a", "ptr %b", "ptr %c", *(f"i64 %{one}" for one in numbers), "i1 %adds", "i1 %fetch"]
        return definition(f"{name}({', '.join(params)})", code.current)

    shape = f"{tile.kind}_{tile.rows}x{tile.vectors}x{tile.lanes}_{'any' if tile.a_row is None else tile.a_row}"
    kept = ("_cut_packed" if tile.packed else "_cut") if tile.cut else ""
    return named_everywhere(module, f"tile_{shape}{kept}", write)


def _fetch(code: LoopNest, tile: Tile, target: str) -> None:
    code.current.raw("br i1 %fetch, label %ask, label %asked")
    code.current.start("ask")
    with code.loop("0", str(tile.rows), 1) as loop:
        b = code.current
        row = place(b, tile.kind, target, b.define(f"mul i64 {loop.counter.text}, %c_row", "i64").text)
        for number in range(tile.vectors):
            prefetch(b, place(b, tile.kind, row, number * tile.lanes), writes=True)
    code.current.raw("br label %asked")
    code.current.start("asked")


def _sums(code: LoopNest, tile: Tile, left: str, stop: str, mask: Value) -> list[list[Value]]:
    """Sum all terms up to the end of the rows of B; return the vectors of each row."""
    kind, lanes = tile.kind, tile.lanes
    zero = code.current.const(0, kind, lanes)
    with code.loop("0", stop, "%b_row") as loop:
        b = code.current
        sums = [[loop.carry(b, zero) for _ in range(tile.vectors)] for _ in range(tile.rows)]
        term = loop.carry(b, Value("0", "i64")).text
        here, right = place(b, kind, left, term), place(b, kind, "%b", loop.counter.text)
        side = []
        for number in range(tile.vectors):
            address = place(b, kind, right, number * lanes)
            exists = mask if tile.cut and not tile.packed and number == tile.vectors - 1 else None
            side.append(load_vector(b, kind, address, (lanes, 1, 0, exists), [], None, address))
        for row in range(tile.rows):
            element = b.define(f"load {LLVM_TYPE[kind]}, ptr {_row_of_left(b, tile, here, row)}", kind)
            spread = b.splat(element, lanes)
            sums[row] = [b.fma(spread, vector, total) for vector, total in zip(side, sums[row], strict=True)]
        loop.next = [*(total for row in sums for total in row), b.define(f"add i64 {term}, %a_term", "i64")]
    return sums


def _row_of_left(b: Builder, tile: Tile, here: str, row: int) -> str:
    """Return the address of a row of A, given that of the first one in an iteration.

    If it is not a constant, the offset of every third row is an argument, and a_row is added once or twice for the rows
    after it. With multiples of one argument, LLVM would compute them as a chain of additions in every iteration.
    """
    if tile.a_row is not None:
        return place(b, tile.kind, here, row * tile.a_row)
    third = row - row % 3
    here = place(b, tile.kind, here, f"%a_row{third}" if third else "0")
    for _ in range(row % 3):
        here = place(b, tile.kind, here, "%a_row")
    return here


def existing(b: Builder, lanes: int, first: int) -> Value:
    """Return the mask of the lanes that exist in a vector that begins at column `first`."""
    count = b.splat(b.define("trunc i64 %columns to i32", "i32"), lanes)
    numbers = Value("<" + ", ".join(f"i32 {first + lane}" for lane in range(lanes)) + ">", "i32", lanes)
    return b.compare("lt", numbers, count)


def _store_tile(b: Builder, tile: Tile, target: str, sums: Sequence[Sequence[Value]], mask: Value) -> None:
    b.raw("br i1 %adds, label %add, label %set")
    for label, adds in (("add", True), ("set", False)):
        b.start(label)
        place_of_row = target
        for number, row in enumerate(sums):
            if number:
                place_of_row = place(b, tile.kind, place_of_row, "%c_row")
            for vector, total in enumerate(row):
                address = place(b, tile.kind, place_of_row, vector * tile.lanes)
                layout = (tile.lanes, 1, 0, mask if tile.cut and vector == tile.vectors - 1 else None)
                if adds:
                    total = b.fadd(load_vector(b, tile.kind, address, layout, [], None, address), total)
                store_vector(b, total, address, layout)
        b.raw("br label %stored")
    b.start("stored")


# --- packing --------------------------------------------------------------------------------------


def pack_rows_function(module: Module, kind: str, vectors: int, lanes: int) -> str:
    """Return the function (b, panel, k, b_row, width, columns) that packs a panel of a row-major B."""

    def write(module: Module, name: str) -> str:
        code = LoopNest(Function(module))
        mask = existing(code.current, lanes, (vectors - 1) * lanes)
        with code.loop("0", "%k", 1) as loop:
            b = code.current
            source = place(b, kind, "%b", b.define(f"mul i64 {loop.counter.text}, %b_row", "i64").text)
            target = place(b, kind, "%panel", b.define(f"mul i64 {loop.counter.text}, %width", "i64").text)
            for number in range(vectors):
                address = place(b, kind, source, number * lanes)
                exists = mask if number == vectors - 1 else None
                value = load_vector(b, kind, address, (lanes, 1, 0, exists), [], None, address)
                store_vector(b, value, place(b, kind, target, number * lanes), (lanes, 1, 0, None))
        code.current.raw("ret void")
        params = "ptr %b, ptr %panel, i64 %k, i64 %b_row, i64 %width, i64 %columns"
        return definition(f"{name}({params})", code.current)

    return named_everywhere(module, f"pack_rows_{kind}_{vectors}x{lanes}", write)


def repeated_last(b: Builder, first: str, offsets: list[str], far: str) -> list[str]:
    """Return the offsets of the lines from `first` on, among `%columns` that are `far` apart.

    Lines that do not exist repeat the last one; their results are never stored.
    """
    left = b.define(f"sub i64 %columns, {first}", "i64").text
    last = b.define(f"mul i64 {b.define(f'sub i64 {left}, 1', 'i64').text}, {far}", "i64").text
    here = []
    for lane, offset in enumerate(offsets):
        exists = b.define(f"icmp ugt i64 {left}, {lane}", "b1").text
        here.append(b.define(f"select i1 {exists}, i64 {offset}, i64 {last}", "i64").text)
    return here


def pack_columns_function(module: Module, kind: str, lanes: int) -> str:
    """Return the function (b, panel, k, b_column, width, columns) that packs a panel of a column-major B.

    Square blocks of B are transposed in registers.
    """

    def write(module: Module, name: str) -> str:
        code = LoopNest(Function(module))
        offsets = [code.current.define(f"mul i64 %b_column, {lane}", "i64").text for lane in range(lanes)]
        with code.loop("0", "%columns", lanes) as loop:
            b, first = code.current, loop.counter.text
            here = repeated_last(b, first, offsets, "%b_column")
            source = place(b, kind, "%b", b.define(f"mul i64 {first}, %b_column", "i64").text)
            _pack_vector(code, (kind, lanes), source, place(b, kind, "%panel", first), here)
        code.current.raw("ret void")
        params = "ptr %b, ptr %panel, i64 %k, i64 %b_column, i64 %width, i64 %columns"
        return definition(f"{name}({params})", code.current)

    return named_everywhere(module, f"pack_columns_{kind}_{lanes}", write)


def _pack_vector(code: LoopNest, element: tuple[str, int], source: str, target: str, offsets: Sequence[str]) -> None:
    """Pack the columns at `offsets`, a vector's width of them."""
    kind, lanes = element
    with code.loop("0", "%k", lanes) as loop:
        b = code.current
        left = b.define(f"sub i64 %k, {loop.counter.text}", "i64")
        exists = b.compare("lt", b.lane_numbers(lanes), left)
        start = place(b, kind, source, loop.counter.text)
        rows = []
        for offset in offsets:
            address = place(b, kind, start, offset)
            rows.append(load_vector(b, kind, address, (lanes, 1, 0, exists), [], None, address))
        row = place(b, kind, target, b.define(f"mul i64 {loop.counter.text}, %width", "i64").text)
        for value in transposed(b, rows):
            store_vector(b, value, row, (lanes, 1, 0, None))
            row = place(b, kind, row, "%width")


def pack_left_function(module: Module, kind: str, rows: int, lanes: int) -> str:
    """Return the function (a, packed, k, a_term) that packs a tile's rows of a column-major A."""

    def write(module: Module, name: str) -> str:
        code = LoopNest(Function(module))
        with code.loop("0", "%k", 1) as loop:
            b = code.current
            source = place(b, kind, "%a", b.define(f"mul i64 {loop.counter.text}, %a_term", "i64").text)
            target = place(b, kind, "%packed", b.define(f"mul i64 {loop.counter.text}, {rows}", "i64").text)
            for start in range(0, rows, lanes):
                address = place(b, kind, source, start)
                exists = first_lanes(rows - start, lanes)
                value = load_vector(b, kind, address, (lanes, 1, 0, exists), [], None, address)
                # Store full vectors; the next column overwrites the excess.
                store_vector(b, value, place(b, kind, target, start), (lanes, 1, 0, None))
        code.current.raw("ret void")
        return definition(f"{name}(ptr %a, ptr %packed, i64 %k, i64 %a_term)", code.current)

    return named_everywhere(module, f"pack_left_{kind}_{rows}x{lanes}", write)


def transposed(b: Builder, rows: list[Value]) -> list[Value]:
    """Transpose a square block in registers, in log2(n) rounds that exchange halves between pairs of rows."""
    lanes = len(rows)
    distance = lanes // 2
    while distance:
        keep = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        swap = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        for row in range(lanes):
            if not row & distance:
                first, second = rows[row], rows[row + distance]
                rows[row], rows[row + distance] = shuffled(b, first, second, keep), shuffled(b, first, second, swap)
        distance //= 2
    return rows


def definition(signature: str, b: Builder) -> str:
    """Return the whole function with the given body."""
    return f"define internal void @{signature} noinline #0 {{\nentry:\n" + "\n".join(b.lines) + "\n}\n"
