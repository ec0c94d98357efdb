"""Products of a few rows with a matrix that is read along its rows: y = x W^T, as in generation by a model.

For one row, packing W gains nothing, because each of its elements is used once. A tile holds a sum for each pair of
a row of x and a row of W, reads both by vectors in memory order, and sums the lanes at the end, for all sums of a row
together. The memory bandwidth of W is the bottleneck.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from glassgrad.compile.llvm.loops.memory_ops import first_lanes, load_vector, store_vector
from glassgrad.compile.llvm.module.ir import Builder, Function, LoopNest, Module, Value, type_name
from glassgrad.compile.llvm.products.matmul import Call, Product, layouts
from glassgrad.compile.llvm.products.tiles import named, place

# With more rows packing W pays.
_MOST_ROWS = 8
# Rows of x in a tile, and rows of W: enough sums to hide the latency of an addition, few enough for the registers.
_TALL, _WIDE, _SUMS = 4, 8, 16
_NUMBERS = ("m", "n", "k", "lda", "ldb", "ldc")


def reads_along_rows(product: Product, lanes: int) -> bool:
    """Tell whether a product has few rows, a row-major left operand and a column-major right operand."""
    (a_turned, _), (b_turned, _) = layouts(product)
    return product.m <= _MOST_ROWS and b_turned and not a_turned and product.k >= lanes > 1


def row_product(module: Module, product: Product, lanes: int) -> Call:
    """Return the function that emits the product of one matrix from its first addresses, rows and columns."""
    (_, lda), (_, ldb) = layouts(product)
    tall = min(product.m, _TALL)
    wide = min(_WIDE, _SUMS // tall, lanes)
    tile = RowTile(product.kind, tall, 1 << wide.bit_length() - 1, lanes, product.k % lanes)
    name = _product_function(module, tile)

    def call(b: Builder, places: tuple[str, str, str], m: str, n: str) -> None:
        numbers = ", ".join(f"i64 {number}" for number in (m, n, product.k, lda, ldb, max(product.n, 1)))
        b.raw(f"call void @{name}({', '.join(f'ptr {address}' for address in places)}, {numbers})")

    return call


@dataclass(frozen=True)
class RowTile:
    """A tile of some rows of x and some of W, by vectors of `lanes`; `rest` terms do not fill a vector."""

    kind: str
    tall: int
    wide: int
    lanes: int
    rest: int

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.tall}x{self.wide}x{self.lanes}_{self.rest}"


def _product_function(module: Module, tile: RowTile) -> str:
    """Return the function (a, b, c, numbers) for any number of rows and columns."""

    def write(name: str) -> str:
        code = LoopNest(Function(module))
        _over_columns(code, tile)
        code.current.raw("ret void")
        params = ", ".join(["ptr %a", "ptr %b", "ptr %c", *(f"i64 %{number}" for number in _NUMBERS)])
        return f"define internal void @{name}({params}) noinline #0 {{\nentry:\n{_text(code)}\n}}\n"

    return named(module, f"row_product_{tile.name}", write)


def _over_columns(code: LoopNest, tile: RowTile) -> None:
    """Loop over the rows of W; those that do not fill a tile are processed one by one."""
    full = code.current.define(f"and i64 %n, {-tile.wide}", "i64").text
    for start, stop, wide in (("0", full, tile.wide), (full, "%n", 1)):
        if wide < tile.wide or start == "0":
            with _turns(code, start, stop, wide) as column:
                _over_rows(code, column, replace(tile, wide=wide))


def _over_rows(code: LoopNest, column: str, tile: RowTile) -> None:
    """Loop over the rows of x while the rows of W are in the cache."""
    b = code.current
    rest = b.define(f"urem i64 %m, {tile.tall}", "i64").text
    full = b.define(f"sub i64 %m, {rest}", "i64").text
    for start, stop, tall in (("0", full, tile.tall), (full, "%m", 1)):
        if tall < tile.tall or start == "0":
            with _turns(code, start, stop, tall) as row:
                _tile(code, row, column, replace(tile, tall=tall))


@contextmanager
def _turns(code: LoopNest, start: str, stop: str, step: int) -> Iterator[str]:
    """Open a loop that may have no iterations; yield its counter."""
    some = code.current.define(f"icmp ult i64 {start}, {stop}", "b1").text
    with code.when(some), code.loop(start, stop, step) as loop:
        yield loop.counter.text


def _tile(code: LoopNest, row: str, column: str, tile: RowTile) -> None:
    b = code.current
    left = _rows(b, tile, "%a", (row, "%lda", tile.tall))
    right = _rows(b, tile, "%b", (column, "%ldb", tile.wide))
    zero = b.const(0, tile.kind, tile.lanes)
    with code.loop("0", b.define(f"sub i64 %k, {tile.rest}", "i64").text, tile.lanes) as loop:
        inner = code.current
        sums = [[loop.carry(inner, zero) for _ in right] for _ in left]
        sums = _terms(inner, tile, (left, right), loop.counter.text, sums)
        loop.next = [total for one in sums for total in one]
    b = code.current
    if tile.rest:
        end = b.define(f"sub i64 %k, {tile.rest}", "i64").text
        sums = _terms(b, tile, (left, right), end, sums, first_lanes(tile.rest, tile.lanes))
    target = place(b, tile.kind, "%c", b.define(f"mul i64 {row}, %ldc", "i64").text)
    target = place(b, tile.kind, target, column)
    for number, one in enumerate(sums):
        if number:
            target = place(b, tile.kind, target, "%ldc")
        store_vector(b, _added_up(b, one), target, (tile.wide, 1, 0, None))


def _rows(b: Builder, tile: RowTile, base: str, which: tuple[str, str, int]) -> list[str]:
    """Return the addresses of `count` rows from `first` on."""
    first, distance, count = which
    found = [place(b, tile.kind, base, b.define(f"mul i64 {first}, {distance}", "i64").text)]
    while len(found) < count:
        found.append(place(b, tile.kind, found[-1], distance))
    return found


def _terms(
    b: Builder,
    tile: RowTile,
    sides: tuple[list[str], list[str]],
    term: str,
    sums: list[list[Value]],
    mask: Value | None = None,
) -> list[list[Value]]:
    """Add one vector of terms to every sum."""

    def loaded(base: str) -> Value:
        address = place(b, tile.kind, base, term)
        return load_vector(b, tile.kind, address, (tile.lanes, 1, 0, mask), [], None, address)

    left = [loaded(base) for base in sides[0]]
    for number, base in enumerate(sides[1]):
        right = loaded(base)
        for row, value in zip(sums, left, strict=True):
            row[number] = b.fma(value, right, row[number])
    return sums


def _added_up(b: Builder, sums: list[Value]) -> Value:
    """Return the sums of the lanes of each vector, in order, as the lanes of one vector.

    Two vectors with some groups of lanes become one with the groups of both, each half as wide. So the number of
    additions is about the number of vectors, instead of that times the logarithm of the lanes.
    """
    groups = 1
    while len(sums) > 1:
        sums = [_halves(b, sums[at], sums[at + 1], groups) for at in range(0, len(sums), 2)]
        groups *= 2
    (total,) = sums
    while total.lanes > groups:
        total = _halves(b, total, None, groups)
    return total


def _halves(b: Builder, first: Value, second: Value | None, groups: int) -> Value:
    """Add the upper half of every group of lanes to the lower one; groups of `second` follow those of `first`."""
    lanes, width = first.lanes, first.lanes // groups
    starts = [at * width for at in range(groups if second is None else 2 * groups)]
    kind = type_name(first.kind, lanes)
    other = "poison" if second is None else second.text
    parts = []
    for shift in (0, width // 2):
        order = [start + shift + lane for start in starts for lane in range(width // 2)]
        if len(order) == 1:
            parts.append(b.define(f"extractelement {kind} {first.text}, i64 {order[0]}", first.kind))
            continue
        mask = ", ".join(f"i32 {lane}" for lane in order)
        text = f"shufflevector {kind} {first.text}, {kind} {other}, <{len(order)} x i32> <{mask}>"
        parts.append(b.define(text, first.kind, len(order)))
    return b.fadd(*parts)


def _text(code: LoopNest) -> str:
    return "\n".join(code.current.lines)
