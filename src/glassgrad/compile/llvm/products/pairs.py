"""Matrix products of bfloat16: tiles whose innermost instruction adds two products at once.

`vdpbf16ps` takes pairs of neighbouring terms: each lane of 32 bits holds one element each of two rows of B, or two
elements of one row of A. So panels of B are packed in pairs: two rows are interleaved or, if B is column-major, pairs
of elements are transposed as 32-bit numbers. A is read in place if it is row-major with an even number of terms;
otherwise it is packed in the same two ways. Sums are float32 over all terms and are rounded once. An odd number of
terms is padded with a 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from glassgrad.compile.llvm.loops.memory_ops import load_vector, store_vector
from glassgrad.compile.llvm.module.ir import Builder, Function, LoopNest, Module, Value
from glassgrad.compile.llvm.products.gemm import GemmWriter
from glassgrad.compile.llvm.products.tiles import definition, existing, named, place, repeated_last, transposed

LANES = 16
"""Sums in a vector of 64 bytes, and pairs."""
MOST_TERMS = 1 << 14
"""The largest number of terms for which a panel of B roughly fits the second-level cache; longer sums use float32."""


@dataclass(frozen=True)
class PairTile:
    """A tile of `rows` and `vectors`; rows of A are `a_row` bfloat16 apart; `cut` as for other tiles."""

    rows: int
    vectors: int
    a_row: int
    cut: bool


class PairWriter(GemmWriter):
    """Writes a product as a function, around tiles of pairs; all terms are in one block."""

    def _block(self, start: str, terms: str, adds: str) -> None:
        if self.gemm.pack_a:
            self._pack_left("%a", terms)
        self._panels("%a", "%b", (terms, adds))

    def _pairs(self, terms: str) -> str:
        return self.b.define(f"lshr i64 {self._plus(terms, 1)}, 1", "i64").text

    def _pack_left(self, a: str, terms: str) -> None:
        """Pack all rows of A, tile by tile."""
        in_order = self.gemm.a_strides[1] == 1

        def one(row: str, rows: int, count: str) -> None:
            with self.code.loop("0", count, 1) as loop:
                first = self.b.define(f"add i64 {row}, {self._times(loop.counter.text, rows)}", "i64").text
                source, target = self._place(a, self._times(first, self.a_strides[0])), self._packed_left(first, terms)
                pack = pack_lines_function(self.module) if in_order else pack_pairs_function(self.module, 1)
                numbers = f"i64 {terms}, i64 %lda, i64 {rows}, i64 {rows}"
                self.b.raw(f"call void @{pack}(ptr {source}, ptr {target}, {numbers})")

        self._over_rows(one)

    def _packed_left(self, row: str, terms: str) -> str:
        start = self._times(self._plus(self._pairs("%k"), LANES), self.gemm.width)
        return place(self.b, "u32", place(self.b, "u32", "%panel", start), self._times(row, self._pairs(terms)))

    def _panel(self, places: tuple[str, str, str], vectors: int, sizes: tuple[str, str, str]) -> None:
        gemm, (a, right, column), (columns, terms, _) = self.gemm, places, sizes
        source = self._place(right, self._times(column, self.b_strides[1]))
        turned = gemm.b_strides[1] != 1
        pack = pack_lines_function(self.module) if turned else pack_pairs_function(self.module, vectors)
        numbers = f"i64 {terms}, i64 %ldb, i64 {gemm.width}, i64 {columns}"
        self.b.raw(f"call void @{pack}(ptr {source}, ptr %panel, {numbers})")
        c = self._place("%c", column)

        def one(row: str, rows: int, count: str) -> None:
            target, pairs = self._place(c, self._times(row, "%ldc")), self._pairs(terms)
            if gemm.pack_a:
                left, a_row, a_term = self._packed_left(row, terms), 2, 2 * rows
                further = self._times(pairs, 2 * rows)
            else:
                left, a_row, a_term = self._place(a, self._times(row, "%lda")), gemm.a_strides[0], 2
                further = str(rows * a_row)
            name = pair_tile_function(self.module, PairTile(rows, vectors, a_row, self._is_cut(columns, vectors)))
            given = (pairs, a_term, further, gemm.width, "%ldc", columns, count)
            arguments = ", ".join(f"i64 {number}" for number in given)
            self.b.raw(f"call void @{name}(ptr {left}, ptr %panel, ptr {target}, {arguments})")

        self._over_rows(one)


def scratch_of(rows: int, terms: int, width: int, *, pack_a: bool) -> int:
    """Return the bytes of packed parts of B and A, including writes beyond their ends."""
    pairs = (terms + 1) // 2
    return 4 * ((pairs + LANES) * width + ((rows * pairs + LANES * LANES + LANES) if pack_a else 0))


_NUMBERS = ("pairs", "a_term", "a_next", "b_row", "c_row", "columns", "count")


def pair_tile_function(module: Module, tile: PairTile) -> str:
    """Return the function (a, b, c, numbers) that computes `count` tiles, one below the other, and rounds them.

    Pairs of a row of A are a_term apart, and A's parts of consecutive tiles a_next apart, in elements; b_row is the
    distance of the panel's pairs of rows, in pairs.
    """

    def write(name: str) -> str:
        code = LoopNest(Function(module))
        mask = existing(code.current, LANES, (tile.vectors - 1) * LANES)
        height = code.current.define(f"mul i64 %c_row, {tile.rows}", "i64").text
        stop = code.current.define("mul i64 %pairs, %b_row", "i64").text
        with code.loop("0", "%count", 1) as loop:
            b, number = code.current, loop.counter.text
            left = place(b, "bf16", "%a", b.define(f"mul i64 {number}, %a_next", "i64").text)
            target = place(b, "bf16", "%c", b.define(f"mul i64 {number}, {height}", "i64").text)
            sums = _sums(code, tile, left, stop)
            for at, row in enumerate(sums):
                if at:
                    target = place(b, "bf16", target, "%c_row")
                for vector, total in enumerate(row):
                    kept = mask if tile.cut and vector == tile.vectors - 1 else None
                    store_vector(
                        b, b.cast(total, "bf16"), place(b, "bf16", target, vector * LANES), (LANES, 1, 0, kept)
                    )
        code.current.raw("ret void")
        params = ["ptr %a", "ptr %b", "ptr %c", *(f"i64 %{one}" for one in _NUMBERS)]
        return definition(f"{name}({', '.join(params)})", code.current)

    return named(module, f"pairs_{tile.rows}x{tile.vectors}_{tile.a_row}{'_cut' if tile.cut else ''}", write)


def _sums(code: LoopNest, tile: PairTile, left: str, stop: str) -> list[list[Value]]:
    """Sum all pairs; return the vectors of each row."""
    zero = code.current.const(0, "f32", LANES)
    with code.loop("0", stop, "%b_row") as loop:
        b = code.current
        sums = [[loop.carry(b, zero) for _ in range(tile.vectors)] for _ in range(tile.rows)]
        term = loop.carry(b, Value("0", "i64")).text
        here, right = place(b, "bf16", left, term), place(b, "u32", "%b", loop.counter.text)
        side = []
        for number in range(tile.vectors):
            address = place(b, "u32", right, number * LANES)
            side.append(_as_pairs(b, load_vector(b, "u32", address, (LANES, 1, 0, None), [], None, address)))
        for row in range(tile.rows):
            pair = b.define(f"load i32, ptr {place(b, 'bf16', here, row * tile.a_row)}, align 2", "u32")
            spread = _as_pairs(b, b.splat(pair, LANES))
            sums[row] = [_add_products(b, total, one, spread) for one, total in zip(side, sums[row], strict=True)]
        loop.next = [*(total for row in sums for total in row), b.define(f"add i64 {term}, %a_term", "i64")]
    return sums


def _as_pairs(b: Builder, value: Value) -> str:
    return b.pointer(f"bitcast {value.typed} to <32 x bfloat>")


def _add_products(b: Builder, total: Value, x: str, y: str) -> Value:
    name = "llvm.x86.avx512bf16.dpbf16ps.512"
    declared = f"declare <16 x float> @{name}(<16 x float>, <32 x bfloat>, <32 x bfloat>)"
    b.function.module.declarations[name] = declared
    return b.define(f"call <16 x float> @{name}({total.typed}, <32 x bfloat> {x}, <32 x bfloat> {y})", "f32", LANES)


# --- packing --------------------------------------------------------------------------------------

_PACK = "ptr %x, ptr %panel, i64 %k, i64 %far, i64 %width, i64 %columns"


def pack_pairs_function(module: Module, vectors: int) -> str:
    """Return the function (x, panel, k, far, width, columns) that interleaves pairs of rows, which are `far` apart.

    The rows have `columns`, which reach into the last of the `vectors`; a pair takes `width` in the panel.
    """

    def write(name: str) -> str:
        code = LoopNest(Function(module))
        mask = existing(code.current, LANES, (vectors - 1) * LANES)
        with code.loop("0", "%k", 2) as loop:
            b, at = code.current, loop.counter.text
            first = place(b, "bf16", "%x", b.define(f"mul i64 {at}, %far", "i64").text)
            follows = b.define(f"icmp ult i64 {b.define(f'add i64 {at}, 1', 'i64').text}, %k", "b1")
            second = place(b, "bf16", first, b.define(f"select i1 {follows.text}, i64 %far, i64 0", "i64").text)
            pair = b.define(f"lshr i64 {at}, 1", "i64").text
            target = place(b, "u32", "%panel", b.define(f"mul i64 {pair}, %width", "i64").text)
            for number in range(vectors):
                layout = (LANES, 1, 0, mask if number == vectors - 1 else None)
                low, high = (
                    load_vector(b, "u16", place(b, "bf16", row, number * LANES), layout, [], None, row)
                    for row in (first, second)
                )
                high = b.select(follows, high, b.like(0, high))
                store_vector(b, interleaved(b, low, high), place(b, "u32", target, number * LANES), (LANES, 1, 0, None))
        code.current.raw("ret void")
        return definition(f"{name}({_PACK})", code.current)

    return named(module, f"pack_pairs_{vectors}", write)


def interleaved(b: Builder, low: Value, high: Value) -> Value:
    """Return the interleaved elements of two rows, each pair as a 32-bit number."""
    order = ", ".join(f"i32 {lane}, i32 {lane + LANES}" for lane in range(LANES))
    both = b.pointer(f"shufflevector {low.typed}, {high.typed}, <32 x i32> <{order}>")
    return b.define(f"bitcast <32 x i16> {both} to <16 x i32>", "u32", LANES)


def pack_lines_function(module: Module) -> str:
    """Return the function (x, panel, k, far, width, columns) that transposes lines, whose terms are contiguous.

    Lines are `far` apart; blocks of 16 times 16 pairs are transposed in registers.
    """

    def write(name: str) -> str:
        code = LoopNest(Function(module))
        offsets = [code.current.define(f"mul i64 %far, {lane}", "i64").text for lane in range(LANES)]
        with code.loop("0", "%columns", LANES) as loop:
            b, first = code.current, loop.counter.text
            here = repeated_last(b, first, offsets, "%far")
            source = place(b, "bf16", "%x", b.define(f"mul i64 {first}, %far", "i64").text)
            _pack_lines(code, source, place(b, "u32", "%panel", first), here)
        code.current.raw("ret void")
        return definition(f"{name}({_PACK})", code.current)

    return named(module, "pack_lines", write)


def _pack_lines(code: LoopNest, source: str, target: str, offsets: list[str]) -> None:
    """Pack the lines at `offsets`, a vector's width of them."""
    terms = 2 * LANES
    with code.loop("0", "%k", terms) as loop:
        b = code.current
        left = b.define(f"trunc i64 {b.define(f'sub i64 %k, {loop.counter.text}', 'i64').text} to i32", "i32")
        numbers = Value("<" + ", ".join(f"i32 {lane}" for lane in range(terms)) + ">", "i32", terms)
        there = b.compare("lt", numbers, b.splat(left, terms))
        start = place(b, "bf16", source, loop.counter.text)
        rows = []
        for offset in offsets:
            address = place(b, "bf16", start, offset)
            halves = load_vector(b, "u16", address, (terms, 1, 0, there), [], None, address)
            rows.append(b.define(f"bitcast {halves.typed} to <16 x i32>", "u32", LANES))
        pair = b.define(f"lshr i64 {loop.counter.text}, 1", "i64").text
        row = place(b, "u32", target, b.define(f"mul i64 {pair}, %width", "i64").text)
        for value in transposed(b, rows):
            store_vector(b, value, row, (LANES, 1, 0, None))
            row = place(b, "u32", row, "%width")
