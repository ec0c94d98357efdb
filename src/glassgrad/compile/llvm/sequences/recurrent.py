"""Recurrent layers for all sizes: one loop over time, forward and backward, in float32 and float64.

A time step is a product of the state with weights that were packed once, and the formulas of the cell on the result,
some columns at a time, so their operands are still in the cache. The products of the inputs for all steps, and those
for the gradients of the weights, are computed elsewhere.

The work can be cut by columns, with a barrier after each step (a turn), or by rows, which are independent. Sizes are
arguments, so one module serves all layers of a kind.
"""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.compile.llvm.module.ir import BITS, LLVM_TYPE, Function, LoopNest, Module, Value
from glassgrad.compile.llvm.module.words import Words
from glassgrad.compile.llvm.products.gemm import tile_shape
from glassgrad.compile.llvm.products.shares import memory_of, record, word
from glassgrad.compile.llvm.products.tiles import (
    Tile,
    definition,
    named,
    pack_columns_function,
    pack_rows_function,
    tile_function,
)
from glassgrad.compile.llvm.sequences.recurrent_cells import CELLS, Cell, Point
from glassgrad.ops.kernels.recurrent import ARRAYS, ENTRY, FLAGS, NUMBERS, VECTORS, WORDS


def module(name: str, header: str, attributes: str, vector_bytes: int, data: int) -> str:
    """Return the text of a module, for a cell and an element kind, such as ``recurrent_lstm_f32``.

    It has two functions of a context and the number of a share, `name` and the same with suffix ``_back``, which eager
    mode calls, and for each of them one with suffix ``_all``, which compiled steps call.

    Args:
        name: the name of the module.
        header: first lines of the module.
        attributes: the attributes of every function.
        vector_bytes: the width of a vector.
        data: the offset of the data pointer in an array object.
    """
    _, cell, kind = name.split("_")
    functions = Module(vector_bytes)
    lanes = 8 * vector_bytes // BITS[kind]
    bodies = [
        _Forward(functions, CELLS[cell], kind, lanes).definition(name),
        _Backward(functions, CELLS[cell], kind, lanes).definition(f"{name}_back"),
    ]
    entries = [part for one in (name, f"{name}_back") for part in (_entry(one, kind, data), _whole(one))]
    return "\n".join([header, functions.text(), *bodies, *entries, attributes])


def _parameters() -> str:
    pointers = [f"ptr %{name}" for name in (*ARRAYS, "packed", "states", "scratch")]
    return ", ".join([*pointers, *(f"i64 %{name}" for name in NUMBERS), *(f"i1 %{name}" for name in FLAGS)])


def all_steps(name: str) -> tuple[str, str]:
    """Return the name and the parameters of the function that packs the weights and runs all turns."""
    return f"{name}_all", f"{_parameters()}, i64 %turns"


def _whole(name: str) -> str:
    full, params = all_steps(name)
    arguments = _parameters()
    return f"""
define void @{full}({params}) #0 {{
  call void @{name}_pack(ptr %w, ptr %packed, i64 %hidden, i64 %block_first, i64 %block_last)
  call void @{name}_steps({arguments}, i64 0, i64 %turns)
  ret void
}}
"""


def _entry(name: str, kind: str, data: int) -> str:
    """Read the record of a share, and run one turn: the first packs weights, later ones compute steps."""
    read = "".join(memory_of(array, at, data) for array, at in WORDS.items() if array in (*ARRAYS, "memory"))
    read += "".join(word(number, WORDS[number]) for number in (*NUMBERS, *ENTRY))
    read += "".join(word(f"{flag}.word", WORDS[flag]) for flag in FLAGS)
    read += "".join(f"  %{flag} = icmp ne i64 %{flag}.word, 0\n" for flag in FLAGS)
    arrays = ", ".join(f"ptr %{array}.data" for array in ARRAYS)
    numbers = ", ".join(f"i64 %{number}" for number in NUMBERS)
    flags = ", ".join(f"i1 %{flag}" for flag in FLAGS)
    element = LLVM_TYPE[kind]
    return f"""
define void @{name}(ptr %ctx, i64 %share) #0 {{
entry:
{record()}{read}\
  %first.byte = ptrtoint ptr %memory.data to i64
  %beyond = add i64 %first.byte, 63
  %line = and i64 %beyond, -64
  %packed = inttoptr i64 %line to ptr
  %states = getelementptr {element}, ptr %packed, i64 %states_at
  %scratch = getelementptr {element}, ptr %packed, i64 %scratch_at
  %packs = icmp eq i64 %turn, 0
  br i1 %packs, label %pack, label %go
pack:
  call void @{name}_pack(ptr %w.data, ptr %packed, i64 %hidden, i64 %pack_first, i64 %pack_last)
  store i64 1, ptr %turn.p, align 8
  ret void
go:
  %begin = sub i64 %turn, 1
  %reach = add i64 %begin, %each
  %over = icmp ugt i64 %reach, %turns
  %end = select i1 %over, i64 %turns, i64 %reach
  %next = add i64 %end, 1
  store i64 %next, ptr %turn.p, align 8
  %rows.left = icmp ult i64 %row_first, %row_last
  %blocks.left = icmp ult i64 %block_first, %block_last
  %turns.left = icmp ult i64 %begin, %end
  %some = and i1 %rows.left, %blocks.left
  %any = and i1 %some, %turns.left
  br i1 %any, label %walk, label %done
walk:
  call void @{name}_steps({arrays}, ptr %packed, ptr %states, ptr %scratch, {numbers}, {flags}, i64 %begin, i64 %end)
  br label %done
done:
  ret void
}}
"""


