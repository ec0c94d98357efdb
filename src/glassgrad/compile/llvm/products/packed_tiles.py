"""The innermost functions of `packed`: tiles of C summed in registers, and the packing of A and B.

The operands of a product are usually in the third-level cache or beyond. A load of a cache line from there takes as
long as about a hundred vector multiplications, and only a dozen loads can be in flight. So tiles prefetch one line at a
time between their sums: their part of C, and the next panel of B.
"""

from __future__ import annotations

from collections.abc import Sequence

from glassgrad.compile.llvm.loops.memory_ops import load_vector, prefetch, store_vector
from glassgrad.compile.llvm.module.ir import Builder, Function, Loop, LoopNest, Module, Value
from glassgrad.compile.llvm.products.packed_sizes import KIND, LANES, VECTORS, WIDTH, lanes_of
from glassgrad.compile.llvm.products.tiles import definition, named, place

_TILE_NUMBERS = ("k", "c_row", "from_row", "columns", "count", "rounds", "burst", "c_chunks")
_ASKED_NUMBERS = ("next_row", "chunks", "each", "asked")


def tile_function(functions: Module, rows: int) -> str:
    """Return the function (a, b, c, from, numbers, asked, reads) that computes `count` tiles, one below the other.

    Both A and B are packed. Columns beyond `columns` are neither read nor written. The same code serves all tiles,
    because a masked store costs little compared with the sums over all terms.

    The sums of a tile are computed in `rounds` of `burst` terms; the last round includes the remainder. A round
    prefetches a line of the tile of C, whose rows span `c_chunks` lines each, and a line of the next panel of B. The
    panel starts at `next`; its rows of `chunks` lines are `next_row` apart. Each tile prefetches `each` lines, the
    first tile from line `asked` on.
    """

    def write(name: str) -> str:
        code = LoopNest(Function(functions))
        first = code.current
        exist = [_columns(first, at) for at in range(VECTORS)]
        some = first.splat(Value("%reads", "b1"), LANES)
        read = [first.binary("and", one, some) for one in exist]
        steps = {what: first.define(f"mul i64 %{what}, {rows}", "i64").text for what in ("k", "c_row", "from_row")}
        with code.loop("0", "%count", 1) as loop:
            b = code.current
            far = {what: b.define(f"mul i64 {loop.counter.text}, {step}", "i64").text for what, step in steps.items()}
            target, come = place(b, KIND, "%c", far["c_row"]), place(b, KIND, "%from", far["from_row"])
            lines = b.define(f"mul i64 %c_chunks, {rows}", "i64").text
            before = b.define(f"mul i64 {loop.counter.text}, %each", "i64").text
            begin = b.define(f"add i64 {before}, %asked", "i64").text
            asked = (
                _Lines(b, target, "0", ("%c_row", "%c_chunks", lines)),
                _Lines(b, "%next", begin, ("%next_row", "%chunks", "%each")),
            )
            sums = _sums(code, place(b, KIND, "%a", far["k"]), rows, asked)
            _store(code.current, sums, (target, come), (exist, read))
        code.current.raw("ret void")
        params = ["ptr %a", "ptr %b", "ptr %c", "ptr %from", *(f"i64 %{one}" for one in _TILE_NUMBERS)]
        params += ["ptr %next", *(f"i64 %{one}" for one in _ASKED_NUMBERS), "i1 %reads"]
        return definition(f"{name}({', '.join(params)})", code.current)

    return named(functions, f"packed_tile_{rows}", write)


def _columns(b: Builder, vector: int, columns: str = "%columns", lanes: int = LANES) -> Value:
    """Return the mask of the lanes of a vector of columns that exist."""
    count = b.splat(b.define(f"trunc i64 {columns} to i32", "i32"), lanes)
    numbers = Value("<" + ", ".join(f"i32 {vector * lanes + lane}" for lane in range(lanes)) + ">", "i32", lanes)
    return b.compare("lt", numbers, count)


