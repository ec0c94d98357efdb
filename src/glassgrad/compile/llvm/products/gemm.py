"""Our own matrix products: C = A B by tiles held in vector registers.

The scheme is the usual one (Goto and van de Geijn 2008): B is cut into panels as wide as two or three vectors. A panel
of a few hundred rows is packed into contiguous memory, where it stays in the first-level cache. The rows of A are
multiplied with it, `rows` at a time, with sums in registers. A is read in place, row-major or column-major. The shapes
of tiles are constants in the code, and so is the distance of A's rows in steps with few products. Sizes and the other
distances are arguments, so that products share functions.

A large C is not in the near caches. It is prefetched while the products of a tile are summed, and panels are longer, so
C is read and written less often, although B then comes from the second-level cache. This saves a tenth of the time of a
step whose products have a thousand rows, columns and terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from glassgrad.compile.llvm.module.ir import BITS, Builder, Function, LoopNest, Module, Value
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.products.tiles import (
    Tile,
    pack_columns_function,
    pack_left_function,
    pack_rows_function,
    place,
    tile_function,
)

# Rows of a panel: the number that fits the first-level cache, and the number for a large C.
_DEPTH, _LONG_DEPTH = 128, 1024
# Parameters of a product's function besides addresses: the sizes of a share, all terms and terms per block, distances.
_NUMBERS = ("rows", "columns", "k", "depth", "lda", "ldb", "ldc")


@dataclass(frozen=True)
class TileShape:
    """The rows and vectors of C in registers, and the terms of a packed panel."""

    rows: int
    vectors: int
    depth: int


def tile_shape(columns: int, lanes: int, *, far: bool = False) -> TileShape:
    """Return the tile: 27 or 28 of 32 registers hold sums, or 12 of 16; the rest hold a row of B and an element of A.

    `far` says that C is too large for the caches.
    """
    depth = _LONG_DEPTH if far else _DEPTH
    if host().registers < 32:
        return TileShape(6, 2, depth)
    return TileShape(14, 2, depth) if columns <= 2 * lanes else TileShape(9, 3, depth)


@dataclass(frozen=True)
class Gemm:
    """A product in which everything is constant except the addresses and the range of rows or columns.

    Strides are in elements; one of each pair is 1. `rows` and `columns` are the possible sizes of shares. `fetch`
    prefetches a tile of C before its sums are ready.
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
        """Elements of a packed panel of B."""
        return (self.blocks[1] + self.lanes) * self.width if self.pack else 0

    @property
    def scratch(self) -> int:
        """Bytes of packed parts of B and A."""
        left = max(self.rows) * self.blocks[1] + 4 * self.lanes if self.pack_a else 0
        return (self.panel + left) * BITS[self.kind] // 8


def best_rows(sizes: Sequence[int], most: int) -> int:
    """Return the tile height that wastes the least: few tiles, and no thin one at the end."""

    def cost(rows: int) -> float:
        total = 0.0
        for size in sizes:
            full, rest = divmod(size, rows)
            # A tile costs its rows, a constant, and more if it is too thin to hide latency.
            total += full * (rows + 0.7) + (max(rest, 4) + 0.7 if rest else 0)
        return total

    return min(range(most, 0, -1), key=cost)


# --- the loops around the tiles -------------------------------------------------------------------


def product_call(
    b: Builder,
    gemm: Gemm,
    name: str,
    places: tuple[str, str, str, str],
    sizes: tuple[str, str],
    terms: str | None = None,
) -> None:
    """Call the function of a `GemmWriter`: `places` are A, B, C and scratch, `sizes` rows and columns.

    `terms` may be fewer than the product has.
    """
    (a_row, a_term), (b_row, b_column) = gemm.a_strides, gemm.b_strides
    numbers = (*sizes, terms or gemm.k, gemm.blocks[1], max(a_row, a_term), max(b_row, b_column), gemm.c_stride)
    arguments = [*(f"ptr {address}" for address in places), *(f"i64 {number}" for number in numbers)]
    b.raw(f"call void @{name}({', '.join(arguments)})")