class _Walk(Words):
    """Writes the functions of one direction: the packing of weights, and the loop over steps."""

    def __init__(self, functions: Module, cell: Cell, kind: str, lanes: int) -> None:
        super().__init__(LoopNest(Function(functions)), kind)
        self.functions, self.cell, self.lanes = functions, cell, lanes
        self.width = VECTORS * lanes

    def definition(self, name: str) -> str:
        """Return both functions."""
        return self._pack(f"{name}_pack") + self._steps(f"{name}_steps")

    def _pack(self, name: str) -> str:
        """Return the function (w, packed, hidden, first, last) that packs some blocks of columns."""
        raise NotImplementedError  # forward and backward differ

    def _turn(self, turn: str) -> None:
        raise NotImplementedError  # forward and backward differ

    def _steps(self, name: str) -> str:
        self.code = LoopNest(Function(self.functions))
        with self.code.loop("%begin", "%end", 1) as loop:
            self._turn(loop.counter.text)
        self.b.raw("ret void")
        return definition(f"{name}({_parameters()}, i64 %begin, i64 %end)", self.b)

    def _in_blocks(self, name: str, body: str) -> str:
        params = "ptr %w, ptr %packed, i64 %hidden, i64 %first, i64 %last"
        return f"define internal void @{name}({params}) noinline #0 {{\n{body}\n}}\n"

    def _columns_of(self, block: str) -> tuple[str, str]:
        """Return the first column of a block, and its number of columns."""
        first = self._times(block, str(self.width))
        return first, self._least(str(self.width), self._op("sub", "%hidden", first))

    def _multiply(self, a: str, panel: str, c: str, sizes: tuple[str, str, str]) -> None:
        """Multiply the rows of this share with a panel; sizes are the terms and the distances of rows of A and C."""
        name = _rows_function(self.functions, self.kind, self.lanes)
        rows = self._op("sub", "%row_last", "%row_first")
        numbers = ", ".join(f"i64 {one}" for one in (*sizes, rows))
        self.b.raw(f"call void @{name}(ptr {a}, ptr {panel}, ptr {c}, {numbers})")

    def _products(self, row: str, across: int | None = None) -> str:
        return self._place("%scratch", self._times(self._op("sub", row, "%row_first"), str(across or self.width)))

    def _other(self, turn: str) -> str:
        """Return the state buffer (of two) that a turn writes; given the previous turn, that is the one it reads."""
        size = self._times(self._times("%batch", "%hidden"), str(self.state))
        return self._place("%states", self._times(self._op("and", turn, "1"), size))

    @property
    def state(self) -> int:
        """The number of carried values per hidden unit."""
        return 1

    def _over_columns(self, block: str, places: dict[str, str], do: Callable[[Point], None], last: str = "") -> None:
        """Write the formulas for the columns of a block: whole vectors, then the rest. `last` is `first` of `Point`."""
        first, count = self._columns_of(block)
        sizes = (self.lanes, self.width)
        whole = self._op("and", count, str(-self.lanes))
        with self._if(self._is("ult", "0", whole)), self.code.loop("0", whole, self.lanes) as loop:
            within = loop.counter.text
            do(Point(self, sizes, (self._op("add", first, within), within), None, places, last))
        with self._if(self._is("ult", whole, count)):
            left = Value(self._op("sub", count, whole), "i64")
            mask = self.b.compare("lt", self.b.lane_numbers(self.lanes), left)
            do(Point(self, sizes, (self._op("add", first, whole), whole), mask, places, last))

    def _time(self, turn: str, backwards: bool) -> tuple[str, str]:
        """Return the time step that a turn computes, and the step before it in the direction of the layer."""
        last = self._op("sub", self._op("sub", "%steps", "1"), turn)
        ahead, behind = (last, turn) if backwards else (turn, last)
        now = self._select("%reverse", behind, ahead)
        return now, self._select("%reverse", self._op("add", now, "1"), self._op("sub", now, "1"))

    def _position(self, time: str, row: str) -> str:
        return self._op("add", self._times(time, "%step_at"), self._times(row, "%row_at"))


