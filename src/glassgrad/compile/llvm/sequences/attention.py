"""Attention for all sizes, softmax(q kT * scale) v in float32 and its gradient, for eager mode.

A head is computed some rows of q at a time, so their scores, the softmax and the product with v stay in the cache. The
gradient recomputes the weights from the maximum and the sum of each row (Dao et al. 2022, "FlashAttention"). Under a
causal mask, blocks of keys that are masked for all rows of a block are skipped.

All products use the same tile of 8 rows (6 with sixteen registers) of one or two vectors: unpacked rows times a packed
panel, two vectors wide. Sizes are arguments, so one module serves all layers and is compiled once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from glassgrad.compile.llvm.loops.memory_ops import load_vector, store_vector
from glassgrad.compile.llvm.loops.scalar import across_lanes
from glassgrad.compile.llvm.math import math_call
from glassgrad.compile.llvm.module.ir import Builder, Function, LoopNest, Module, Value
from glassgrad.compile.llvm.module.words import Words
from glassgrad.compile.llvm.products.packed_sizes import KIND, VECTORS, lanes_of
from glassgrad.compile.llvm.products.packed_tiles import pack_panel_function
from glassgrad.compile.llvm.products.shares import memory_of, record, turns, word
from glassgrad.compile.llvm.products.tiles import definition, named, pack_columns_function, place

_ROWS = {16: 8, 8: 6}  # of a tile, by lanes: with two vectors each, they leave registers for A and B

# Words of a share. First each array: an object, the distances of its heads along two axes and of its rows, in
# elements. `o` is the result, or its cotangent in the backward pass; only the backward pass has the last three.
ARRAYS = ("q", "k", "v", "o", "dq", "dk", "dv")
_WORDS_OF_ARRAY = 4
# Then the statistics (heads, rows, 2), sizes, the first head and the one after the last, the length of the second axis
# of heads, whether row i attends only to keys up to i, the scale (the bits of a float), and the rows of a block.
_NUMBERS = ("rows", "keys", "width", "values", "first", "last", "inner", "causal", "scale", "block")
STATS = _WORDS_OF_ARRAY * len(ARRAYS)
NUMBERS = {name: STATS + 1 + at for at, name in enumerate(_NUMBERS)}
# Finally addresses of memory: packed keys and values by columns and by rows, packed rows of q and of the cotangent,
# scores (later the weights), and the cotangent of the weights (later of the scores).
MEMORY = ("keys_t", "values_t", "packed", "q_rows", "g_rows", "scores", "slopes")
MEMORY_AT = {name: STATS + 1 + len(_NUMBERS) + at for at, name in enumerate(MEMORY)}

_FORWARD, _BACKWARD = ARRAYS[:4], ARRAYS
_SIZES = ("rows", "keys", "width", "values", "block")


def module(header: str, attributes: str, vector_bytes: int, data: int) -> str:
    """Return the text of ``attend`` and ``attend_back``, functions of a context and the number of a share.

    Args:
        header: first lines of the module.
        attributes: the attributes of every function.
        vector_bytes: the width of a vector, 64 or 32.
        data: the offset of the data pointer in an array object.
    """
    functions = Module(vector_bytes)
    rows = _rows_of(functions)
    functions.definitions["ones"] = f"@ones = internal constant [{rows} x float] [{', '.join(['float 1.0'] * rows)}]"
    bodies = [_Forward(functions).definition(), _Backward(functions).definition()]
    entries = [_entry("attend", "forward", _FORWARD, data), _entry("attend_back", "backward", _BACKWARD, data)]
    return "\n".join([header, functions.text(), *bodies, *entries, attributes])


def _parameters(arrays: tuple[str, ...]) -> str:
    """Return the parameters of the function for a head, with their types."""
    pointers = [f"ptr %{name}" for name in (*arrays, "stats", *MEMORY)]
    sizes = [f"i64 %{name}" for name in (*(f"{array}_row" for array in arrays), *_SIZES)]
    return ", ".join([*pointers, *sizes, "i1 %causal", "float %scale"])


def _entry(name: str, of_head: str, arrays: tuple[str, ...], data: int) -> str:
    """Read the record of a share, and loop over its heads."""
    heads = ""
    for at, array in enumerate(ARRAYS):
        if array in arrays:
            first = _WORDS_OF_ARRAY * at
            heads += memory_of(array, first, data) + word(f"{array}.outer", first + 1)
            heads += word(f"{array}.inner", first + 2) + word(f"{array}_row", first + 3)
    read = "".join(word(name, at) for name, at in NUMBERS.items() if name not in {"scale", "causal"})
    read += word("causal.word", NUMBERS["causal"]) + word("scale", NUMBERS["scale"], "float")
    read += "".join(word(name, at, "ptr") for name, at in MEMORY_AT.items())
    places = "".join(
        f"""  %{array}.i = mul i64 %i, %{array}.outer
  %{array}.j = mul i64 %j, %{array}.inner
  %{array}.ij = add i64 %{array}.i, %{array}.j
  %{array} = getelementptr float, ptr %{array}.data, i64 %{array}.ij
