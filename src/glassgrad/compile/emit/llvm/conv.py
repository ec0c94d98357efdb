"""Convolutions in two dimensions: windows as columns, one image at a time, and a matrix product for each.

An image's windows (channels times kernel, by positions) are gathered in scratch memory, where they stay in the cache
for the product that follows. The transposes run the same steps in another order: the product first and then adding the
columns back where they came from, or the product of columns and gradient, summed over images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glassgrad.compile.access import Index, row_strides
from glassgrad.compile.emit.llvm.gemm import Gemm, GemmWriter, product_call, tile_shape
from glassgrad.compile.emit.llvm.ir import BITS, LLVM_TYPE, Builder, Function, LoopNest, Module, Value, kind_of
from glassgrad.compile.emit.llvm.memory_ops import load_vector, store_vector
from glassgrad.compile.emit.llvm.solid_base import SolidCode
from glassgrad.compile.emit.llvm.target import host
from glassgrad.compile.graph import Instr, Var
from glassgrad.compile.plan import Kernel
from glassgrad.compile.schedule import Cut, even_bounds, region_of

if TYPE_CHECKING:
    from glassgrad.compile.emit.llvm.step import StepModule
    from glassgrad.compile.schedule import Task

# Scratch memory for the windows of one image, in elements, beyond which the host does it in blocks.
_MOST_COLUMNS = 1 << 24


@dataclass(frozen=True)
class Shape:
    """The sizes of a convolution y (N, O, *out) of x (N, C, *size) with w (O, C / groups, *kernel)."""

    kind: str
    images: int
    channels: int
    outputs: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    out: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    dilation: tuple[int, int]
    groups: int
    lanes: int

    @property
    def positions(self) -> int:
        return self.out[0] * self.out[1]

    @property
    def rows(self) -> int:
        """Rows of the columns: channels times kernel."""
        return self.channels * self.kernel[0] * self.kernel[1]

    @property
    def full(self) -> tuple[int, int]:
        """The size of the image with its border, and with what windows reach beyond."""
        reach = [
            max(
                self.size[a] + sum(self.padding[a]),
                (self.out[a] - 1) * self.stride[a] + self.dilation[a] * (self.kernel[a] - 1) + 1,
            )
            for a in (0, 1)
        ]
        return reach[0], reach[1]

    @property
    def bordered(self) -> int:
        """Elements of the bordered image, with room for a last vector written or read whole."""
        return self.channels * self.full[0] * self.full[1] + 2 * self.lanes * self.stride[1]

    @property
    def columns(self) -> int:
        """Elements of the columns, with room for a last vector."""
        return self.rows * self.positions + 2 * self.lanes

    @property
    def flops(self) -> int:
        return 2 * self.images * self.outputs * self.positions * self.rows // self.groups


def shape_of(instr: Instr) -> Shape | None:
    """Describe a convolution or one of its transposes; None for what is not done here."""
    p = instr.params
    first, second = instr.inputs
    if not isinstance(first, Var) or not isinstance(second, Var):
        return None
    kind = kind_of(instr.output.dtype)
    if kind not in {"f32", "f64"} or first.dtype != second.dtype or first.dtype != instr.output.dtype:
        return None
    x, w, y = _roles(instr, first.shape, second.shape)
    lanes = max(host().vector_bytes * 8 // BITS[kind], 1)
    shape = Shape(
        kind, x[0], x[1], w[0], (x[2], x[3]), (w[2], w[3]), (y[2], y[3]), tuple(p["stride"]), tuple(p["padding"]),
        tuple(p["dilation"]), p["groups"], lanes,
    )  # fmt: skip
    empty = min(shape.images, shape.rows, shape.outputs, shape.positions) == 0
    negative = min(min(pair) for pair in shape.padding) < 0
    return None if empty or negative or shape.columns > _MOST_COLUMNS else shape


def _roles(instr: Instr, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of x, w and y."""
    out = instr.output.shape
    match instr.op:
        case "conv2d":
            return first, second, out
        case "conv2d_input":
            return out, second, first
    # conv2d_weight_parts: (parts, groups, rows of a group, outputs of a group) from x and the gradient of y.
    groups = out[1]
    kernel = instr.params["kernel"]
    return first, (second[1], first[1] // groups, *kernel), second


class ConvWriter:
    """Writes the functions of one convolution."""

    def __init__(self, module: Module, shape: Shape) -> None:
        self.module = module
        self.shape = shape
        self.code = LoopNest(Function(module))

    @property
    def b(self) -> Builder:
        return self.code.current

    def at(self, base: str, offset: str | int) -> str:
        """Return the address `offset` elements further."""
        if str(offset) == "0":
            return base
        return self.b.pointer(f"getelementptr {LLVM_TYPE[self.shape.kind]}, ptr {base}, i64 {offset}")

    def sum(self, *terms: tuple[str, int]) -> str:
        """Return the sum of counters times constants."""
        total = "0"
        for counter, factor in terms:
            scaled = counter if factor == 1 else self.b.define(f"mul i64 {counter}, {factor}", "i64").text
            total = scaled if total == "0" else self.b.define(f"add i64 {total}, {scaled}", "i64").text
        return total

    def nest(self, extents: list[int], body: Callable[[list[str]], None]) -> None:
        """Run `body` with one counter for each extent."""

        def inner(known: list[str], rest: list[int]) -> None:
            if not rest:
                body(known)
                return
            with self.code.loop("0", str(rest[0]), 1) as loop:
                inner([*known, loop.counter.text], rest[1:])

        inner([], extents)

    def move(self, source: str, target: str, count: int, steps: tuple[int, int], *, adds: bool, exact: bool) -> None:
        """Copy (or add) `count` elements with the strides `steps`; unless `exact`, the last vector is written whole."""
        lanes, kind = self.shape.lanes, self.shape.kind
        for start in range(0, count, lanes):
            left = min(lanes, count - start)
            mask = None
            if left < lanes and (exact or adds or steps[0] != 1):
                bits = ", ".join(f"i1 {'true' if lane < left else 'false'}" for lane in range(lanes))
                mask = Value(f"<{bits}>", "b1", lanes)
            read, write = self.at(source, start * steps[0]), self.at(target, start * steps[1])
            value = load_vector(self.b, kind, read, (lanes, steps[0], 0, mask), [], None, read)
            layout = (lanes, steps[1], 0, mask if exact or adds else None)
            if adds:
                value = self.b.fadd(load_vector(self.b, kind, write, layout, [], None, write), value)
            store_vector(self.b, value, write, layout)

    def clear(self, place: str, elements: int) -> None:
        """Fill with zeros."""
        self.module.declarations["memset"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
        count = elements * BITS[self.shape.kind] // 8
        self.b.raw(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {count}, i1 false)")

    def _row(self, known: list[str]) -> tuple[str, str]:
        """Return where a run of one output row begins, in the bordered image and in the columns."""
        shape = self.shape
        channel, i, j, row = known
        wide = shape.full[1]
        image = self.sum(
            (channel, shape.full[0] * wide), (row, shape.stride[0] * wide), (i, shape.dilation[0] * wide),
            (j, shape.dilation[1]),
        )  # fmt: skip
        taps = shape.kernel[0] * shape.kernel[1]
        line = self.sum((channel, taps), (i, shape.kernel[1]), (j, 1))
        return image, self.sum((line, shape.positions), (row, shape.out[1]))

    def gather_text(self, name: str) -> str:
        """Return the function (image, bordered, columns) that writes an image's windows as columns."""
        shape = self.shape
        self.clear("%bordered", shape.channels * shape.full[0] * shape.full[1])
        (top, _), (left, _) = shape.padding

        def border(known: list[str]) -> None:
            channel, row = known
            source = self.at("%image", self.sum((channel, shape.size[0] * shape.size[1]), (row, shape.size[1])))
            target = self.sum((channel, shape.full[0] * shape.full[1]), (row, shape.full[1]))
            place = self.at(self.at("%bordered", top * shape.full[1] + left), target)
            self.move(source, place, shape.size[1], (1, 1), adds=False, exact=True)

        def window(known: list[str]) -> None:
            image, line = self._row(known)
            source, target = self.at("%bordered", image), self.at("%columns", line)
            self.move(source, target, shape.out[1], (shape.stride[1], 1), adds=False, exact=False)

        self.nest([shape.channels, shape.size[0]], border)
        self.nest([shape.channels, *shape.kernel, shape.out[0]], window)
        return self._finish(name)

    def spread_text(self, name: str) -> str:
        """Return the function (image, bordered, columns) that adds columns back where their windows lie."""
        shape = self.shape
        self.clear("%bordered", shape.channels * shape.full[0] * shape.full[1])
        (top, _), (left, _) = shape.padding

        def window(known: list[str]) -> None:
            image, line = self._row(known)
            source, target = self.at("%columns", line), self.at("%bordered", image)
            self.move(source, target, shape.out[1], (1, shape.stride[1]), adds=True, exact=True)

        def cut(known: list[str]) -> None:
            channel, row = known
            target = self.at("%image", self.sum((channel, shape.size[0] * shape.size[1]), (row, shape.size[1])))
            source = self.sum((channel, shape.full[0] * shape.full[1]), (row, shape.full[1]))
            place = self.at(self.at("%bordered", top * shape.full[1] + left), source)
            self.move(place, target, shape.size[1], (1, 1), adds=False, exact=True)

        self.nest([shape.channels, *shape.kernel, shape.out[0]], window)
        self.nest([shape.channels, shape.size[0]], cut)
        return self._finish(name)

    def _finish(self, name: str) -> str:
        self.b.raw("ret void")
        head = f"define internal void @{name}(ptr %image, ptr %bordered, ptr %columns) noinline #0"
        return f"{head} {{\nentry:\n" + "\n".join(self.b.lines) + "\n}\n"


class ConvCode(SolidCode):
    """conv2d, and what the transposes share with it. Images are the units of work."""

    label = "conv"

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        shape = shape_of(self.instr)
        assert shape is not None
        self.shape = shape

    @staticmethod
    def takes(instr: Instr) -> bool:
        return shape_of(instr) is not None

    @property
    def flops(self) -> int:
        return self.shape.flops

    def time(self) -> float:
        return 200.0 + self.shape.flops / 80.0

    def units(self) -> int:
        return self.shape.images

    def cuts(self, shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
        units = self.units()
        if units < 2:
            return []
        bounds = even_bounds(units, shares)
        regions = {}
        operands = [(operand.root, operand.shape) for operand in self.kernel.operands if operand is not None]
        for var, shape in [*operands, (self.instr.output, self.instr.output.shape)]:
            root = alias.get(var, var)
            index = Index(0, tuple((axis, stride) for axis, stride in enumerate(row_strides(shape)) if shape[axis] > 1))
            is_weight = self.instr.op != "conv2d_weight_parts" and shape == self._w()
            by_unit = shape and shape[0] == units and not is_weight
            extents = dict(enumerate(shape))
            regions[root] = region_of(index, [(0, units)], bounds, extents, root.size) if by_unit else None
        return [Cut("images", bounds, regions)]

    def _w(self) -> tuple[int, ...]:
        operand = self.kernel.operands[1]
        assert operand is not None
        return operand.shape

    # --- scratch: bordered image, columns, packed panels --------------------------------------------

    @property
    def scratch(self) -> int:
        shape = self.shape
        return (self._start_of_panel() + 64) * BITS[shape.kind] // 8 + self.gemm().scratch

    def _start_of_columns(self) -> int:
        return -(-self.shape.bordered // 16) * 16

    def _start_of_panel(self) -> int:
        return -(-(self._start_of_columns() + self.shape.columns) // 16) * 16

    def gemm(self) -> Gemm:
        """The product of one image (and group)."""
        shape = self.shape
        m, k, n = shape.outputs // shape.groups, shape.rows // shape.groups, shape.positions
        pack = m > 64 or (n * BITS[shape.kind] // 8 % 1024 == 0 and m > 18)
        return Gemm(shape.kind, k, (k, 1), (n, 1), n, (m,), (n,), shape.lanes, tile_shape(n, shape.lanes), pack)

    # --- emission ----------------------------------------------------------------------------------

    def emit(self, step: StepModule, b: Builder, task: Task, bounds: tuple[str, str]) -> None:
        """Loop over the share's units."""
        operands = [step.operand_pointer(b, operand) for operand in self.kernel.operands if operand is not None]
        pointers = [*operands, step.pointer(b, self.instr.output), step.scratch_pointer(b)]
        writer = ConvWriter(step.module, self.shape)
        with writer.code.loop("%lo", "%hi", 1) as loop:
            self.unit(step, writer, loop.counter.text)
        writer.b.raw("ret void")
        body = "\n".join(["entry:", *writer.b.lines])
        head = "(ptr %first, ptr %second, ptr %result, ptr %scratch, i64 %lo, i64 %hi) #0"
        name = step.helper(lambda name: f"define internal void @{name}{head} {{\n{body}\n}}\n")
        arguments = ", ".join(f"ptr {pointer}" for pointer in pointers)
        b.raw(f"call void @{name}({arguments}, i64 {bounds[0]}, i64 {bounds[1]})")

    def unit(self, step: StepModule, writer: ConvWriter, number: str) -> None:
        """Emit one image: first = x, second = w."""
        shape = self.shape
        image = writer.at("%first", writer.sum((number, shape.channels * shape.size[0] * shape.size[1])))
        columns = self.windows(step, writer, image, "gather")
        result = writer.at("%result", writer.sum((number, shape.outputs * shape.positions)))
        m, k = shape.outputs // shape.groups, shape.rows // shape.groups
        self.products(step, writer, ("%second", m * k), (columns, k * shape.positions), (result, m * shape.positions))

    def windows(self, step: StepModule, writer: ConvWriter, image: str, what: str) -> str:
        """Call the gathering or spreading of an image's windows; return the address of the columns."""
        inner = ConvWriter(step.module, self.shape)
        text = inner.gather_text("NAME") if what == "gather" else inner.spread_text("NAME")
        name = step.helper(lambda name: text.replace("@NAME(", f"@{name}(", 1))
        columns = writer.at("%scratch", self._start_of_columns())
        writer.b.raw(f"call void @{name}(ptr {image}, ptr %scratch, ptr {columns})")
        return columns

    def products(
        self, step: StepModule, writer: ConvWriter, a: tuple[str, int], b: tuple[str, int], c: tuple[str, int]
    ) -> None:
        """Call the product of every group; each side is (address, elements from group to group)."""
        gemm = self.gemm()
        text = GemmWriter(step.module, gemm).definition("NAME")
        name = step.helper(lambda name: text.replace("@NAME(", f"@{name}(", 1))
        panel = writer.at("%scratch", self._start_of_panel())
        for group in range(self.shape.groups):
            left, right, result = (writer.at(place, group * further) for place, further in (a, b, c))
            product_call(
                writer.b, gemm, name, (left, right, result, panel), (str(gemm.rows[0]), str(gemm.columns[0]))
            )


class ConvInputCode(ConvCode):
    """The transpose with respect to the input: first = gradient, second = w."""

    def gemm(self) -> Gemm:
        shape = self.shape
        m, k, n = shape.rows // shape.groups, shape.outputs // shape.groups, shape.positions
        tile = tile_shape(n, shape.lanes)
        far = m * BITS[shape.kind] // 8 >= 1024 and n > tile.vectors * shape.lanes
        pack = m > 64
        return Gemm(shape.kind, k, (1, m), (n, 1), n, (m,), (n,), shape.lanes, tile, pack, far)

    def unit(self, step: StepModule, writer: ConvWriter, number: str) -> None:
        shape = self.shape
        gradient = writer.at("%first", writer.sum((number, shape.outputs * shape.positions)))
        columns = writer.at("%scratch", self._start_of_columns())
        m, k = shape.rows // shape.groups, shape.outputs // shape.groups
        self.products(step, writer, ("%second", m * k), (gradient, k * shape.positions), (columns, m * shape.positions))
        image = writer.at("%result", writer.sum((number, shape.channels * shape.size[0] * shape.size[1])))
        self.windows(step, writer, image, "spread")


class ConvWeightCode(ConvCode):
    """The transpose with respect to the weight, in parts of several images each: first = x, second = gradient."""

    def units(self) -> int:
        return self.instr.output.shape[0]

    def gemm(self) -> Gemm:
        shape = self.shape
        m, k, n = shape.rows // shape.groups, shape.positions, shape.outputs // shape.groups
        tile = tile_shape(n, shape.lanes)
        return Gemm(
            shape.kind, k, (k, 1), (1, k), n, (m,), (n,), shape.lanes, tile, pack=True, pack_a=False, accumulate=True
        )

    def unit(self, step: StepModule, writer: ConvWriter, number: str) -> None:
        shape = self.shape
        parts = self.units()
        m, n = shape.rows // shape.groups, shape.outputs // shape.groups
        size = shape.groups * m * n
        result = writer.at("%result", writer.sum((number, size)))
        writer.clear(result, size)
        b = writer.b
        first = b.define(f"mul i64 {number}, {shape.images}", "i64").text
        first = b.define(f"udiv i64 {first}, {parts}", "i64").text
        last = b.define(f"mul i64 {b.define(f'add i64 {number}, 1', 'i64').text}, {shape.images}", "i64").text
        last = b.define(f"udiv i64 {last}, {parts}", "i64").text
        with writer.code.loop(first, last, 1) as loop:
            image = loop.counter.text
            source = writer.at("%first", writer.sum((image, shape.channels * shape.size[0] * shape.size[1])))
            columns = self.windows(step, writer, source, "gather")
            gradient = writer.at("%second", writer.sum((image, shape.outputs * shape.positions)))
            further = math.prod((m, shape.positions))
            self.products(step, writer, (columns, further), (gradient, n * shape.positions), (result, m * n))
