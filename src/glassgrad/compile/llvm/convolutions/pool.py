"""The transposes of pooling: scatter gradients of windows to their elements, one plane (image and channel) at a time.

In maximum pooling the first largest element of a window receives its gradient, in sums every element does. If windows
are side by side along a row, the values for their elements are interleaved in registers and stored in order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.convolutions.windows import ConvWriter, Shape
from glassgrad.compile.llvm.loops.memory_ops import first_lanes, load_vector, store_vector
from glassgrad.compile.llvm.module.ir import BITS, Builder, Module, Value, kind_of
from glassgrad.compile.llvm.module.solid_base import FormCode, region_of_rows
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.plan.schedule import Cut, even_bounds

if TYPE_CHECKING:
    from glassgrad.compile.llvm.module.step import StepModule
    from glassgrad.compile.plan.schedule import Task


def shape_of(instr: Instr) -> Shape | None:
    """Describe a transpose of pooling, a plane as an image of one channel; None if it is not supported."""
    p = instr.params
    kind = kind_of(instr.output.dtype)
    inputs = [operand for operand in instr.inputs if isinstance(operand, Var)]
    same = len(inputs) == len(instr.inputs) and all(operand.dtype == instr.output.dtype for operand in inputs)
    if kind not in {"f32", "f64"} or not same or min(min(pair) for pair in p["padding"]) < 0:
        return None
    gradient, size = inputs[0].shape, instr.output.shape
    if not math.prod(gradient):
        return None
    return Shape(
        kind,
        images=math.prod(size[:-2]),
        channels=1,
        outputs=1,
        size=(size[-2], size[-1]),
        kernel=tuple(p["kernel"]),
        out=(gradient[-2], gradient[-1]),
        stride=tuple(p["stride"]),
        padding=tuple(p["padding"]),
        dilation=tuple(p["dilation"]),
        groups=1,
        lanes=max(host().vector_bytes * 8 // BITS[kind], 1),
    )


class SpreadWriter(ConvWriter):
    """Writes the function (gradient, x, y, result, scratch, lo, hi) over planes."""

    def __init__(self, module: Module, shape: Shape, by_maximum: bool) -> None:
        super().__init__(module, shape)
        self.by_maximum = by_maximum

    @property
    def has_border(self) -> bool:
        return self.shape.full != self.shape.size

    @property
    def side_by_side(self) -> bool:
        """Whether the windows of a row cover it without gap or overlap, two or one elements each."""
        shape = self.shape
        return shape.stride[1] == shape.kernel[1] <= 2 and (shape.dilation[1] == 1 or shape.kernel[1] == 1)

    @property
    def rows_disjoint(self) -> bool:
        shape = self.shape
        return shape.stride[0] >= shape.dilation[0] * (shape.kernel[0] - 1) + 1

    def definition(self, name: str) -> str:
        """Return the whole function."""
        shape = self.shape
        with self.code.loop("%lo", "%hi", 1) as loop:
            plane = loop.counter.text
            area = shape.size[0] * shape.size[1]
            small = self.sum((plane, shape.positions))
            gradient, result = self.at("%gradient", small), self.at("%result", self.sum((plane, area)))
            x, y = self.at("%x", self.sum((plane, area))), self.at("%y", small)
            target, wide = result, shape.size[1]
            if self.has_border:
                target, wide = "%scratch", shape.full[1]
                if self.by_maximum:
                    x = self._bordered(x)
            self.clear(target, shape.full[0] * shape.full[1] if self.has_border else area)
            self._windows((gradient, x, y, target), wide)
            if self.has_border:
                self._cut(result)
        self.b.raw("ret void")
        head = "(ptr %gradient, ptr %x, ptr %y, ptr %result, ptr %scratch, i64 %lo, i64 %hi) #0"
        return f"define internal void @{name}{head} {{\nentry:\n" + "\n".join(self.b.lines) + "\n}\n"

    def _bordered(self, x: str) -> str:
        """Copy a plane of x inside a border that no window's maximum selects; return its address."""
        shape = self.shape
        count = shape.full[0] * shape.full[1]
        place = self.at("%scratch", shape.bordered)
        unequal = self.b.const(float("nan"), shape.kind, shape.lanes)
        with self.code.loop("0", str(count), shape.lanes) as loop:
            store_vector(self.b, unequal, self.at(place, loop.counter.text), (shape.lanes, 1, 0, None))
        self._inner_rows(x, place, outwards=False)
        return place

    def _cut(self, result: str) -> None:
        self._inner_rows("%scratch", result, outwards=True)

    def _inner_rows(self, source: str, target: str, *, outwards: bool) -> None:
        shape = self.shape
        (top, _), (left, _) = shape.padding

        def row(known: list[str]) -> None:
            inner = self.sum((known[0], shape.full[1]))
            plain = self.sum((known[0], shape.size[1]))
            corner = top * shape.full[1] + left
            if outwards:
                places = self.at(self.at(source, corner), inner), self.at(target, plain)
            else:
                places = self.at(source, plain), self.at(self.at(target, corner), inner)
            self.move(*places, shape.size[1], (1, 1), adds=False, exact=True)

        self.nest([shape.size[0]], row)

    def _windows(self, places: tuple[str, str, str, str], wide: int) -> None:
        shape = self.shape

        def row(known: list[str]) -> None:
            gradient, x, y, target = places
            line = self.sum((known[0], shape.out[1]))
            origin = self.sum((known[0], shape.stride[0] * wide))
            for start in range(0, shape.out[1], shape.lanes):
                left = min(shape.lanes, shape.out[1] - start)
                near = [self.at(self.at(place, line), start) for place in (gradient, y)]
                far = [self.at(self.at(place, origin), start * shape.stride[1]) for place in (x, target)]
                self._chunk((near[0], near[1], far[0], far[1]), left, wide)

        self.nest([shape.out[0]], row)

    def _chunk(self, places: tuple[str, str, str, str], left: int, wide: int) -> None:
        """One vector of windows of a row."""
        shape, b = self.shape, self.b
        gradient_at, y_at, x_at, target = places
        mask, lanes = first_lanes(left, shape.lanes), shape.lanes
        gradient = load_vector(b, shape.kind, gradient_at, (lanes, 1, 0, mask), [], None, gradient_at)
        y = load_vector(b, shape.kind, y_at, (lanes, 1, 0, mask), [], None, y_at) if self.by_maximum else gradient
        taken = b.const(0, "b1", lanes)
        unknown = b.compare("uno", y, y)
        zero = b.like(0, gradient)
        for i in range(shape.kernel[0]):
            values = []
            for j in range(shape.kernel[1]):
                if not self.by_maximum:
                    values.append(gradient)
                    continue
                place = self.at(x_at, i * shape.dilation[0] * wide + j * shape.dilation[1])
                x = load_vector(b, shape.kind, place, (lanes, shape.stride[1], 0, mask), [], None, place)
                # NaN, which equals nothing, keeps its gradient; the border of NaN has no gradient.
                missing = b.compare("uno", x, x)
                missing = b.binary("and", missing, unknown) if self.has_border else missing
                wins = b.binary("or", b.compare("oeq", x, y), missing)
                first = b.binary("and", wins, b.binary("xor", taken, b.const(1, "b1", lanes)))
                taken = b.binary("or", taken, wins)
                values.append(b.select(first, gradient, zero))
            self._put(values, self.at(target, i * shape.dilation[0] * wide), left)

    def _put(self, values: list[Value], place: str, left: int) -> None:
        """Store (or add) the values for one row of the kernel."""
        shape, b = self.shape, self.b
        lanes, step = shape.lanes, shape.stride[1]
        if self.side_by_side:
            mixed = values if len(values) == 1 else _interleaved(b, *values)
            for number, value in enumerate(mixed):
                count = min(left * len(values) - number * lanes, lanes)
                if count > 0:
                    layout = (lanes, 1, 0, first_lanes(count, lanes))
                    self._add(value, self.at(place, number * lanes), layout, adds=not self.rows_disjoint)
            return
        for j, value in enumerate(values):
            where = self.at(place, j * shape.dilation[1])
            self._add(value, where, (lanes, step, 0, first_lanes(left, lanes)), adds=True)

    def _add(self, value: Value, place: str, layout: tuple[int, int, int, Value | None], *, adds: bool) -> None:
        b = self.b
        if adds:
            value = b.fadd(load_vector(b, value.kind, place, layout, [], None, place), value)
        store_vector(b, value, place, layout)