"""
        for array in arrays
    )
    return f"""
define void @{name}(ptr %ctx, i64 %share) #0 {{
entry:
{record()}{heads}{memory_of("stats", STATS, data)}{read}\
  %causal = icmp ne i64 %causal.word, 0
  %of.head = shl i64 %rows, 1
  br label %head
{turns("body", "done", name="at", first="%first", last="%last")}\
  %i = udiv i64 %at, %inner
  %j = urem i64 %at, %inner
{places}\
  %stats.at = mul i64 %at, %of.head
  %stats = getelementptr float, ptr %stats.data, i64 %stats.at
  call void @{of_head}({_parameters(arrays)})
  %at.next = add i64 %at, 1
  br label %head
done:
  ret void
}}
"""


class _Product(NamedTuple):
    """Some rows times packed columns.

    Attributes:
        a: the address of the rows, and the distances of rows and terms.
        c: the address of the result, and the distance of its rows.
        sizes: terms, rows and columns.
        factors: the factors of the rows of the result.
        adds: whether the result is added to the existing values.
    """

    a: tuple[str, str, str]
    c: tuple[str, str]
    sizes: tuple[str, str, str]
    factors: str = "@ones"
    adds: str = "false"


def _rows_of(functions: Module) -> int:
    return _ROWS[lanes_of(functions)]


class _Head(Words):
    """Writes a function that loops over the blocks of a head."""

    def __init__(self, functions: Module) -> None:
        super().__init__(LoopNest(Function(functions)), KIND)
        self.functions, self.lanes, self.rows = functions, lanes_of(functions), _rows_of(functions)
        self.width = VECTORS * self.lanes
        # The distance of rows of scores: an odd number of cache lines, or the lines of a column would share a few sets.
        self.across = self._op("add", self._rounded("%keys", self.width), str(self.lanes))

    def _definition(self, name: str, arrays: tuple[str, ...]) -> str:
        self.b.raw("ret void")
        lines = "\n".join(self.b.lines)
        return f"define internal void @{name}({_parameters(arrays)}) #0 {{\nentry:\n{lines}\n}}\n"

    def _rounded(self, size: str, multiple: int) -> str:
        return self._times(self._up(size, str(multiple)), str(multiple))

    def _pack_turned(self, array: str, target: str, terms: str) -> None:
        """Pack keys or values as panels of columns: for each term, the keys of a panel."""
        pack = pack_columns_function(self.functions, KIND, self.lanes)
        high = self._rounded(terms, self.lanes)
        with self.code.loop("0", "%keys", self.width) as loop:
            first = loop.counter.text
            source = self._place(f"%{array}", self._times(first, f"%{array}_row"))
            there = self._place(target, self._times(first, high))
            count = self._least(str(self.width), self._op("sub", "%keys", first))
            numbers = f"i64 {terms}, i64 %{array}_row, i64 {self.width}, i64 {count}"
            self.b.raw(f"call void @{pack}(ptr {source}, ptr {there}, {numbers})")

    def _pack_rows(self, source: tuple[str, str], target: tuple[str, str], count: str, columns: str) -> None:
        """Pack `count` rows as panels of their columns; source and target are (address, distance)."""
        pack = pack_panel_function(self.functions)
        with self.code.loop("0", columns, self.width) as loop:
            first = loop.counter.text
            here, there = self._place(source[0], first), self._place(target[0], self._times(first, target[1]))
            left = self._least(str(self.width), self._op("sub", columns, first))
            numbers = f"i64 {count}, i64 {source[1]}, i64 {self.width}, i64 {left}"
            self.b.raw(f"call void @{pack}(ptr {here}, ptr {there}, {numbers})")

    def _seen(self, after: str) -> str:
        """Return the number of keys that the rows before `after` attend to."""
        return self._select("%causal", self._least("%keys", after), "%keys")

    def _multiply(self, one: _Product, packed: str, high: str) -> None:
        """Multiply with one panel after another; each has room for `high` terms."""
        terms, rows, columns = one.sizes
        narrow, wide = (_tile_function(self.functions, vectors) for vectors in (1, VECTORS))
        with self.code.loop("0", columns, self.width) as loop:
            first = loop.counter.text
            panel, target = self._place(packed, self._times(first, high)), self._place(one.c[0], first)
            left = self._least(str(self.width), self._op("sub", columns, first))
            pointers = f"ptr {one.a[0]}, ptr {panel}, ptr {target}, ptr {one.factors}"
            numbers = ", ".join(f"i64 {number}" for number in (terms, *one.a[1:], one.c[1], rows, left))
            arguments = f"{pointers}, {numbers}, i1 {one.adds}"
            self._either(self._is("ule", left, str(self.lanes)), narrow, wide, arguments)


class _Forward(_Head):
    def definition(self) -> str:
        """Return ``forward``, the function for a head; see `_parameters`."""
        self._pack_turned("k", "%keys_t", "%width")
        self._pack_rows(("%v", "%v_row"), ("%packed", "%keys"), "%keys", "%values")
        high = self._rounded("%width", self.lanes)
        with self.code.loop("0", "%rows", self.rows) as loop:
            top = loop.counter.text
            count = self._least(str(self.rows), self._op("sub", "%rows", top))
            seen = self._seen(self._op("add", top, count))
            q = (self._place("%q", self._times(top, "%q_row")), "%q_row", "1")
            sizes = ("%width", count, self._rounded(seen, self.lanes))  # rows of scores have room for whole vectors
            self._multiply(_Product(q, ("%scores", self.across), sizes), "%keys_t", high)
            self._softmax(top, count, seen)
            target = self._place("%o", self._times(top, "%o_row"))
            sizes = (seen, count, "%values")
            mixed = _Product(("%scores", self.across, "1"), (target, "%o_row"), sizes, factors="%slopes")
            self._multiply(mixed, "%packed", "%keys")
        return self._definition("forward", _FORWARD)

    def _softmax(self, top: str, count: str, seen: str) -> None:
        with self.code.loop("0", count, 1) as loop:
            row = loop.counter.text
            at = self._op("add", top, row)
            places = (
                self._place("%scores", self._times(row, self.across)),
                self._place("%stats", self._times(at, "2")),
                self._place("%slopes", row),  # unused in the forward pass, so it holds the factors
            )
            numbers = f"i64 {self._seen(self._op('add', at, '1'))}, i64 {seen}, float %scale"
            pointers = ", ".join(f"ptr {one}" for one in places)
            self.b.raw(f"call void @{_softmax_function(self.functions)}({pointers}, {numbers})")


class _Backward(_Head):
    def definition(self) -> str:
        """Return ``backward``, the function for a head; see `_parameters`.

        Let p be the weights, g the cotangent of the result and d = g vT that of the weights:
        ds = p (d - sum(d p)) scale, dq = ds k, dk = dsT q, dv = pT g.
        """
        self._pack_turned("k", "%keys_t", "%width")
        self._pack_turned("v", "%values_t", "%values")
        self._pack_rows(("%k", "%k_row"), ("%packed", "%keys"), "%keys", "%width")
        with self.code.loop("0", "%rows", "%block") as loop:
            top = loop.counter.text
            count = self._least("%block", self._op("sub", "%rows", top))
            for name, target, columns in (("q", "%q_rows", "%width"), ("o", "%g_rows", "%values")):
                source = self._place(f"%{name}", self._times(top, f"%{name}_row"))
                self._pack_rows((source, f"%{name}_row"), (target, "%block"), count, columns)
            seen = self._seen(self._op("add", top, count))
            self._weights(top, count, seen)
            self._of_rows(top, count)
            self._of_keys(top, count, seen)
        self._unseen()
        return self._definition("backward", _BACKWARD)

    def _weights(self, top: str, count: str, seen: str) -> None:
        """Compute the weights of a block and the cotangents of its scores."""
        sides = (("q", "%keys_t", "%width", "%scores"), ("o", "%values_t", "%values", "%slopes"))
        highs = [self._rounded(terms, self.lanes) for _, _, terms, _ in sides]
        with self.code.loop("0", count, self.rows) as loop:
            row, height, own = self._strip(loop.counter.text, top, count)
            columns = self._rounded(own, self.lanes)
            for (name, packed, terms, target), high in zip(sides, highs, strict=True):
                left = (self._place(f"%{name}", self._times(row, f"%{name}_row")), f"%{name}_row", "1")
                there = self._place(target, self._times(loop.counter.text, self.across))
                self._multiply(_Product(left, (there, self.across), (terms, height, columns)), packed, high)
        with self.code.loop("0", count, 1) as loop:
            far = self._times(loop.counter.text, self.across)
            at = self._op("add", top, loop.counter.text)
            pointers = f"ptr {self._place('%scores', far)}, ptr {self._place('%slopes', far)}, "
            pointers += f"ptr {self._place('%stats', self._times(at, '2'))}"
            numbers = f"i64 {self._seen(self._op('add', at, '1'))}, i64 {seen}, float %scale"
            self.b.raw(f"call void @{_slopes_function(self.functions)}({pointers}, {numbers})")

    def _strip(self, first: str, top: str, count: str) -> tuple[str, str, str]:
        """Return a strip's first row in the head, its number of rows, and the number of keys they attend to."""
        row, height = self._op("add", top, first), self._least(str(self.rows), self._op("sub", count, first))
        return row, height, self._seen(self._op("add", row, height))

    def _of_rows(self, top: str, count: str) -> None:
        """Compute the cotangent of the block's rows of q."""
        with self.code.loop("0", count, self.rows) as loop:
            row, height, own = self._strip(loop.counter.text, top, count)
            slopes = (self._place("%slopes", self._times(loop.counter.text, self.across)), self.across, "1")
            target = self._place("%dq", self._times(row, "%dq_row"))
            self._multiply(_Product(slopes, (target, "%dq_row"), (own, height, "%width")), "%packed", "%keys")

    def _of_keys(self, top: str, count: str, seen: str) -> None:
        """Accumulate the cotangents of keys and values; the first block that attends to them sets them."""
        later = self._is("ne", top, "0")
        sides = (("dk", "%slopes", "%q_rows", "%width"), ("dv", "%scores", "%g_rows", "%values"))
        with self.code.loop("0", seen, self.rows) as loop:
            first = loop.counter.text
            height = self._least(str(self.rows), self._op("sub", seen, first))
            met = self._is("ult", first, top)
            adds = self.b.define(f"select i1 %causal, i1 {met}, i1 {later}", "b1").text
            for name, array, packed, columns in sides:
                turned = (self._place(array, first), "1", self.across)
                target = (self._place(f"%{name}", self._times(first, f"%{name}_row")), f"%{name}_row")
                self._multiply(_Product(turned, target, (count, height, columns), adds=adds), packed, "%block")

    def _unseen(self) -> None:
        """Set the cotangents of keys and values that no row attends to, to 0."""
        seen = self._seen("%rows")
        with self._if(self._is("ult", seen, "%keys")), self.code.loop(seen, "%keys", 1) as loop:
            for name, columns in (("dk", "%width"), ("dv", "%values")):
                target = self._place(f"%{name}", self._times(loop.counter.text, f"%{name}_row"))
                with self.code.loop("0", columns, 1) as inner:
                    self.b.raw(f"store float 0.0, ptr {self._place(target, inner.counter.text)}, align 4")


