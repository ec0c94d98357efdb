"""Matrix products of bfloat16 in AMX: two-dimensional registers, and one instruction that multiplies whole blocks.

A tile has 16 rows of 64 bytes. `tdpbf16ps` adds to 16 x 16 float32 sums the product of a tile of A (16 rows of 32
terms) and a tile of B (16 pairs of terms of 16 columns, the order in which `pairs` packs B). Four of the eight tiles
hold the sums of 32 rows and 32 columns over all terms, two hold A and two B, so every loaded tile is multiplied twice
(Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on AMX). A is read in place if it is row-major
and its terms fill tiles; otherwise, and for the remaining rows, it is packed and padded with zeros. Sums are stored as
float32 into scratch memory and rounded from there.

Every instruction is a separate function, which LLVM inlines. Tests replace the bodies by equivalent code on arrays, so
every address, edge and stride is checked on processors without AMX.
"""

from __future__ import annotations

from dataclasses import replace

from glassgrad.compile.llvm.loops.memory_ops import load_vector, store_vector
from glassgrad.compile.llvm.module.ir import Builder, Function, LoopNest, Module, Value
from glassgrad.compile.llvm.products.gemm import Gemm, TileShape
from glassgrad.compile.llvm.products.pairs import (
    LANES,
    PairWriter,
    interleaved,
    pack_lines_function,
    pack_pairs_function,
)
from glassgrad.compile.llvm.products.tiles import definition, existing, named, place, transposed

ROWS = 16
"""Rows of a tile; in a tile of B, each row holds pairs of terms."""
TERMS = 32
"""Terms in a row of a tile of A."""
_HEIGHT = 2 * ROWS  # of a block of sums, and of the packed part of A if not all of A is packed
_WIDTH = 2 * LANES
_ROW = 64  # bytes of a tile's row
_SUMS = 4 * _HEIGHT * _WIDTH  # bytes
# Padding of a packed row in elements, because rows at a power-of-two distance fall into few sets of the first-level
# cache.
_SPARE = TERMS


def pays(rows: int, columns: int, terms: int) -> bool:
    """Tell whether a product fills tiles well enough; smaller ones would mostly multiply zeros."""
    return rows >= ROWS and columns >= LANES and terms >= TERMS


def tile_gemm(gemm: Gemm) -> Gemm:
    """Convert a product that is laid out for pairs into the form for `TileWriter`."""
    packs = gemm.a_strides[1] != 1 or gemm.k % TERMS != 0
    return replace(gemm, shape=TileShape(_HEIGHT, 2, gemm.k), pack_a=packs)


