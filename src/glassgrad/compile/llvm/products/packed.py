"""One product of matrices for all sizes, C = A B + bias in float32, for eager mode.

The products of a compiled step (`gemm`) know their sizes. Eager mode multiplies matrices of any size and would wait for
the compilation of each. Here sizes are arguments, as in a library, so one module serves all products and is compiled
once. The scheme is that of Goto and van de Geijn (2008): a block of A is packed tile by tile and stays in the
second-level cache, panels of B in the first-level one, and a tile of C is summed in registers.

A tile has 14 rows of two vectors, which leaves four of 32 registers for B and A. Rows are divided into tiles of 14, 13
or 12, so that none is thin; `divides` tells which numbers of rows allow that.
"""

from __future__ import annotations

from dataclasses import dataclass

from glassgrad.compile.llvm.module.ir import Function, LoopNest, Module
from glassgrad.compile.llvm.module.words import Words
from glassgrad.compile.llvm.products.packed_sizes import (
    BLOCK,
    DEPTH,
    KIND,
    LANES,
    SCRATCH,
    SIZE,
    VECTOR_BYTES,
    VECTORS,
    WIDTH,
)
from glassgrad.compile.llvm.products.packed_tiles import pack_panel_function, pack_turned_function, tile_function
from glassgrad.compile.llvm.products.shares import memory_of, one_of, record, word
from glassgrad.compile.llvm.products.tiles import pack_columns_function

# Words of a share: array objects, offsets of their parts (in bytes), sizes, distances of rows (of columns if
# column-major), whether A and B are column-major, a bias (an array object, or 0) and its offset. Batches first to last
# have two axes; `inner` is the length of the second one, followed by the distances of matrices in bytes.
A, B, C, A_START, B_START, C_START, M, N, K, LDA, LDB, LDC, TURNED_A, TURNED_B, BIAS, BIAS_START = range(16)
FIRST, LAST, INNER, A_OUTER, A_INNER, B_OUTER, B_INNER, C_OUTER, C_INNER = range(16, 25)
HEIGHTS = (14, 13, 12)

_LEAST_BURST = 2  # terms between two prefetched lines; no product has fewer

_ARGUMENTS = ("rows", "columns", "k", "lda", "ldb", "ldc", "from_row")


