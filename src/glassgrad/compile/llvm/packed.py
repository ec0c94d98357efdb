"""One product of matrices for all sizes, C = A B + bias in float32, for eager mode.

The products of a compiled step (`gemm`) know their sizes. Eager mode multiplies matrices of any size, and would wait
for a function of each. Here sizes are arguments, as in a library, so that one module serves all products and is made
once. The scheme is that of Goto and van de Geijn (2008): a block of A is packed tile by tile and stays in the
second-level cache, panels of B in the first-level one, and a tile of C is summed in registers.

A tile has 14 rows of two vectors, which leaves four of 32 registers for B and A. Rows are divided into tiles of 14, 13
or 12, so that none is thin: `divides` says which numbers of rows can be.
"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.compile.llvm.ir import Builder, Function, LoopNest, Module, Value
from glassgrad.compile.llvm.memory_ops import load_vector, prefetch, store_vector
from glassgrad.compile.llvm.packed_sizes import (
    BLOCK,
    DEPTH,
    KIND,
    LANES,
    SCRATCH,
    VECTOR_BYTES,
    VECTORS,
    WIDTH,
)
from glassgrad.compile.llvm.products import memory_of, one_of, record, word
from glassgrad.compile.llvm.tiles import definition, named, pack_columns_function, pack_rows_function, place
from glassgrad.compile.llvm.words import Words

# Words of a share: array objects, where their parts begin (in bytes), sizes, distances of rows (of columns, where they
# lie in order), whether A and B lie column by column, a bias (an array object, or 0) and where it begins. Batches first
# to last have two axes; `inner` is the length of the second one, then come the distances of matrices in bytes.
A, B, C, A_START, B_START, C_START, M, N, K, LDA, LDB, LDC, TURNED_A, TURNED_B, BIAS, BIAS_START = range(16)
FIRST, LAST, INNER, A_OUTER, A_INNER, B_OUTER, B_INNER, C_OUTER, C_INNER = range(16, 25)
HEIGHTS = (14, 13, 12)

_ARGUMENTS = ("rows", "columns", "k", "lda", "ldb", "ldc", "from_row")


def divides(rows: int) -> bool:
    """Tell whether so many rows can be divided into tiles of `HEIGHTS`; from 72 on, all can."""
    tiles = -(-rows // HEIGHTS[0])
    return rows >= tiles * HEIGHTS[-1] > 0


def module(header: str, attributes: str, data: int) -> str:
    """Return the text of ``packed``, a function of a context and the number of a share.

    Args:
        header: first lines of the module.
        attributes: those of every function.
        data: where an array object has its address.
    """
    functions = Module(VECTOR_BYTES)
    body = _Product(functions).definition()
    return "\n".join([header, functions.text(), body, _entry(data), attributes])


def _entry(data: int) -> str:
    """Read the record of a share, and multiply one matrix of the batch after the other."""
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


class _Product(Words):
    """Writes the function that goes through blocks, panels and tiles."""

    def __init__(self, functions: Module) -> None:
        super().__init__(LoopNest(Function(functions)), KIND)
        self.functions = functions

    def definition(self) -> str:
        """Return the whole function.

        ``multiply(a, b, c, from, scratch, sizes and distances, turned_a, turned_b, reads)``: if `reads`, C begins with
        what lies at `from`, in rows that are `from_row` apart.
        """
        blocks = self._up("%k", str(DEPTH))
        depth = self._times(self._up(self._up("%k", blocks), str(LANES)), str(LANES))
        a_term = self._select("%turned_a", "%lda", "1")
        b_term = self._select("%turned_b", "1", "%ldb")
        with self.code.loop("0", "%k", depth) as loop:
            first = loop.counter.text
            terms = self._least(depth, self._op("sub", "%k", first))
            later = self._is("ne", first, "0")
            begins = (
                self._pick(later, "%c", "%from"),
                self._select(later, "%ldc", "%from_row"),
                self.b.define(f"or i1 {later}, %reads", "b1").text,
            )
            left = self._place("%a", self._times(first, a_term))
            right = self._place("%b", self._times(first, b_term))
            self._blocks(left, right, terms, begins)
        self.b.raw("ret void")
        pointers = ["ptr %a", "ptr %b", "ptr %c", "ptr %from", "ptr %scratch"]
        flags = ["i1 %turned_a", "i1 %turned_b", "i1 %reads"]
        params = ", ".join([*pointers, *(f"i64 %{name}" for name in _ARGUMENTS), *flags])
        lines = "\n".join(self.b.lines)
        return f"define internal void @multiply({params}) #0 {{\nentry:\n{lines}\n}}\n"

    def _blocks(self, left: str, right: str, terms: str, begins: tuple[str, str, str]) -> None:
        """Go through the rows, as many at a time as fit; blocks differ by one row at most, so that all divide."""
        count = self._up("%rows", self._op("udiv", str(BLOCK), terms))
        a_row = self._select("%turned_a", "1", "%lda")
        packed = self._place("%scratch", str((DEPTH + LANES) * WIDTH))
        with self.code.loop("0", count, 1) as loop:
            top = self._op("udiv", self._times(loop.counter.text, "%rows"), count)
            after = self._op("add", loop.counter.text, "1")
            rows = self._op("sub", self._op("udiv", self._times(after, "%rows"), count), top)
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
            self._panels((packed, right), c, parts, terms)

    def _pack_left(self, places: tuple[str, str, str], part: tuple[str, str, str], terms: str) -> None:
        """Pack tiles of A: for each term the elements of their rows."""
        (source, a_row, packed), (first, height, number) = places, part
        by_rows = pack_columns_function(self.functions, KIND, LANES)
        by_terms = pack_rows_function(self.functions, KIND, 1, LANES)
        with self._if(self._is("ne", number, "0")), self.code.loop("0", number, 1) as loop:
            row = self._op("add", first, self._times(loop.counter.text, height))
            here, there = self._place(source, self._times(row, a_row)), self._place(packed, self._times(row, terms))
            numbers = f"i64 {terms}, i64 %lda, i64 {height}, i64 {height}"
            self._either("%turned_a", by_terms, by_rows, f"ptr {here}, ptr {there}, {numbers}")

    def _panels(
        self, sides: tuple[str, str], c: tuple[str, str, str, str], parts: Sequence[tuple[str, str, str]], terms: str
    ) -> None:
        """Pack the panels of B one by one; each meets all tiles of the block."""
        (packed, right), (target, begins, begins_row, reads) = sides, c
        by_terms = pack_columns_function(self.functions, KIND, LANES)
        by_rows = pack_panel_function(self.functions)
        b_column = self._select("%turned_b", "%ldb", "1")
        with self.code.loop("0", "%columns", WIDTH) as loop:
            first = loop.counter.text
            columns = self._least(str(WIDTH), self._op("sub", "%columns", first))
            source = self._place(right, self._times(first, b_column))
            numbers = f"i64 {terms}, i64 %ldb, i64 {WIDTH}, i64 {columns}"
            self._either("%turned_b", by_terms, by_rows, f"ptr {source}, ptr %scratch, {numbers}")
            for top, height, number in parts:
                left = self._place(packed, self._times(top, terms))
                there = self._place(self._place(target, self._times(top, "%ldc")), first)
                come = self._place(self._place(begins, self._times(top, begins_row)), first)
                places = f"ptr {left}, ptr %scratch, ptr {there}, ptr {come}"
                sizes = f"i64 {terms}, i64 %ldc, i64 {begins_row}, i64 {columns}, i64 {number}, i1 {reads}"
                some = self._is("ne", number, "0")
                for rows in HEIGHTS:
                    wanted = self.b.define(f"and i1 {some}, {self._is('eq', height, str(rows))}", "b1").text
                    with self._if(wanted):
                        self.b.raw(f"call void @{_tile_function(self.functions, rows)}({places}, {sizes})")


# --- the innermost functions ----------------------------------------------------------------------

_TILE_NUMBERS = ("k", "c_row", "from_row", "columns", "count")


def _tile_function(functions: Module, rows: int) -> str:
    """Return the function (a, b, c, from, numbers, reads) that computes `count` tiles, one below the other.

    Both A and B are packed. Columns beyond `columns` are neither read nor written. The same code serves all tiles,
    since writing through a mask costs little beside so many terms.
    """

    def write(name: str) -> str:
        code = LoopNest(Function(functions))
        first = code.current
        exist = [_columns(first, at) for at in range(VECTORS)]
        some = first.splat(Value("%reads", "b1"), LANES)
        read = [first.binary("and", one, some) for one in exist]
        steps = {what: first.define(f"mul i64 %{what}, {rows}", "i64").text for what in ("k", "c_row", "from_row")}
        stop = first.define(f"mul i64 %k, {WIDTH}", "i64").text
        with code.loop("0", "%count", 1) as loop:
            b = code.current
            far = {what: b.define(f"mul i64 {loop.counter.text}, {step}", "i64").text for what, step in steps.items()}
            target, come = place(b, KIND, "%c", far["c_row"]), place(b, KIND, "%from", far["from_row"])
            _ask(code, target, rows)
            sums = _sums(code, place(b, KIND, "%a", far["k"]), stop, rows)
            _store(b, sums, (target, come), (exist, read))
        code.current.raw("ret void")
        params = ["ptr %a", "ptr %b", "ptr %c", "ptr %from", *(f"i64 %{one}" for one in _TILE_NUMBERS), "i1 %reads"]
        return definition(f"{name}({', '.join(params)})", code.current)

    return named(functions, f"packed_tile_{rows}", write)


def _columns(b: Builder, vector: int) -> Value:
    """Return which lanes of a vector of columns exist."""
    count = b.splat(b.define("trunc i64 %columns to i32", "i32"), LANES)
    numbers = Value("<" + ", ".join(f"i32 {vector * LANES + lane}" for lane in range(LANES)) + ">", "i32", LANES)
    return b.compare("lt", numbers, count)


def _ask(code: LoopNest, target: str, rows: int) -> None:
    """Ask for the tile of C before its sums are ready."""
    with code.loop("0", str(rows), 1) as loop:
        b = code.current
        row = place(b, KIND, target, b.define(f"mul i64 {loop.counter.text}, %c_row", "i64").text)
        for vector in range(VECTORS):
            prefetch(b, place(b, KIND, row, vector * LANES), writes=True)


def _sums(code: LoopNest, left: str, stop: str, rows: int) -> list[list[Value]]:
    """Add up all terms; return the vectors of each row."""
    zero = code.current.const(0, KIND, LANES)
    with code.loop("0", stop, WIDTH) as loop:
        b = code.current
        sums = [[loop.carry(b, zero) for _ in range(VECTORS)] for _ in range(rows)]
        term = loop.carry(b, Value("0", "i64")).text
        here, right = place(b, KIND, left, term), place(b, KIND, "%b", loop.counter.text)
        addresses = [place(b, KIND, right, vector * LANES) for vector in range(VECTORS)]
        side = [load_vector(b, KIND, one, (LANES, 1, 0, None), [], None, one) for one in addresses]
        for row in range(rows):
            spread = b.splat(b.define(f"load float, ptr {place(b, KIND, here, row)}", KIND), LANES)
            sums[row] = [b.fma(spread, vector, total) for vector, total in zip(side, sums[row], strict=True)]
        loop.next = [*(total for row in sums for total in row), b.define(f"add i64 {term}, {rows}", "i64")]
    return sums


def _store(
    b: Builder, sums: Sequence[Sequence[Value]], places: tuple[str, str], masks: tuple[list[Value], list[Value]]
) -> None:
    """Add the sums to what C begins with, which is 0 where nothing is read."""
    target, come = places
    for number, row in enumerate(sums):
        if number:
            target, come = place(b, KIND, target, "%c_row"), place(b, KIND, come, "%from_row")
        for at, (total, exists, read) in enumerate(zip(row, *masks, strict=True)):
            before = place(b, KIND, come, at * LANES)
            begun = load_vector(b, KIND, before, (LANES, 1, 0, read), [], None, before)
            store_vector(b, b.fadd(begun, total), place(b, KIND, target, at * LANES), (LANES, 1, 0, exists))


def pack_panel_function(functions: Module) -> str:
    """Return the function (b, panel, k, b_row, width, columns) that packs a panel of a B whose rows lie in order."""

    def write(name: str) -> str:
        code = LoopNest(Function(functions))
        exist = [_columns(code.current, at) for at in range(VECTORS)]
        with code.loop("0", "%k", 1) as loop:
            b = code.current
            source = place(b, KIND, "%b", b.define(f"mul i64 {loop.counter.text}, %b_row", "i64").text)
            target = place(b, KIND, "%panel", b.define(f"mul i64 {loop.counter.text}, %width", "i64").text)
            for at, mask in enumerate(exist):
                address = place(b, KIND, source, at * LANES)
                value = load_vector(b, KIND, address, (LANES, 1, 0, mask), [], None, address)
                store_vector(b, value, place(b, KIND, target, at * LANES), (LANES, 1, 0, None))
        code.current.raw("ret void")
        params = "ptr %b, ptr %panel, i64 %k, i64 %b_row, i64 %width, i64 %columns"
        return definition(f"{name}({params})", code.current)

    return named(functions, "packed_panel", write)