# --- the innermost functions ----------------------------------------------------------------------


def _tile_function(functions: Module, vectors: int) -> str:
    """Return the function (a, b, c, factors, numbers, adds) that computes a tile of `vectors`.

    B is packed. Rows of the sums are multiplied by their factors and written to C, or added to it.
    """
    numbers = ("terms", "a_row", "a_term", "c_row", "rows", "columns")

    def write(name: str) -> str:
        code = LoopNest(Function(functions))
        b = code.current
        # Rows that do not exist repeat the last one; their results are not stored.
        last = b.define("sub i64 %rows, 1", "i64").text
        offsets = []
        for row in range(_rows_of(functions)):
            inside = b.define(f"icmp ult i64 {row}, {last}", "b1").text
            index = b.define(f"select i1 {inside}, i64 {row}, i64 {last}", "i64").text
            offsets.append(b.define(f"mul i64 {index}, %a_row", "i64").text)
        sums = _sums(code, offsets, vectors)
        _store(code, sums)
        code.current.raw("ret void")
        pointers = ["ptr %a", "ptr %b", "ptr %c", "ptr %factors"]
        params = ", ".join([*pointers, *(f"i64 %{one}" for one in numbers), "i1 %adds"])
        return definition(f"{name}({params})", code.current)

    return named(functions, f"attention_tile_{vectors}", write)