def divides(rows: int) -> bool:
    """Tell whether `rows` can be divided into tiles of `HEIGHTS`; from 72 on, all can."""
    tiles = -(-rows // HEIGHTS[0])
    return rows >= tiles * HEIGHTS[-1] > 0


def module(header: str, attributes: str, data: int) -> str:
    """Return the text of ``packed``, a function of a context and the number of a share.

    Args:
        header: first lines of the module.
        attributes: the attributes of every function.
        data: the offset of the data pointer in an array object.
    """
    functions = Module(VECTOR_BYTES)
    body = _Product(functions).definition()
    return "\n".join([header, functions.text(), body, _entry(data), attributes])


def _entry(data: int) -> str:
    """Read the record of a share, and multiply the matrices of the batch one by one."""
    names = {"rows": M, "columns": N, "k": K, "lda": LDA, "ldb": LDB, "ldc": LDC, "first": FIRST, "last": LAST}
    names |= {"inner": INNER, "turned.a": TURNED_A, "turned.b": TURNED_B}
    read = "".join(word(name, at) for name, at in names.items()) + word("scratch", SCRATCH, "ptr")
    arrays = "".join(memory_of(name, array, data) for name, array in (("a", A), ("b", B), ("c", C)))
    places = one_of("a", A_START, A_OUTER, A_INNER) + one_of("b", B_START, B_OUTER, B_INNER)
    numbers = ", ".join(f"i64 %{name}" for name in _ARGUMENTS[:-1])
    call = "call void @multiply(ptr %a, ptr %b, ptr %c, ptr {0}, ptr %scratch, " + numbers
    call += ", i64 0, i1 %a.turned, i1 %b.turned, i1 {1})"
    return f"""
define void @packed(ptr %ctx, i64 %share) #0 {{
entry:
{record()}{read}{arrays}{word("bias.object", BIAS, "ptr")}{word("bias.start", BIAS_START)}\
  %a.turned = icmp ne i64 %turned.a, 0
  %b.turned = icmp ne i64 %turned.b, 0
  %no.bias = icmp eq ptr %bias.object, null
  br label %head
head:
  %at = phi i64 [ %first, %entry ], [ %at.next, %plain ], [ %at.next, %biased ]
  %more = icmp slt i64 %at, %last
  br i1 %more, label %body, label %done
body:
  %at.next = add i64 %at, 1
  %i = udiv i64 %at, %inner
  %j = urem i64 %at, %inner
{places}{one_of("c", C_START, C_OUTER, C_INNER)}\
  br i1 %no.bias, label %plain, label %biased
plain:
  {call.format("%c", "false")}
  br label %head
biased:
  %bias.data.p = getelementptr i8, ptr %bias.object, i64 {data}
  %bias.data = load ptr, ptr %bias.data.p, align 8
  %bias = getelementptr i8, ptr %bias.data, i64 %bias.start
  {call.format("%bias", "true")}
  br label %head
done:
  ret void
}}
"""


# First row, height and number of the taller tiles, and of the shorter ones.
_Parts = tuple[tuple[str, str, str], tuple[str, str, str]]


@dataclass(frozen=True)
class _Ahead:
    """The first panel of B of the next block: its address, and whether it exists."""

    panel: str
    exists: str


class _Product(Words):
    """Writes the function that loops over blocks, panels and tiles."""

    def __init__(self, functions: Module) -> None:
        super().__init__(LoopNest(Function(functions)), KIND)
        self.functions = functions

    def definition(self) -> str:
        """Return the whole function.

        ``multiply(a, b, c, from, scratch, sizes and distances, turned_a, turned_b, reads)``: if `reads`, the initial
        values of C are those at `from`, in rows that are `from_row` apart.
        """
        blocks, vectors = self._up("%k", str(DEPTH)), self._up("%k", str(LANES))
        a_term = self._select("%turned_a", "%lda", "1")
        b_term = self._select("%turned_b", "1", "%ldb")
        with self.code.loop("0", blocks, 1) as loop:
            # Blocks of whole vectors that differ by at most one, so that no block has too few terms to justify its
            # access to C.
            numbers = (loop.counter.text, self._op("add", loop.counter.text, "1"))
            edges = (self._times(self._op("udiv", self._times(at, vectors), blocks), str(LANES)) for at in numbers)
            first, after = (self._least(edge, "%k") for edge in edges)
            terms = self._op("sub", after, first)
            later = self._is("ne", first, "0")
            begins = (
                self._pick(later, "%c", "%from"),
                self._select(later, "%ldc", "%from_row"),
                self.b.define(f"or i1 {later}, %reads", "b1").text,
            )
            left = self._place("%a", self._times(first, a_term))
            right, below = (self._place("%b", self._times(at, b_term)) for at in (first, after))
            self._blocks((left, right), terms, begins, _Ahead(below, self._is("ult", after, "%k")))
        self.b.raw("ret void")
        pointers = ["ptr %a", "ptr %b", "ptr %c", "ptr %from", "ptr %scratch"]
        flags = ["i1 %turned_a", "i1 %turned_b", "i1 %reads"]
        params = ", ".join([*pointers, *(f"i64 %{name}" for name in _ARGUMENTS), *flags])
        lines = "\n".join(self.b.lines)
        return f"define internal void @multiply({params}) #0 {{\nentry:\n{lines}\n}}\n"

    def _blocks(self, sides: tuple[str, str], terms: str, begins: tuple[str, str, str], then: _Ahead) -> None:
        """Loop over blocks of as many rows as fit; blocks differ by at most one row, so that tiles divide each."""
        left, right = sides
        count = self._up("%rows", self._op("udiv", str(BLOCK), terms))
        a_row = self._select("%turned_a", "1", "%lda")
        packed = self._place("%scratch", str((DEPTH + LANES) * WIDTH))
        with self.code.loop("0", count, 1) as loop:
            top = self._op("udiv", self._times(loop.counter.text, "%rows"), count)
            after = self._op("add", loop.counter.text, "1")
            bottom = self._op("udiv", self._times(after, "%rows"), count)
            rows = self._op("sub", bottom, top)
            tiles = self._up(rows, str(HEIGHTS[0]))
            high = self._up(rows, tiles)
            low = self._op("sub", high, "1")
            many = self._op("sub", rows, self._times(tiles, low))
            below = self._times(many, high)
            parts = (("0", high, many), (below, low, self._op("sub", tiles, many)))
            source = self._place(left, self._times(top, a_row))
            for first, height, number in parts:
                self._pack_left((source, a_row, packed), (first, height, number), terms)
            at, at_row, reads = begins
            c = self._place("%c", self._times(top, "%ldc")), self._place(at, self._times(top, at_row)), at_row, reads
            within = self._is("ult", after, count)
            more = self.b.define(f"or i1 {within}, {then.exists}", "b1").text
            ahead = _Ahead(self._pick(within, right, then.panel), more)
            self._panels((packed, right), c, (parts, tiles, terms), ahead)

    def _pack_left(self, places: tuple[str, str, str], part: tuple[str, str, str], terms: str) -> None:
        """Pack tiles of A: for each term, the elements of their rows."""
        (source, a_row, packed), (first, height, number) = places, part
        by_rows = pack_columns_function(self.functions, KIND, LANES)
        here, there = self._place(source, self._times(first, a_row)), self._place(packed, self._times(first, terms))
        numbers = f"i64 {terms}, i64 %lda, i64 {height}"
        with self._if(self._is("ne", number, "0")):
            with self._if("%turned_a"):
                by_terms = pack_turned_function(self.functions)
                self.b.raw(f"call void @{by_terms}(ptr {here}, ptr {there}, {numbers}, i64 {number})")
            with self._if(self.b.define("xor i1 %turned_a, true", "b1").text), self.code.loop("0", number, 1) as loop:
                row = self._times(loop.counter.text, height)
                tile, target = self._place(here, self._times(row, a_row)), self._place(there, self._times(row, terms))
                self.b.raw(f"call void @{by_rows}(ptr {tile}, ptr {target}, {numbers}, i64 {height})")

    def _panels(
        self, sides: tuple[str, str], c: tuple[str, str, str, str], sizes: tuple[_Parts, str, str], then: _Ahead
    ) -> None:
        """Pack the panels of B one by one; multiply each with all tiles of the block."""
        (packed, right), (target, begins, begins_row, reads), (parts, tiles, terms) = sides, c, sizes
        by_terms = pack_columns_function(self.functions, KIND, LANES)
        by_rows = pack_panel_function(self.functions)
        b_column = self._select("%turned_b", "%ldb", "1")
        with self.code.loop("0", "%columns", WIDTH) as loop:
            first = loop.counter.text
            columns = self._least(str(WIDTH), self._op("sub", "%columns", first))
            source = self._place(right, self._times(first, b_column))
            numbers = f"i64 {terms}, i64 %ldb, i64 {WIDTH}, i64 {columns}"
            self._either("%turned_b", by_terms, by_rows, f"ptr {source}, ptr %scratch, {numbers}")
            next_panel = self._place(right, self._times(self._op("add", first, str(WIDTH)), b_column))
            asked, each = self._asked(first, next_panel, (tiles, terms), then)
            for top, height, number in parts:
                left = self._place(packed, self._times(top, terms))
                there = self._place(self._place(target, self._times(top, "%ldc")), first)
                come = self._place(self._place(begins, self._times(top, begins_row)), first)
                places = f"ptr {left}, ptr %scratch, ptr {there}, ptr {come}"
                lengths = f"i64 {terms}, i64 %ldc, i64 {begins_row}, i64 {columns}, i64 {number}"
                some = self._is("ne", number, "0")
                asked_from = "0" if top == "0" else self._times(parts[0][2], each)
                arguments = f"{places}, {lengths}, {asked}, i64 {asked_from}, i1 {reads}"
                for rows in HEIGHTS:
                    wanted = self.b.define(f"and i1 {some}, {self._is('eq', height, str(rows))}", "b1").text
                    with self._if(wanted):
                        self.b.raw(f"call void @{tile_function(self.functions, rows)}({arguments})")

    def _asked(self, first: str, next_panel: str, sizes: tuple[str, str], then: _Ahead) -> tuple[str, str]:
        """Return the prefetch arguments of tiles, and the number of lines of the next panel that each prefetches."""
        tiles, terms = sizes
        left = self._op("sub", "%columns", first)
        within = self._is("ugt", left, str(WIDTH))
        columns = self._least(str(WIDTH), self._select(within, self._op("sub", left, str(WIDTH)), "%columns"))
        rows, length = self._select("%turned_b", columns, terms), self._select("%turned_b", terms, columns)
        chunks = self._op("add", self._up(length, str(LANES)), self._splits("%b", "%ldb"))
        exists = self.b.define(f"or i1 {within}, {then.exists}", "b1").text
        each = self._select(exists, self._up(self._times(rows, chunks), tiles), "0")
        panel = self._pick(exists, self._pick(within, next_panel, then.panel), "%scratch")
        most = self._op("udiv", terms, str(_LEAST_BURST))
        c_chunks = self._op("add", str(VECTORS), self._splits("%c", "%ldc"))
        # With few terms, prefetch only the first line of a row: processors fetch lines in pairs.
        few = self._is("ult", most, self._times(c_chunks, str(HEIGHTS[0])))
        c_chunks = self._select(few, "1", c_chunks)
        rounds = self._least(self._most(self._times(c_chunks, str(HEIGHTS[0])), each), most)
        burst = self._op("udiv", terms, rounds)
        numbers = ", ".join(f"i64 {one}" for one in (rounds, burst, c_chunks))
        return f"{numbers}, ptr {panel}, i64 %ldb, i64 {chunks}, i64 {each}", each

    def _splits(self, base: str, row: str) -> str:
        """1 if rows of a matrix are not aligned to cache lines, else 0."""
        address = self.b.define(f"ptrtoint ptr {base} to i64", "i64").text
        low = self._op("and", self._op("or", address, self._times(row, str(SIZE))), str(VECTOR_BYTES - 1))
        return self.b.define(f"zext i1 {self._is('ne', low, '0')} to i64", "i64").text
