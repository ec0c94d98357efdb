"""Depthwise convolutions: one channel of an image at a time, with sums in vector registers.

A matrix product does not pay here: im2col would write the image once per tap, to read it once. A channel with its
border stays in the first-level cache; a vector of outputs is the sum of the taps' weights times the vectors that start
under them. The transpose with respect to the input is the same sum with the kernel reversed, over a gradient whose
elements are a stride apart; that with respect to the weight keeps one vector of sums for each tap.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from glassgrad.compile.llvm.convolutions.plan import ConvPlan
from glassgrad.compile.llvm.convolutions.windows import WIDEST, Helper, Shape, ShareWriter
from glassgrad.compile.llvm.loops.memory_ops import first_lanes, load_vector, store_vector
from glassgrad.compile.llvm.loops.scalar import across_lanes
from glassgrad.compile.llvm.module.ir import LLVM_TYPE, Loop, Module, Value

# The most taps that are summed in registers.
_MOST_TAPS = 49
# The most vectors of a row that are unrolled; a longer row is a loop.
_STRAIGHT = 4

Rows = Callable[[str, int, int], None]


class Depthwise(ConvPlan):
    """A channel of an image at a time, inside its border in scratch memory."""

    name = "depthwise"

    @staticmethod
    def applies(shape: Shape) -> bool:
        alone = shape.groups > 1 and shape.channels == shape.outputs == shape.groups
        narrow = max(shape.size[1], shape.out[1]) <= WIDEST * shape.lanes
        return alone and math.prod(shape.kernel) <= _MOST_TAPS and narrow and shape.borders_fit

    @property
    def scratch(self) -> int:
        shape = self.shape
        plane = max(math.prod(shape.full), math.prod(shape.spread)) + 2 * shape.lanes * shape.stride[1]
        return self.bytes_of(-(-plane // 16) * 16)

    def text(self, module: Module, helper: Helper) -> str:
        writer = DepthwiseWriter(module, self.shape)
        match self.shape.role:
            case "result":
                return writer.forward_text("NAME")
            case "input":
                return writer.input_text("NAME")
        return writer.weight_text("NAME", self.shape.parts)


class DepthwiseWriter(ShareWriter):
    """Writes the function (first, second, result, scratch, lo, hi) of a depthwise convolution."""

    def forward_text(self, name: str) -> str:
        """Return the function for images [lo, hi): first = x, second = w."""
        shape = self.shape

        def plane(image: str, channel: str) -> None:
            self._bordered(self.plane("%first", image, channel, shape.size), shape.size, self._start())
            self._filter(channel, self.plane("%result", image, channel, shape.out), shape.out, turned=False)

        return self._over_planes(name, shape.full, plane)

    def input_text(self, name: str) -> str:
        """Return the function for images [lo, hi): first = gradient, second = w."""
        shape = self.shape

        def plane(image: str, channel: str) -> None:
            self._spread(self.plane("%first", image, channel, shape.out))
            self._filter(channel, self.plane("%result", image, channel, shape.size), shape.size, turned=True)

        return self._over_planes(name, shape.spread, plane)

    def weight_text(self, name: str, parts: int) -> str:
        """Return the function for parts [lo, hi) of the images: first = x, second = gradient."""
        shape, taps = self.shape, self._taps()
        zero = self.b.const(0, shape.kind, shape.lanes)
        self.clear("%scratch", math.prod(shape.full))
        with self.code.loop("%lo", "%hi", 1) as part:
            first, last = self.images_of(part.counter.text, parts)
            with self.code.loop("0", str(shape.channels), 1) as channel:
                number = channel.counter.text
                with self.code.loop(first, last, 1) as images:
                    sums = [images.carry(self.b, zero) for _ in taps]
                    x = self.plane("%first", images.counter.text, number, shape.size)
                    self._bordered(x, shape.size, self._start())
                    gradient = self.plane("%second", images.counter.text, number, shape.out)
                    images.next = self._weight_rows(gradient, sums)
                self._store_sums(images, part.counter.text, number)
        return self.finished(name)

    # --- planes --------------------------------------------------------------------------------------

    def _start(self) -> tuple[int, int]:
        (top, _), (left, _) = self.shape.padding
        return top, left

    def _taps(self) -> list[tuple[int, int]]:
        return [(i, j) for i in range(self.shape.kernel[0]) for j in range(self.shape.kernel[1])]

    def plane(self, base: str, image: str, channel: str, size: tuple[int, int]) -> str:
        """Return the address of a channel of an image."""
        each = math.prod(size)
        return self.at(base, self.sum((image, self.shape.channels * each), (channel, each)))

    def _over_planes(self, name: str, full: tuple[int, int], plane: Callable[[str, str], None]) -> str:
        self.clear("%scratch", math.prod(full))
        with self.code.loop("%lo", "%hi", 1) as images, self.code.loop("0", str(self.shape.channels), 1) as channels:
            plane(images.counter.text, channels.counter.text)
        return self.finished(name)

    def _bordered(self, plane: str, size: tuple[int, int], start: tuple[int, int]) -> None:
        """Copy an image's plane into scratch memory, with its first element at `start`; the border stays zero."""
        self._copy(plane, size, start, (1, 1), self.shape.full[1])

    def _spread(self, plane: str) -> None:
        """Copy a gradient's plane into scratch memory with neighbours a stride apart; the gaps stay zero."""
        shape = self.shape
        above, left = (shape.dilation[a] * (shape.kernel[a] - 1) - shape.padding[a][0] for a in (0, 1))
        self._copy(plane, shape.out, (above, left), shape.stride, shape.spread[1])

    def _copy(
        self, plane: str, size: tuple[int, int], start: tuple[int, int], apart: tuple[int, int], wide: int
    ) -> None:
        with self.code.loop("0", str(size[0]), 1) as rows:
            source = self.at(plane, self.sum((rows.counter.text, size[1])))
            target = self.at("%scratch", self.sum((rows.counter.text, apart[0] * wide)))
            target = self.at(target, start[0] * wide + start[1])
            self.move(source, target, size[1], (1, apart[1]), adds=False, exact=True)

    # --- rows ----------------------------------------------------------------------------------------

    def _filter(self, channel: str, target: str, size: tuple[int, int], *, turned: bool) -> None:
        """Write a plane of sums over taps; `turned` reads the kernel in reverse order."""
        shape, wide = self.shape, (self.shape.spread if turned else self.shape.full)[1]
        step = (1, 1) if turned else shape.stride
        taps = self._taps()
        kernel = self.at("%second", self.sum((channel, len(taps))))
        weights = []
        for number in range(len(taps)):
            at = self.at(kernel, len(taps) - 1 - number if turned else number)
            weight = self.b.define(f"load {LLVM_TYPE[shape.kind]}, ptr {at}", shape.kind)
            weights.append(self.b.splat(weight, shape.lanes))
        with self.code.loop("0", str(size[0]), 1) as rows:
            above = self.at("%scratch", self.sum((rows.counter.text, step[0] * wide)))
            below = self.at(target, self.sum((rows.counter.text, size[1])))

            def vector(column: str, start: int, count: int) -> None:
                total = self.b.const(0, shape.kind, shape.lanes)
                for weight, value in zip(
                    weights, self._under(above, column, (start, count), wide, step[1]), strict=True
                ):
                    total = self.b.fma(weight, value, total)
                place = self.at(self.at(below, column), start)
                store_vector(self.b, total, place, (shape.lanes, 1, 0, first_lanes(count, shape.lanes)))

            self._along(size[1], vector)

    def _along(self, extent: int, vector: Rows) -> None:
        """Call `vector(column, further, how many)` along a row."""
        lanes = self.shape.lanes
        full = extent // lanes if extent // lanes > _STRAIGHT else 0
        if full:
            with self.code.loop("0", str(full * lanes), lanes) as loop:
                vector(loop.counter.text, 0, lanes)
        for start in range(full * lanes, extent, lanes):
            vector("0", start, min(lanes, extent - start))

    def _under(self, row: str, column: str, span: tuple[int, int], wide: int, step: int) -> list[Value]:
        """Load the vector under each tap for outputs from column + start on."""
        shape, found = self.shape, []
        start, count = span
        moved = self.at(row, self.sum((column, step)) if column != "0" else "0")
        for i, j in self._taps():
            place = self.at(moved, i * shape.dilation[0] * wide + j * shape.dilation[1] + start * step)
            layout = (shape.lanes, step, 0, first_lanes(count, shape.lanes))
            found.append(load_vector(self.b, shape.kind, place, layout, [], None, place))
        return found

    # --- the weight ----------------------------------------------------------------------------------

    def _weight_rows(self, gradient: str, sums: list[Value]) -> list[Value]:
        """Add a plane's products of gradient and image to the sums of the taps."""
        shape, lanes, wide = self.shape, self.shape.lanes, self.shape.full[1]
        with self.code.loop("0", str(shape.out[0]), 1) as rows:
            totals = [rows.carry(self.b, one) for one in sums]
            above = self.at("%scratch", self.sum((rows.counter.text, shape.stride[0] * wide)))
            line = self.at(gradient, self.sum((rows.counter.text, shape.out[1])))
            for start in range(0, shape.out[1], lanes):
                count = min(lanes, shape.out[1] - start)
                place = self.at(line, start)
                g = load_vector(self.b, shape.kind, place, (lanes, 1, 0, first_lanes(count, lanes)), [], None, place)
                values = self._under(above, "0", (start, count), wide, shape.stride[1])
                totals = [self.b.fma(g, value, total) for value, total in zip(values, totals, strict=True)]
            rows.next = totals
        return totals

    def _store_sums(self, images: Loop, part: str, channel: str) -> None:
        count = len(images.next)
        target = self.at("%result", self.sum((part, self.shape.channels * count), (channel, count)))
        for number, total in enumerate(images.next):
            value = across_lanes(self.b, "add", total)
            self.b.raw(f"store {value.typed}, ptr {self.at(target, number)}")