class _Forward(_Walk):
    def _pack(self, name: str) -> str:
        self.code = LoopNest(Function(self.functions))
        pack = pack_columns_function(self.functions, self.kind, self.lanes)
        with self._if(self._is("ult", "%first", "%last")), self.code.loop("%first", "%last", 1) as loop:
            column, count = self._columns_of(loop.counter.text)
            for gate in range(self.cell.gates):
                row = self._op("add", self._times("%hidden", str(gate)), column)
                source, target = self._place("%w", self._times(row, "%hidden")), self._panel(loop.counter.text, gate)
                numbers = f"i64 %hidden, i64 %hidden, i64 {self.width}, i64 {count}"
                self.b.raw(f"call void @{pack}(ptr {source}, ptr {target}, {numbers})")
        self.b.raw("ret void")
        return self._in_blocks(name, "entry:\n" + "\n".join(self.b.lines))

    def _panel(self, block: str, gate: int) -> str:
        number = self._op("add", self._times(block, str(self.cell.gates)), str(gate))
        high = self._times(self._up("%hidden", str(self.lanes)), str(self.lanes * self.width))
        return self._place("%packed", self._times(number, high))

    def _turn(self, turn: str) -> None:
        first = self._is("eq", turn, "0")
        now, _ = self._time(turn, backwards=False)
        state = self._pick(first, "%h0", self._other(self._op("add", turn, "1")))
        target, cell = self._other(turn), self._pick(first, "%c0", "%cn")
        gates, across = self.cell.gates, self.cell.gates * self.width
        with self.code.loop("%block_first", "%block_last", 1) as loop:
            block = loop.counter.text
            a = self._place(state, self._times("%row_first", "%hidden"))
            for gate in range(gates):
                c = self._place("%scratch", str(gate * self.width))
                self._multiply(a, self._panel(block, gate), c, ("%hidden", "%hidden", str(across)))
            with self.code.loop("%row_first", "%row_last", 1) as rows:
                far = self._times(rows.counter.text, "%hidden")
                whole = self._times(self._position(now, rows.counter.text), "%hidden")
                places = {
                    "a": self._place("%a", self._times(whole, str(gates))),
                    "gates": self._place("%gates", self._times(whole, str(self.cell.kept))),
                    "y": self._place("%y", whole),
                    "cells": self._place("%cells", whole),
                    "cell_before": self._place(cell, far),
                    "before": self._place(state, far),
                    "hn": self._place("%hn", far),
                    "cn": self._place("%cn", far),
                    "state": self._place(target, far),
                    "products": self._products(rows.counter.text, across),
                }
                self._over_columns(block, places, self.cell.forward)


