"""The sizes of a convolution, and the code that moves its windows: images to columns and back, outputs side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.loops.memory_ops import first_lanes, load_vector, store_vector
from glassgrad.compile.llvm.module.ir import BITS, LLVM_TYPE, Builder, Function, LoopNest, Module, kind_of
from glassgrad.compile.llvm.module.target import host

# Columns from which a product is worth reading the weights for.
ENOUGH_COLUMNS = 128
# Units of work that must remain for the threads if images are processed together.
_UNITS = 2

# The most vectors of a row that are unrolled.
WIDEST = 32

# The most scratch memory for the windows of one image, in elements; beyond it the host computes in blocks.
MOST_COLUMNS = 1 << 24


Role = Literal["result", "input", "weight"]
_ROLES: dict[str, Role] = {"conv2d": "result", "conv2d_input": "input", "conv2d_weight_parts": "weight"}

Helper = Callable[[str], str]
"""Adds a function, whose text calls it NAME, to a module and returns its real name."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a convolution y (N, O, *out) of x (N, C, *size) with w (O, C / groups, *kernel).

    Its role tells the output: the result, the gradient of the input, or that of the weight in `parts`.
    """

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
    role: Role = "result"
    parts: int = 1

    @property
    def positions(self) -> int:
        return self.out[0] * self.out[1]

    @property
    def borders_fit(self) -> bool:
        """Whether no border is wider than the kernel reaches."""
        reach = [self.dilation[a] * (self.kernel[a] - 1) for a in (0, 1)]
        return all(max(pair) <= most for pair, most in zip(self.padding, reach, strict=True))

    @property
    def spread(self) -> tuple[int, int]:
        """The size of a gradient with its elements a stride apart, and with a border as wide as the kernel."""
        first, second = (self.size[a] + self.dilation[a] * (self.kernel[a] - 1) for a in (0, 1))
        return first, second

    @property
    def is_plain(self) -> bool:
        """Whether the windows are exactly the single positions, so an image equals its columns."""
        return self.kernel == self.stride == (1, 1) and self.size == self.out

    @property
    def together(self) -> int:
        """The number of images that are multiplied at once; it divides the number of images."""
        most = max(1, self.images // _UNITS)
        wanted = min(most, -(-ENOUGH_COLUMNS // self.positions))
        return min((d for d in range(wanted, most + 1) if self.images % d == 0), default=1)

    @property
    def width(self) -> int:
        """Columns of a product."""
        return self.together * self.positions

    @property
    def staged(self) -> int:
        """Elements of the copy of outputs in the order of columns, for images that are processed together; else 0."""
        return self.outputs * self.width if self.together > 1 else 0

    @property
    def rows(self) -> int:
        """Rows of the columns: channels times kernel."""
        return self.channels * self.kernel[0] * self.kernel[1]

    @property
    def full(self) -> tuple[int, int]:
        """The size of the image with its border, including the excess that windows reach."""
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
        """Elements of the bordered image, with room for a full last vector."""
        room = 2 * self.lanes * self.stride[1]
        return 0 if self.is_plain else self.channels * math.prod(self.full) + room

    @property
    def columns(self) -> int:
        """Elements of the columns, with room for a full last vector."""
        if self.is_plain and self.together == 1:
            return 0
        return self.rows * self.width + 2 * self.lanes

    @property
    def flops(self) -> int:
        return 2 * self.images * self.outputs * self.positions * self.rows // self.groups


def shape_of(instr: Instr) -> Shape | None:
    """Describe a convolution or one of its transposes; None if it is not supported."""
    p = instr.params
    first, second = instr.inputs
    if not isinstance(first, Var) or not isinstance(second, Var):
        return None
    kind = kind_of(instr.output.dtype)
    if kind not in {"f32", "f64"} or first.dtype != second.dtype or first.dtype != instr.output.dtype:
        return None
    x, w, y = _roles(instr, first.shape, second.shape)
    role = _ROLES[instr.op]
    shape = Shape(
        kind,
        images=x[0],
        channels=x[1],
        outputs=w[0],
        size=(x[2], x[3]),
        kernel=(w[2], w[3]),
        out=(y[2], y[3]),
        stride=tuple(p["stride"]),
        padding=tuple(p["padding"]),
        dilation=tuple(p["dilation"]),
        groups=p["groups"],
        lanes=max(host().vector_bytes * 8 // BITS[kind], 1),
        role=role,
        parts=instr.output.shape[0] if role == "weight" else 1,
    )
    empty = min(shape.images, shape.rows, shape.outputs, shape.positions, *shape.size) == 0
    negative = min(min(pair) for pair in shape.padding) < 0
    return None if empty or negative else shape


def _roles(instr: Instr, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of x, w and y."""
    out = instr.output.shape
    match instr.op:
        case "conv2d":
            return first, second, out
        case "conv2d_input":
            return out, second, first
    # conv2d_weight_parts: (parts, groups, outputs of a group, rows of a group) from x and the gradient of y.
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
        """Copy (or add) `count` elements with the strides `steps`; unless `exact`, write the last vector in full."""
        lanes, kind = self.shape.lanes, self.shape.kind
        for start in range(0, count, lanes):
            left = min(lanes, count - start)
            mask = None
            if left < lanes and (exact or adds or steps[0] != 1):
                mask = first_lanes(left, lanes)
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
        """Return the start of one output row in the bordered image and in the columns."""
        shape = self.shape
        channel, i, j, row = known
        wide = shape.full[1]
        image = self.sum(
            (channel, shape.full[0] * wide),
            (row, shape.stride[0] * wide),
            (i, shape.dilation[0] * wide),
            (j, shape.dilation[1]),
        )
        taps = shape.kernel[0] * shape.kernel[1]
        line = self.sum((channel, taps), (i, shape.kernel[1]), (j, 1))
        return image, self.sum((line, shape.width), (row, shape.out[1]))

    def _rows(self, known: list[str]) -> tuple[str, str]:
        """Return the addresses of a row of the image, without and with its border; `known` are channel and row."""
        shape, (channel, row) = self.shape, known
        (top, _), (left, _) = shape.padding
        plain = self.at("%image", self.sum((channel, shape.size[0] * shape.size[1]), (row, shape.size[1])))
        corner = self.at("%bordered", top * shape.full[1] + left)
        return plain, self.at(corner, self.sum((channel, shape.full[0] * shape.full[1]), (row, shape.full[1])))

    def gather_text(self, name: str) -> str:
        """Return the function (image, bordered, columns) that writes an image's windows as columns."""
        shape = self.shape
        self.clear("%bordered", shape.channels * shape.full[0] * shape.full[1])

        def border(known: list[str]) -> None:
            self.move(*self._rows(known), shape.size[1], (1, 1), adds=False, exact=True)

        def window(known: list[str]) -> None:
            image, line = self._row(known)
            source, target = self.at("%bordered", image), self.at("%columns", line)
            # For a single image, the next line overwrites the excess.
            exact = shape.together > 1
            self.move(source, target, shape.out[1], (shape.stride[1], 1), adds=False, exact=exact)

        self.nest([shape.channels, shape.size[0]], border)
        self.nest([shape.channels, *shape.kernel, shape.out[0]], window)
        return self._finish(name)

    def spread_text(self, name: str) -> str:
        """Return the function (image, bordered, columns) that adds columns back at the positions of their windows."""
        shape = self.shape
        self.clear("%bordered", shape.channels * shape.full[0] * shape.full[1])

        def window(known: list[str]) -> None:
            image, line = self._row(known)
            source, target = self.at("%columns", line), self.at("%bordered", image)
            self.move(source, target, shape.out[1], (1, shape.stride[1]), adds=True, exact=True)

        def cut(known: list[str]) -> None:
            plain, bordered = self._rows(known)
            self.move(bordered, plain, shape.size[1], (1, 1), adds=False, exact=True)

        self.nest([shape.channels, *shape.kernel, shape.out[0]], window)
        self.nest([shape.channels, shape.size[0]], cut)
        return self._finish(name)

    def stage_text(self, name: str, channels: int, *, back: bool) -> str:
        """Return the function (images, staged, unused) that copies the planes of images side by side, or back."""
        shape = self.shape

        def line(known: list[str]) -> None:
            image, channel = known
            apart = self.at("%image", self.sum((image, channels * shape.positions), (channel, shape.positions)))
            beside = self.at("%bordered", self.sum((channel, shape.width), (image, shape.positions)))
            source, target = (beside, apart) if back else (apart, beside)
            self.move(source, target, shape.positions, (1, 1), adds=False, exact=True)

        self.nest([shape.together, channels], line)
        return self._finish(name)

    def _finish(self, name: str) -> str:
        self.b.raw("ret void")
        head = f"define internal void @{name}(ptr %image, ptr %bordered, ptr %columns) noinline #0"
        return f"{head} {{\nentry:\n" + "\n".join(self.b.lines) + "\n}\n"


class ShareWriter(ConvWriter):
    """Writes a function (first, second, result, scratch, lo, hi) that computes the units [lo, hi) of a convolution."""

    def finished(self, name: str) -> str:
        """Return the whole function."""
        self.b.raw("ret void")
        head = f"define internal void @{name}(ptr %first, ptr %second, ptr %result, ptr %scratch, i64 %lo, i64 %hi) #0"
        return f"{head} {{\nentry:\n" + "\n".join(self.b.lines) + "\n}\n"

    def images_of(self, part: str, parts: int) -> tuple[str, str]:
        """Return the range of a part's images; there are at least as many images as parts."""
        images = self.shape.images

        def bound(number: str) -> str:
            scaled = self.b.define(f"mul i64 {number}, {images}", "i64").text
            return self.b.define(f"udiv i64 {scaled}, {parts}", "i64").text

        return bound(part), bound(self.b.define(f"add i64 {part}, 1", "i64").text)