class _Lines:
    """Cache lines to prefetch, one per round.

    Args:
        b: the builder for their addresses.
        base: the address of the first row.
        first: the number of the first line.
        numbers: distance of rows, lines per row, and the number of lines.
    """

    def __init__(self, b: Builder, base: str, first: str, numbers: tuple[str, str, str]) -> None:
        self.base, (row, self.chunks, self.count) = base, numbers
        before = b.define(f"mul i64 {b.define(f'udiv i64 {first}, {self.chunks}', 'i64').text}, {row}", "i64").text
        self.chunk = b.define(f"urem i64 {first}, {self.chunks}", "i64")
        within = b.define(f"mul i64 {self.chunk.text}, {LANES}", "i64").text
        self.offset = b.define(f"add i64 {before}, {within}", "i64")
        last = b.define(f"sub i64 {self.chunks}, 1", "i64").text
        self.onwards = b.define(f"sub i64 {row}, {b.define(f'mul i64 {last}, {LANES}', 'i64').text}", "i64").text

    def ask(self, b: Builder, loop: Loop) -> list[Value]:
        """Prefetch the line of this round; return the loop-carried values for the next."""
        offset, chunk = loop.carry(b, self.offset), loop.carry(b, self.chunk)
        prefetch(b, place(b, KIND, self.base, offset.text), writes=False, level=2)
        more = b.define(f"add i64 {chunk.text}, 1", "i64").text
        over = b.define(f"icmp eq i64 {more}, {self.chunks}", "b1").text
        step = b.define(f"select i1 {over}, i64 {self.onwards}, i64 {LANES}", "i64").text
        left = b.define(f"icmp ult i64 {loop.counter.text}, {self.count}", "b1").text
        step = b.define(f"select i1 {left}, i64 {step}, i64 0", "i64").text
        return [
            b.define(f"add i64 {offset.text}, {step}", "i64"),
            b.define(f"select i1 {over}, i64 0, i64 {more}", "i64"),
        ]


def _sums(code: LoopNest, left: str, rows: int, asked: Sequence[_Lines]) -> list[list[Value]]:
    """Sum all terms, round by round; return the vectors of each row."""
    zero, none = code.current.const(0, KIND, LANES), Value("0", "i64")
    stop, burst = (code.current.define(f"mul i64 %{what}, {WIDTH}", "i64").text for what in ("k", "burst"))
    last = code.current.define("sub i64 %rounds, 1", "i64").text
    with code.loop("0", "%rounds", 1) as loop:
        b = code.current
        sums = [[loop.carry(b, zero) for _ in range(VECTORS)] for _ in range(rows)]
        term, begin = loop.carry(b, none), loop.carry(b, none)
        then = [one for lines in asked for one in lines.ask(b, loop)]
        after = b.define(f"add i64 {begin.text}, {burst}", "i64").text
        is_last = b.define(f"icmp eq i64 {loop.counter.text}, {last}", "b1").text
        end = b.define(f"select i1 {is_last}, i64 {stop}, i64 {after}", "i64")
        sums, term = _terms(code, left, (sums, term), (begin.text, end.text))
        loop.next = [*(total for row in sums for total in row), term, end, *then]
    return sums


def _terms(
    code: LoopNest, left: str, begun: tuple[list[list[Value]], Value], bounds: tuple[str, str]
) -> tuple[list[list[Value]], Value]:
    """Add terms to sums; return the sums and the next element of A. The bounds are elements of B."""
    sums, begin = begun
    with code.loop(*bounds, WIDTH) as loop:
        b = code.current
        sums = [[loop.carry(b, one) for one in row] for row in sums]
        term = loop.carry(b, begin)
        here, right = place(b, KIND, left, term.text), place(b, KIND, "%b", loop.counter.text)
        addresses = [place(b, KIND, right, vector * LANES) for vector in range(VECTORS)]
        side = [load_vector(b, KIND, one, (LANES, 1, 0, None), [], None, one) for one in addresses]
        for row in range(len(sums)):
            spread = b.splat(b.define(f"load float, ptr {place(b, KIND, here, row)}", KIND), LANES)
            sums[row] = [b.fma(spread, vector, total) for vector, total in zip(side, sums[row], strict=True)]
        term = b.define(f"add i64 {term.text}, {len(sums)}", "i64")
        loop.next = [*(total for row in sums for total in row), term]
    return sums, term