def _sums(code: LoopNest, offsets: list[str], vectors: int) -> list[list[Value]]:
    """Sum all terms; return the vectors of each row."""
    lanes = lanes_of(code.current.function.module)
    zero = code.current.const(0, KIND, lanes)
    with code.loop("0", "%terms", 1) as loop:
        b = code.current
        sums = [[loop.carry(b, zero) for _ in range(vectors)] for _ in offsets]
        term = loop.carry(b, Value("0", "i64")).text
        here = place(b, KIND, "%a", term)
        right = place(b, KIND, "%b", b.define(f"mul i64 {loop.counter.text}, {VECTORS * lanes}", "i64").text)
        side = []
        for vector in range(vectors):
            address = place(b, KIND, right, vector * lanes)
            side.append(load_vector(b, KIND, address, (lanes, 1, 0, None), [], None, address))
        for row, offset in enumerate(offsets):
            spread = b.splat(b.define(f"load float, ptr {place(b, KIND, here, offset)}", KIND), lanes)
            sums[row] = [b.fma(spread, vector, total) for vector, total in zip(side, sums[row], strict=True)]
        loop.next = [*(total for row in sums for total in row), b.define(f"add i64 {term}, %a_term", "i64")]
    return sums


def _store(code: LoopNest, sums: list[list[Value]]) -> None:
    """Store the rows that exist, without masks where all columns do: AMD's AVX2 takes 12 cycles for a masked store."""
    b = code.current
    whole = b.define(f"icmp uge i64 %columns, {len(sums[0]) * lanes_of(b.function.module)}", "b1").text
    for condition, masked in ((whole, False), (b.define(f"xor i1 {whole}, true", "b1").text, True)):
        with code.when(condition):
            _store_rows(code, sums, masked)