class _Backward(_Walk):
    @property
    def state(self) -> int:
        return self.cell.gates

    def _pack(self, name: str) -> str:
        self.code = LoopNest(Function(self.functions))
        pack = pack_rows_function(self.functions, self.kind, VECTORS, self.lanes)
        one = pack_rows_function(self.functions, self.kind, 1, self.lanes)
        with self._if(self._is("ult", "%first", "%last")), self.code.loop("%first", "%last", 1) as loop:
            column, count = self._columns_of(loop.counter.text)
            terms = self._times("%hidden", str(self.cell.gates))
            numbers = f"i64 {terms}, i64 %hidden, i64 {self.width}, i64 {count}"
            places = f"ptr {self._place('%w', column)}, ptr {self._panel(loop.counter.text)}"
            self._either(self._is("ugt", count, str(self.lanes)), pack, one, f"{places}, {numbers}")
        self.b.raw("ret void")
        return self._in_blocks(name, "entry:\n" + "\n".join(self.b.lines))

    def _panel(self, block: str) -> str:
        return self._place("%packed", self._times(self._times(block, "%hidden"), str(self.cell.gates * self.width)))

    def _turn(self, turn: str) -> None:
        first, inside = self._is("eq", turn, "0"), self._is("ult", turn, "%steps")
        later, beyond = (self.b.define(f"xor i1 {one}, true", "b1").text for one in (first, inside))
        terms = self._times("%hidden", str(self.cell.gates))
        read = self._place(self._other(self._op("add", turn, "1")), self._times("%row_first", terms))
        with self.code.loop("%block_first", "%block_last", 1) as loop:
            block = loop.counter.text
            with self._if(later):
                self._multiply(read, self._panel(block), "%scratch", (terms, terms, str(self.width)))
            with self._if(inside), self.code.loop("%row_first", "%row_last", 1) as rows:
                self._over_columns(block, self._row(turn, rows.counter.text, terms), self.cell.backward, first)
            with self._if(beyond), self.code.loop("%row_first", "%row_last", 1) as rows:
                row = rows.counter.text
                places = {"dh0": self._place("%dh0", self._times(row, "%hidden")), "products": self._products(row)}
                self._over_columns(block, places, self.cell.finish)

    def _row(self, turn: str, row: str, terms: str) -> dict[str, str]:
        """Return the addresses of a row in the arrays at the step of a turn."""
        now, before = self._time(turn, backwards=True)
        ends = self._is("eq", self._op("add", turn, "1"), "%steps")
        far, whole = self._times(row, "%hidden"), self._times(self._position(now, row), "%hidden")
        earlier = self._times(self._position(before, row), "%hidden")
        of_gates = self._times(whole, str(self.cell.gates))
        return {
            "gates": self._place("%gates", self._times(whole, str(self.cell.kept))),
            "y": self._place("%y", whole),
            "cells": self._place("%cells", whole),
            "dy": self._place("%dy", whole),
            "hn": self._place("%hn", far),
            "cn": self._place("%cn", far),
            "a": self._place("%a", of_gates),
            "dhidden": self._place("%dhidden", of_gates),
            "cell_before": self._pick(ends, self._place("%c0", far), self._place("%cells", earlier)),
            "before": self._pick(ends, self._place("%h0", far), self._place("%y", earlier)),
            "dh0": self._place("%dh0", far),
            "dc0": self._place("%dc0", far),
            "state": self._place(self._other(turn), self._times(row, terms)),
            "products": self._products(row),
        }


def _rows_function(functions: Module, kind: str, lanes: int) -> str:
    """Return the function (a, panel, c, terms, a_row, c_row, rows) that multiplies rows with a packed panel.

    The rows are divided into tiles of nearly equal height, because a thin one at the end could not hide the latency of
    its sums.
    """
    most = tile_shape(VECTORS * lanes, lanes).rows

    def write(name: str) -> str:
        words = Words(LoopNest(Function(functions)), kind)
        tiles = words._up("%rows", str(most))
        low = words._op("udiv", "%rows", tiles)
        higher = words._op("sub", "%rows", words._times(low, tiles))
        rest = words._op("sub", tiles, higher)
        for height in range(1, most + 1):
            with words._if(words._is("eq", low, str(height))):
                if height < most:
                    with words._if(words._is("ult", "0", higher)):
                        _call_tile(words, (height + 1, lanes), ("%a", "%c"), higher)
                skipped = words._times(higher, str(height + 1))
                places = (
                    words._place("%a", words._times(skipped, "%a_row")),
                    words._place("%c", words._times(skipped, "%c_row")),
                )
                _call_tile(words, (height, lanes), places, rest)
        words.b.raw("ret void")
        params = "ptr %a, ptr %panel, ptr %c, i64 %terms, i64 %a_row, i64 %c_row, i64 %rows"
        return definition(f"{name}({params})", words.b)

    return named(functions, f"recurrent_rows_{kind}", write)


def _call_tile(words: Words, shape: tuple[int, int], places: tuple[str, str], count: str) -> None:
    height, lanes = shape
    tile = Tile(words.kind, height, VECTORS, lanes, None, cut=False, packed=True)
    name = tile_function(words.b.function.module, tile)
    width = VECTORS * lanes
    far = [words._times("%a_row", str(row)) for row in (1, *tile.further_rows)]
    numbers = ["%terms", "1", words._times("%a_row", str(height)), str(width), "%c_row", str(width), count, *far]
    arguments = [f"ptr {places[0]}", "ptr %panel", f"ptr {places[1]}", *(f"i64 {one}" for one in numbers)]
    words.b.raw(f"call void @{name}({', '.join(arguments)}, i1 false, i1 false)")