def _store(
    b: Builder, sums: Sequence[Sequence[Value]], places: tuple[str, str], masks: tuple[list[Value], list[Value]]
) -> None:
    """Add the sums to the initial values of C, which are 0 if nothing is read.

    All reads precede all writes: rows are often a multiple of 4096 bytes apart, and processors mistake such a row for
    the one just written (4K aliasing).
    """
    target, come = places
    exists, read = masks
    found = []
    for number, row in enumerate(sums):
        come = place(b, KIND, come, "%from_row") if number else come
        before = [place(b, KIND, come, at * LANES) for at in range(VECTORS)]
        loads = zip(before, read, strict=True)
        begun = [load_vector(b, KIND, one, (LANES, 1, 0, mask), [], None, one) for one, mask in loads]
        found.append([b.fadd(one, total) for one, total in zip(begun, row, strict=True)])
    for number, row in enumerate(found):
        target = place(b, KIND, target, "%c_row") if number else target
        for at, (total, mask) in enumerate(zip(row, exists, strict=True)):
            store_vector(b, total, place(b, KIND, target, at * LANES), (LANES, 1, 0, mask))


_TERMS = 4  # that are packed at a time


def pack_turned_function(functions: Module) -> str:
    """Return the function (a, packed, k, a_term, height, count) that packs tiles of a column-major A.

    It packs some terms of all tiles at a time, so memory is read in order.
    """

    def write(name: str) -> str:
        code = LoopNest(Function(functions))
        b = code.current
        exist = _columns(b, 0, "%height")
        whole = b.define(f"and i64 %k, -{_TERMS}", "i64").text
        far = b.define("mul i64 %k, %height", "i64").text
        for start, stop, step in (("0", whole, _TERMS), (whole, "%k", 1)):
            some = code.current.define(f"icmp ult i64 {start}, {stop}", "b1").text
            with code.when(some), code.loop(start, stop, step) as loop:
                b, term = code.current, loop.counter.text
                source = place(b, KIND, "%a", b.define(f"mul i64 {term}, %a_term", "i64").text)
                target = place(b, KIND, "%packed", b.define(f"mul i64 {term}, %height", "i64").text)
                with code.loop("0", "%count", 1) as tiles:
                    b, at = code.current, tiles.counter.text
                    here = place(b, KIND, source, b.define(f"mul i64 {at}, %height", "i64").text)
                    there = place(b, KIND, target, b.define(f"mul i64 {at}, {far}", "i64").text)
                    for _ in range(step):
                        value = load_vector(b, KIND, here, (LANES, 1, 0, exist), [], None, here)
                        store_vector(b, value, there, (LANES, 1, 0, exist))
                        here, there = place(b, KIND, here, "%a_term"), place(b, KIND, there, "%height")
        code.current.raw("ret void")
        params = "ptr %a, ptr %packed, i64 %k, i64 %a_term, i64 %height, i64 %count"
        return definition(f"{name}({params})", code.current)

    return named(functions, "packed_turned", write)


def pack_panel_function(functions: Module) -> str:
    """Return the function (b, panel, k, b_row, width, columns) that packs a panel of a row-major B."""

    def write(name: str) -> str:
        code, lanes = LoopNest(Function(functions)), lanes_of(functions)
        exist = [_columns(code.current, at, lanes=lanes) for at in range(VECTORS)]
        with code.loop("0", "%k", 1) as loop:
            b = code.current
            source = place(b, KIND, "%b", b.define(f"mul i64 {loop.counter.text}, %b_row", "i64").text)
            target = place(b, KIND, "%panel", b.define(f"mul i64 {loop.counter.text}, %width", "i64").text)
            for at, mask in enumerate(exist):
                address = place(b, KIND, source, at * lanes)
                value = load_vector(b, KIND, address, (lanes, 1, 0, mask), [], None, address)
                store_vector(b, value, place(b, KIND, target, at * lanes), (lanes, 1, 0, None))
        code.current.raw("ret void")
        params = "ptr %b, ptr %panel, i64 %k, i64 %b_row, i64 %width, i64 %columns"
        return definition(f"{name}({params})", code.current)

    return named(functions, "packed_panel", write)