def _store_rows(code: LoopNest, sums: list[list[Value]], masked: bool) -> None:
    b, target = code.current, "%c"
    lanes = lanes_of(b.function.module)
    exist = [_below(b, "%columns", str(vector * lanes)) if masked else None for vector in range(len(sums[0]))]
    for row, totals in enumerate(sums):
        if row:
            target = place(code.current, KIND, target, "%c_row")
        with code.when(code.current.define(f"icmp ult i64 {row}, %rows", "b1").text):
            b = code.current
            factor = b.splat(b.define(f"load float, ptr {place(b, KIND, '%factors', row)}, align 4", KIND), lanes)
            for vector, total in enumerate(totals):
                address, layout = place(b, KIND, target, vector * lanes), (lanes, 1, 0, exist[vector])
                there = load_vector(b, KIND, address, layout, [], None, address)
                before = b.select(b.splat(Value("%adds", "b1"), lanes), there, b.like(0, there))
                store_vector(b, b.fma(total, factor, before), address, layout)


def _below(b: Builder, end: str, first: str) -> Value:
    """Return the mask of the elements from `first` on that are before `end`."""
    lanes = lanes_of(b.function.module)
    left = b.define(f"sub i64 {end}, {first}", "i64")
    count = b.splat(b.define(f"trunc {left.typed} to i32", "i32"), lanes)
    numbers = Value("<" + ", ".join(f"i32 {lane}" for lane in range(lanes)) + ">", "i32", lanes)
    return b.compare("lt", numbers, count)


def _visible(b: Builder, row: str, first: str, hidden: float) -> tuple[Value, Value]:
    """Return scaled scores from `first` on, with `hidden` for masked ones, and the mask of the visible ones."""
    mask, lanes = _below(b, "%visible", first), lanes_of(b.function.module)
    address = place(b, KIND, row, first)
    scaled = b.fmul(load_vector(b, KIND, address, (lanes, 1, 0, mask), [], None, address), Value("%scale", KIND))
    return b.select(mask, scaled, b.like(hidden, scaled)), mask