def tile_scratch(rows: int, gemm: Gemm) -> int:
    """Return the bytes of sums and of packed parts of B and A."""
    steps = -(-gemm.k // TERMS)
    panel = 4 * (steps + 1) * ROWS * _WIDTH
    packed = -(-rows // _HEIGHT) * _HEIGHT if gemm.pack_a else _HEIGHT
    return _SUMS + panel + 2 * packed * (steps * TERMS + _SPARE)


class TileWriter(PairWriter):
    """Writes a product as a function, around blocks of two by two tiles; all terms are in one block."""

    def __init__(self, module: Module, gemm: Gemm) -> None:
        super().__init__(module, gemm)
        self.rows = _HEIGHT

    def _block(self, start: str, terms: str, adds: str) -> None:
        b = self.b
        self._steps = b.define(f"lshr i64 {self._plus(terms, TERMS - 1)}, 5", "i64").text
        self._row = self._plus(self._times(self._steps, TERMS), _SPARE)
        self._panel_place = place(b, "u8", "%panel", _SUMS)
        behind = self._times(self._plus(self._steps, 1), 4 * ROWS * _WIDTH)
        self._packed = place(b, "u8", self._panel_place, behind)
        _operate(b, "config", "ptr @tile_shapes")
        self._pack_left("%a", terms)
        self._panels("%a", "%b", (terms, adds))
        _operate(self.b, "release", "")

    def _is_packed(self, rows: int) -> bool:
        return self.gemm.pack_a or rows < _HEIGHT

    def _packed_left(self, row: str, terms: str) -> str:
        return place(self.b, "bf16", self._packed, self._times(row, self._row)) if self.gemm.pack_a else self._packed

    def _pack_left(self, a: str, terms: str) -> None:
        """Pack all rows of A, or those that do not fill a block."""
        in_order = self.gemm.a_strides[1] == 1
        name = (pack_in_order_function if in_order else pack_turned_function)(self.module)

        def one(row: str, rows: int, count: str) -> None:
            if not self._is_packed(rows):
                return
            with self.code.loop("0", count, 1) as loop:
                first = self.b.define(f"add i64 {row}, {self._times(loop.counter.text, rows)}", "i64").text
                source, target = self._place(a, self._times(first, self.a_strides[0])), self._packed_left(first, terms)
                numbers = f"i64 {terms}, i64 %lda, i64 {self._row}, i64 {rows}"
                self.b.raw(f"call void @{name}(ptr {source}, ptr {target}, {numbers})")

        self._over_rows(one)

    def _panel(self, places: tuple[str, str, str], vectors: int, sizes: tuple[str, str, str]) -> None:
        (a, right, column), (columns, terms, _) = places, sizes
        self._pack_right(self._place(right, self._times(column, self.b_strides[1])), vectors, columns, terms)
        c, is_cut = self._place("%c", column), self._is_cut(columns, vectors)

        def one(row: str, rows: int, count: str) -> None:
            name = block_function(self.module, 1 + (rows > ROWS), vectors, is_cut=is_cut)
            with self.code.loop("0", count, 1) as loop:
                first = self.b.define(f"add i64 {row}, {self._times(loop.counter.text, rows)}", "i64").text
                target = self._place(c, self._times(first, "%ldc"))
                if self._is_packed(rows):
                    left, a_row = self._packed_left(first, terms), self._times(self._row, 2)
                else:
                    left, a_row = self._place(a, self._times(first, "%lda")), self._times("%lda", 2)
                numbers = ", ".join(f"i64 {one}" for one in (self._steps, a_row, "%ldc", columns, rows))
                pointers = f"ptr {left}, ptr {self._panel_place}, ptr {target}, ptr %panel"
                self.b.raw(f"call void @{name}({pointers}, {numbers})")

        self._over_rows(one)

    def _pack_right(self, source: str, vectors: int, columns: str, terms: str) -> None:
        """Pack a panel of B in pairs, padded with zeros to the end of the last tile."""
        turned = self.gemm.b_strides[1] != 1
        pack = pack_lines_function(self.module) if turned else pack_pairs_function(self.module, vectors)
        numbers = f"i64 {terms}, i64 %ldb, i64 {_WIDTH}, i64 {columns}"
        self.b.raw(f"call void @{pack}(ptr {source}, ptr {self._panel_place}, {numbers})")
        if not turned and self.gemm.k % TERMS:  # lines are packed 32 terms at a time, including zeros
            start = self._times(self._pairs(terms), _WIDTH)
            with self.code.loop(start, self._times(self._steps, ROWS * _WIDTH), LANES) as loop:
                at = place(self.b, "u32", self._panel_place, loop.counter.text)
                store_vector(self.b, self.b.const(0, "u32", LANES), at, (LANES, 1, 0, None))


def block_function(module: Module, tall: int, vectors: int, *, is_cut: bool) -> str:
    """Return the function (a, b, c, sums, numbers) that computes a block of `tall` by `vectors` tiles and rounds it.

    Only `rows` and `columns` of the block exist. Rows of A are a_row bytes apart, those of C c_row elements; a step is
    a tile's terms.
    """

    def write(name: str) -> str:
        code = LoopNest(Function(module))
        b = code.current
        mask = existing(b, LANES, (vectors - 1) * LANES)
        lower = b.define(f"mul i64 %a_row, {ROWS}", "i64").text
        places = [(row, vector, 2 * row + vector) for row in range(tall) for vector in range(vectors)]
        for _, _, number in places:
            _operate(b, "zero", "", number)
        with code.loop("0", "%steps", 1) as loop:
            _multiply(code.current, loop.counter.text, (tall, vectors), lower)
        b = code.current
        for row, vector, number in places:
            at = place(b, "u8", "%sums", row * ROWS * 2 * _ROW + vector * _ROW)
            _operate(b, "store", f"ptr {at}, i64 {2 * _ROW}", number)
        with code.loop("0", "%rows", 1) as loop:
            b = code.current
            source = place(b, "f32", "%sums", b.define(f"mul i64 {loop.counter.text}, {_WIDTH}", "i64").text)
            target = place(b, "bf16", "%c", b.define(f"mul i64 {loop.counter.text}, %c_row", "i64").text)
            for vector in range(vectors):
                first = vector * LANES
                total = load_vector(b, "f32", place(b, "f32", source, first), (LANES, 1, 0, None), [], None, source)
                kept = mask if is_cut and vector == vectors - 1 else None
                store_vector(b, b.cast(total, "bf16"), place(b, "bf16", target, first), (LANES, 1, 0, kept))
        code.current.raw("ret void")
        numbers = ", ".join(f"i64 %{one}" for one in ("steps", "a_row", "c_row", "columns", "rows"))
        return definition(f"{name}(ptr %a, ptr %b, ptr %c, ptr %sums, {numbers})", code.current)

    return named(module, f"amx_{tall}x{vectors}{'_cut' if is_cut else ''}", write)


def _multiply(b: Builder, step: str, size: tuple[int, int], lower: str) -> None:
    """Add the products of 32 terms: sums in tiles 0 to 3, A in 4 and 5, B in 6 and 7."""
    tall, vectors = size
    left = place(b, "u8", "%a", b.define(f"mul i64 {step}, {_ROW}", "i64").text)
    right = place(b, "u8", "%b", b.define(f"mul i64 {step}, {ROWS * 2 * _ROW}", "i64").text)
    for row in range(tall):
        at = place(b, "u8", left, lower) if row else left
        _operate(b, "load", f"ptr {at}, i64 %a_row", 4 + row)
    for vector in range(vectors):
        _operate(b, "load", f"ptr {place(b, 'u8', right, vector * _ROW)}, i64 {2 * _ROW}", 6 + vector)
    for row in range(tall):
        for vector in range(vectors):
            _operate(b, "multiply", "", 2 * row + vector, 4 + row, 6 + vector)


# --- packing A ------------------------------------------------------------------------------------

_PACK = "ptr %x, ptr %packed, i64 %k, i64 %far, i64 %row, i64 %columns"


def pack_in_order_function(module: Module) -> str:
    """Return the function (x, packed, k, far, row, columns) that copies lines `far` apart to lines `row` apart.

    Zeros are written after the last term. `columns` is the number of lines.
    """

    def write(name: str) -> str:
        code = LoopNest(Function(module))
        with code.loop("0", "%columns", 1) as lines:
            b = code.current
            source = place(b, "bf16", "%x", b.define(f"mul i64 {lines.counter.text}, %far", "i64").text)
            target = place(b, "bf16", "%packed", b.define(f"mul i64 {lines.counter.text}, %row", "i64").text)
            with code.loop("0", "%k", TERMS) as terms:
                b, at = code.current, terms.counter.text
                layout = (TERMS, 1, 0, _before(b, at, "%k", TERMS))
                here = place(b, "bf16", source, at)
                value = load_vector(b, "u16", here, layout, [], None, here)
                store_vector(b, value, place(b, "bf16", target, at), (TERMS, 1, 0, None))
        code.current.raw("ret void")
        return definition(f"{name}({_PACK})", code.current)

    return named(module, "amx_pack_in_order", write)


def pack_turned_function(module: Module) -> str:
    """Return the function (x, packed, k, far, row, columns) that transposes columns, which are `far` apart, into lines.

    Sixteen lines of 16 pairs of terms at a time are transposed in registers.
    """

    def write(name: str) -> str:
        code = LoopNest(Function(module))
        offsets = [code.current.define(f"mul i64 %far, {term}", "i64").text for term in range(TERMS)]
        with code.loop("0", "%columns", LANES) as lines:
            b, first = code.current, lines.counter.text
            exists = _before(b, first, "%columns", LANES)
            source = place(b, "bf16", "%x", first)
            target = place(b, "bf16", "%packed", b.define(f"mul i64 {first}, %row", "i64").text)
            with code.loop("0", "%k", TERMS) as terms:
                _turn(code.current, terms.counter.text, (source, target), offsets, exists)
        code.current.raw("ret void")
        return definition(f"{name}({_PACK})", code.current)

    return named(module, "amx_pack_turned", write)


def _turn(b: Builder, term: str, places: tuple[str, str], offsets: list[str], exists: Value) -> None:
    source, target = places
    left = b.define(f"sub i64 %k, {term}", "i64").text
    start = place(b, "bf16", source, b.define(f"mul i64 {term}, %far", "i64").text)
    halves = []
    for number, offset in enumerate(offsets):
        follows = b.define(f"icmp ugt i64 {left}, {number}", "b1")
        # Missing terms are read from the first of these terms, which exists, and replaced by 0.
        at = place(b, "bf16", start, b.define(f"select i1 {follows.text}, i64 {offset}, i64 0", "i64").text)
        value = load_vector(b, "u16", at, (LANES, 1, 0, exists), [], None, at)
        halves.append(b.select(follows, value, b.like(0, value)))
    pairs = [interleaved(b, low, high) for low, high in zip(halves[::2], halves[1::2], strict=True)]
    row = place(b, "bf16", target, term)
    for value in transposed(b, pairs):
        store_vector(b, value, row, (LANES, 1, 0, None))
        row = place(b, "bf16", row, "%row")


def _before(b: Builder, first: str, stop: str, lanes: int) -> Value:
    """Return the mask of the positions from `first` on that are before `stop`."""
    left = b.define(f"trunc i64 {b.define(f'sub i64 {stop}, {first}', 'i64').text} to i32", "i32")
    numbers = Value("<" + ", ".join(f"i32 {lane}" for lane in range(lanes)) + ">", "i32", lanes)
    return b.compare("lt", numbers, b.splat(left, lanes))


# --- instructions ---------------------------------------------------------------------------------

# Name -> LLVM's intrinsic, and its parameters besides the numbers of tiles.
_OPERATIONS = {
    "config": ("ldtilecfg", ("ptr",)),
    "release": ("tilerelease", ()),
    "zero": ("tilezero", ()),
    "load": ("tileloadd64", ("ptr", "i64")),
    "store": ("tilestored64", ("ptr", "i64")),
    "multiply": ("tdpbf16ps", ()),
}


def _operate(b: Builder, operation: str, given: str, *tiles: int) -> None:
    """Emit one instruction, as a call of a function that contains only it and is inlined."""
    module = b.function.module
    name = "_".join(["tile", operation, *map(str, tiles)])
    if operation == "config":
        module.definitions["tile_shapes"] = _configuration()
    if name not in module.definitions:
        types = _OPERATIONS[operation][1]
        params = ", ".join(f"{kind} %{number}" for number, kind in zip(("at", "row"), types, strict=False))
        body = operation_body(module, operation, tiles)
        module.definitions[name] = f"define internal void @{name}({params}) alwaysinline #0 {{\n{body}  ret void\n}}\n"
    b.raw(f"call void @{name}({given})")


def operation_body(module: Module, operation: str, tiles: tuple[int, ...]) -> str:
    """Return the body of an instruction's function, with parameters %at and %row."""
    intrinsic, types = _OPERATIONS[operation]
    declared = ", ".join(["i8"] * len(tiles) + list(types))
    module.declarations[intrinsic] = f"declare void @llvm.x86.{intrinsic}({declared})"
    given = [f"i8 {tile}" for tile in tiles]
    given += [f"{kind} %{number}" for number, kind in zip(("at", "row"), types, strict=False)]
    return f"  call void @llvm.x86.{intrinsic}({', '.join(given)})\n"


def _configuration() -> str:
    """Return the 64 bytes that `ldtilecfg` reads: palette 1, and eight tiles of 16 rows of 64 bytes."""
    content = bytes([1, *[0] * 15]) + b"".join(_ROW.to_bytes(2, "little") for _ in range(8)) + bytes(16)
    content += bytes([ROWS] * 8 + [0] * 8)
    text = "".join(f"\\{byte:02x}" for byte in content)
    return f'@tile_shapes = internal constant [64 x i8] c"{text}", align 64\n'