def _interleaved(b: Builder, first: Value, second: Value) -> list[Value]:
    """Return a0 b0 a1 b1 ... as two vectors."""
    lanes = first.lanes
    found = []
    for half in (0, lanes // 2):
        order = [place for lane in range(half, half + lanes // 2) for place in (lane, lanes + lane)]
        mask = ", ".join(f"i32 {place}" for place in order)
        text = f"shufflevector {first.typed}, {second.typed}, <{lanes} x i32> <{mask}>"
        found.append(b.define(text, first.kind, lanes))
    return found


class SpreadCode(FormCode[Shape]):
    """max_pool2d_scatter and sum_spread2d. Planes are the units of work."""

    label = "pool"
    read = staticmethod(shape_of)

    @property
    def flops(self) -> int:
        return self.form.images * self.form.positions * math.prod(self.form.kernel)

    @property
    def scratch(self) -> int:
        return 2 * (self.form.bordered + 64) * BITS[self.form.kind] // 8

    def time(self) -> float:
        return 100.0 + self.flops * 0.5

    def units(self) -> int:
        return self.form.images

    def cuts(self, shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
        units = self.units()
        if units < 2:
            return []
        bounds = even_bounds(units, shares)
        regions = {}
        operands = [operand.root for operand in self.kernel.operands if operand is not None]
        for var in [*operands, self.instr.output]:
            root = alias.get(var, var)
            regions[root] = region_of_rows((units, root.size // units), bounds, root.size)
        return [Cut("planes", bounds, regions)]

    def emit(self, step: StepModule, b: Builder, task: Task, bounds: tuple[str, str]) -> None:
        by_maximum = self.instr.op == "max_pool2d_scatter"
        text = SpreadWriter(step.module, self.form, by_maximum).definition("NAME")
        operands = self.pointers(step, b)
        gradient, x, y = operands if by_maximum else (operands[0], "null", "null")
        pointers = (gradient, x, y, step.pointer(b, self.instr.output), step.scratch_pointer(b))
        self.call(step, b, text, pointers, bounds)