def _softmax_function(functions: Module) -> str:
    """Return the function (scores, stats, factor, visible, end, scale) that turns the scores of a row into weights.

    The weights are not normalised yet; the factor for that is stored. Statistics are the largest scaled score and that
    factor.
    """

    def write(name: str) -> str:
        code, lanes = LoopNest(Function(functions)), lanes_of(functions)
        lowest = code.current.const(-math.inf, KIND, lanes)
        with code.loop("0", "%visible", lanes) as loop:
            most = loop.carry(code.current, lowest)
            scores, _ = _visible(code.current, "%scores", loop.counter.text, -math.inf)
            larger = code.current.compare("ogt", scores, most)
            loop.next = [code.current.select(larger, scores, most)]
        # This is not NaN, because NaN never compares as larger.
        top = across_lanes(code.current, "maximum", loop.next[0])
        with code.loop("0", "%end", lanes) as loop:
            b = code.current
            total = loop.carry(b, b.const(0, KIND, lanes))
            scores, _ = _visible(b, "%scores", loop.counter.text, -math.inf)
            weights = math_call(b, "exp", b.fsub(scores, top))
            store_vector(b, weights, place(b, KIND, "%scores", loop.counter.text), (lanes, 1, 0, None))
            loop.next = [b.fadd(total, weights)]
        b = code.current
        factor = b.fdiv(b.const(1, KIND), across_lanes(b, "add", loop.next[0]))
        b.raw(f"store {top.typed}, ptr %stats, align 4")
        b.raw(f"store {factor.typed}, ptr {place(b, KIND, '%stats', 1)}, align 4")
        b.raw(f"store {factor.typed}, ptr %factor, align 4")
        b.raw("ret void")
        params = "ptr %scores, ptr %stats, ptr %factor, i64 %visible, i64 %end, float %scale"
        return definition(f"{name}({params})", b)

    return named(functions, "attention_softmax", write)


def _slopes_function(functions: Module) -> str:
    """Return the function (scores, slopes, stats, visible, end, scale) for a row of the backward pass.

    It turns scores into weights, and cotangents of the weights into those of the scores.
    """

    def write(name: str) -> str:
        code, lanes = LoopNest(Function(functions)), lanes_of(functions)
        b = code.current
        top = b.define("load float, ptr %stats, align 4", KIND)
        factor = b.define(f"load float, ptr {place(b, KIND, '%stats', 1)}, align 4", KIND)
        with code.loop("0", "%end", lanes) as loop:
            b = code.current
            inner = loop.carry(b, b.const(0, KIND, lanes))
            scores, mask = _visible(b, "%scores", loop.counter.text, -math.inf)
            weights = b.fmul(math_call(b, "exp", b.fsub(scores, top)), factor)
            weights = b.select(mask, weights, b.like(0, weights))
            store_vector(b, weights, place(b, KIND, "%scores", loop.counter.text), (lanes, 1, 0, None))
            address = place(b, KIND, "%slopes", loop.counter.text)
            slopes = load_vector(b, KIND, address, (lanes, 1, 0, mask), [], None, address)
            loop.next = [b.fma(weights, slopes, inner)]
        mean = across_lanes(code.current, "add", loop.next[0])
        with code.loop("0", "%end", lanes) as loop:
            b = code.current
            mask = _below(b, "%visible", loop.counter.text)
            place_of = {name: place(b, KIND, f"%{name}", loop.counter.text) for name in ("scores", "slopes")}
            weights, slopes = (
                load_vector(b, KIND, place_of[one], (lanes, 1, 0, mask), [], None, place_of[one])
                for one in ("scores", "slopes")
            )
            found = b.fmul(b.fmul(b.fsub(slopes, mean), weights), Value("%scale", KIND))
            store_vector(b, b.select(mask, found, b.like(0, found)), place_of["slopes"], (lanes, 1, 0, None))
        code.current.raw("ret void")
        params = "ptr %scores, ptr %slopes, ptr %stats, i64 %visible, i64 %end, float %scale"
        return definition(f"{name}({params})", code.current)

    return named(functions, "attention_slopes", write)