class GemmWriter:
    """Writes one product as a function of starting addresses, the sizes of a share, and distances of rows or columns.

    Products with tiles of the same shapes share a function.
    """

    def __init__(self, module: Module, gemm: Gemm) -> None:
        self.module = module
        self.gemm = gemm
        self.rows = best_rows(gemm.rows, gemm.shape.rows)
        self.code = LoopNest(Function(module))
        self.a_strides = ("%lda", "1") if gemm.a_strides[1] == 1 else ("1", "%lda")
        self.b_strides = ("%ldb", "1") if gemm.b_strides[1] == 1 else ("1", "%ldb")

    @property
    def b(self) -> Builder:
        return self.code.current

    def definition(self, name: str) -> str:
        """Return the whole function."""
        with self._if_more("0", "%k"):
            if self.gemm.blocks[0] == 1:
                self._block("0", "%k", "true" if self.gemm.accumulate else "false")
            else:
                self._blocks()
        self.b.raw("ret void")
        params = ", ".join(["ptr %a", "ptr %b", "ptr %c", "ptr %panel", *(f"i64 %{name}" for name in _NUMBERS)])
        return f"define internal void @{name}({params}) #0 {{\nentry:\n" + "\n".join(self.b.lines) + "\n}\n"

    def _blocks(self) -> None:
        with self.code.loop("0", "%k", "%depth") as loop:
            start = loop.counter.text
            left = self.b.define(f"sub i64 %k, {start}", "i64").text
            terms = self.b.call("umin", Value("%depth", "u64"), Value(left, "u64")).text
            adds = "true" if self.gemm.accumulate else self.b.define(f"icmp ne i64 {start}, 0", "b1").text
            self._block(start, terms, adds)

    def _times(self, value: str, factor: str | int) -> str:
        return value if str(factor) == "1" else self.b.define(f"mul i64 {value}, {factor}", "i64").text

    def _place(self, base: str, offset: str | int) -> str:
        return place(self.b, self.gemm.kind, base, offset)

    def _block(self, start: str, terms: str, adds: str) -> None:
        """All tiles for the terms [start, start + terms)."""
        gemm = self.gemm
        a = self._place("%a", self._times(start, self.a_strides[1]))
        if gemm.pack_a:
            self._pack_left(a, terms)
        self._panels(a, self._place("%b", self._times(start, self.b_strides[0])), (terms, adds))

    def _panels(self, a: str, right: str, sizes: tuple[str, str]) -> None:
        """Every panel of columns; `sizes` are the terms, and whether C is added to."""
        gemm, width = self.gemm, self.gemm.width
        terms, adds = sizes
        if max(gemm.columns) >= width:
            full = self.b.define(f"udiv i64 %columns, {width}", "i64")
            stop = self.b.define(f"mul i64 {full.text}, {width}", "i64").text
            with self._if_more("0", stop), self.code.loop("0", stop, width) as loop:
                self._panel((a, right, loop.counter.text), gemm.shape.vectors, (str(width), terms, adds))
        for vectors in sorted({-(-(columns % width) // gemm.lanes) for columns in gemm.columns} - {0}):
            have = self.b.define(f"urem i64 %columns, {width}", "i64").text
            first = self.b.define(f"sub i64 %columns, {have}", "i64").text
            needed = self.b.define(f"udiv i64 {self._plus(have, gemm.lanes - 1)}, {gemm.lanes}", "i64").text
            with self._if(self.b.define(f"icmp eq i64 {needed}, {vectors}", "b1").text):
                self._panel((a, right, first), vectors, (have, terms, adds))

    def _plus(self, value: str, number: int) -> str:
        return self.b.define(f"add i64 {value}, {number}", "i64").text

    def _pack_left(self, a: str, terms: str) -> None:
        """Pack all rows of A for this block, tile by tile."""

        def one(row: str, rows: int, count: str) -> None:
            name = pack_left_function(self.module, self.gemm.kind, rows, self.gemm.lanes)
            with self.code.loop("0", count, 1) as loop:
                first = self.b.define(f"add i64 {row}, {self._times(loop.counter.text, rows)}", "i64").text
                source, target = self._place(a, first), self._packed_left(first, terms)
                self.b.raw(f"call void @{name}(ptr {source}, ptr {target}, i64 {terms}, i64 %lda)")

        self._over_rows(one)

    def _packed_left(self, row: str, terms: str) -> str:
        base = "%panel"
        if self.gemm.pack:
            base = self._place(base, self._times(self._plus("%depth", self.gemm.lanes), self.gemm.width))
        return self._place(base, self._times(row, terms))

    def _over_rows(self, one: Callable[[str, int, str], None]) -> None:
        """Call `one(first row, rows, number of tiles)` for the full tiles, then for the rest."""
        gemm, height = self.gemm, self.rows
        if max(gemm.rows) >= height:
            count = self.b.define(f"udiv i64 %rows, {height}", "i64").text
            with self._if_more("0", count):
                one("0", height, count)
        for rest in sorted({rows % height for rows in gemm.rows} - {0}):
            have = self.b.define(f"urem i64 %rows, {height}", "i64").text
            first = self.b.define(f"sub i64 %rows, {have}", "i64").text
            with self._if(self.b.define(f"icmp eq i64 {have}, {rest}", "b1").text):
                one(first, rest, "1")

    def _panel(self, places: tuple[str, str, str], vectors: int, sizes: tuple[str, str, str]) -> None:
        """All rows against one panel; `sizes` are its columns and terms, and whether C is added to."""
        gemm = self.gemm
        a, right, column = places
        columns, terms, adds = sizes
        source, stride = self._place(right, self._times(column, self.b_strides[1])), "%ldb"
        c = self._place("%c", column)
        if gemm.pack:
            self._pack(source, vectors, columns, terms)
            source, stride = "%panel", str(gemm.width)

        def one(row: str, rows: int, count: str) -> None:
            target = self._place(c, self._times(row, "%ldc"))
            left, further, (a_row, a_term) = self._left(a, row, rows, terms)
            fixed = int(a_row) if a_row.isdigit() else None
            tile = Tile(gemm.kind, rows, vectors, gemm.lanes, fixed, self._is_cut(columns, vectors), gemm.pack)
            name = tile_function(self.module, tile)
            distances = [self._times(a_row, number) for number in (1, *tile.further_rows)]
            numbers = (terms, a_term, further, stride, "%ldc", columns, count, *distances)
            arguments = [f"ptr {left}", f"ptr {source}", f"ptr {target}", *(f"i64 {number}" for number in numbers)]
            self.b.raw(f"call void @{name}({', '.join(arguments)}, i1 {adds}, i1 {'true' if gemm.fetch else 'false'})")

        self._over_rows(one)

    def _left(self, a: str, row: str, rows: int, terms: str) -> tuple[str, str, tuple[str, str]]:
        """Return the address of a tile's part of A, the distance to the next tile's, and those of rows and terms."""
        if self.gemm.pack_a:
            return self._packed_left(row, terms), self._times(terms, rows), ("1", str(rows))
        left = self._place(a, self._times(row, self.a_strides[0]))
        if self.module.any_rows:  # passed as an argument, so that more products share a function
            return left, self._times(self.a_strides[0], rows), self.a_strides
        a_row, a_term = self.gemm.a_strides
        return left, str(rows * a_row), (str(a_row), str(a_term))

    def _is_cut(self, columns: str, vectors: int) -> bool:
        """Tell whether a panel of `vectors` may have fewer columns than they hold."""
        rests = {size % self.gemm.width for size in self.gemm.columns}
        return columns != str(self.gemm.width) and any(
            rest % self.gemm.lanes for rest in rests if -(-rest // self.gemm.lanes) == vectors
        )

    def _pack(self, source: str, vectors: int, columns: str, terms: str) -> None:
        gemm = self.gemm
        if gemm.b_strides[1] == 1:
            name = pack_rows_function(self.module, gemm.kind, vectors, gemm.lanes)
        else:
            name = pack_columns_function(self.module, gemm.kind, gemm.lanes)
        numbers = f"i64 {terms}, i64 %ldb, i64 {gemm.width}, i64 {columns}"
        self.b.raw(f"call void @{name}(ptr {source}, ptr %panel, {numbers})")

    def _if(self, condition: str) -> AbstractContextManager[None]:
        return self.code.when(condition)

    def _if_more(self, start: str, stop: str) -> AbstractContextManager[None]:
        return self.code.when(self.b.define(f"icmp ult i64 {start}, {stop}", "b1").text)
