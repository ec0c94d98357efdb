"""The gradient of a large weight from few, small images: shares have channels of the image, and no parts to add up.

A part of the sum over images is as large as the weight, and is written, read and added up in memory. Where all images
together have few places, one product sums over all of them: outputs by places times places by windows of some
channels. The gradient is brought into that order once for a share, the windows of a block of channels at a time.
"""

from __future__ import annotations

import math

from glassgrad.compile.llvm.convolutions.plan import ConvPlan
from glassgrad.compile.llvm.convolutions.windows import Helper, Shape, ShareWriter
from glassgrad.compile.llvm.module.ir import Module, Value
from glassgrad.compile.llvm.products.gemm import Gemm, GemmWriter, product_call, tile_shape
from glassgrad.compile.plan.weight_parts import has_few_terms

# Elements of the windows of a block: half a MB in single precision, a part of the second-level cache.
BLOCK_ELEMENTS = 1 << 17


class Channels(ConvPlan):
    """Blocks of channels of the gradient of a weight, where the sum is over few places."""

    name = "channels"

    @staticmethod
    def applies(shape: Shape) -> bool:
        whole = shape.role == "weight" and shape.parts == shape.groups == 1
        return whole and has_few_terms(shape.images, shape.positions, shape.outputs * shape.rows)

    @property
    def by_channels(self) -> bool:
        return True

    @property
    def units(self) -> int:
        return -(-self.shape.channels // block_of(self.shape))

    @property
    def scratch(self) -> int:
        return self.bytes_of(_starts(self.shape)[-1]) + product_of(self.shape).scratch

    def text(self, module: Module, helper: Helper) -> str:
        return ChannelsWriter(module, self.shape).weight_text("NAME", helper)


class ChannelsWriter(ShareWriter):
    """Writes the function (first, second, result, scratch, lo, hi) for blocks [lo, hi) of channels.

    Args:
        module: the module it belongs to.
        shape: the convolution's sizes.
        helper: adds a function that a text calls NAME to the module and returns its name.
    """

    def weight_text(self, name: str, helper: Helper) -> str:
        """Return the function: first = x, second = gradient."""
        shape, block, taps = self.shape, block_of(self.shape), math.prod(self.shape.kernel)
        gradient, windows, planes, panel = (self.at("%scratch", start) for start in _starts(shape))
        gemm = product_of(shape)
        product = helper(GemmWriter(self.module, gemm).definition("NAME"))
        self._side_by_side(gradient)
        self.clear(planes, shape.images * math.prod(shape.full))
        with self.code.loop("%lo", "%hi", 1) as blocks:
            first = self.b.define(f"mul i64 {blocks.counter.text}, {block}", "i64").text
            left = self.b.define(f"sub i64 {shape.channels}, {first}", "u64")
            count = self.b.call("umin", left, Value(str(block), "u64")).text
            with self.code.loop("0", count, 1) as channels:
                number = channels.counter.text
                self._bordered(self.b.define(f"add i64 {first}, {number}", "i64").text, planes)
                self._windows(planes, self.at(windows, self.sum((number, taps * pitch_of(shape)))))
            target = self.at("%result", self.sum((first, taps)))
            sizes = str(shape.outputs), self.sum((count, taps))
            product_call(self.b, gemm, product, (gradient, windows, target, panel), sizes)
        return self.finished(name)

    def _side_by_side(self, target: str) -> None:
        """Bring the gradient into the order of outputs, images and positions."""
        shape, pitch = self.shape, pitch_of(self.shape)

        def line(known: list[str]) -> None:
            output, image = known
            each = shape.positions
            source = self.at("%second", self.sum((image, shape.outputs * each), (output, each)))
            # What is written beyond is overwritten by the next image, or lies between two rows.
            to = self.at(target, self.sum((output, pitch), (image, each)))
            self.move(source, to, each, (1, 1), adds=False, exact=False)

        self.nest([shape.outputs, shape.images], line)

    def _bordered(self, channel: str, planes: str) -> None:
        """Copy a channel of all images, each inside of a border that stays zero."""
        shape, area, each = self.shape, math.prod(self.shape.size), math.prod(self.shape.full)
        (top, _), (left, _) = shape.padding

        def row(known: list[str]) -> None:
            image, number = known
            terms = (image, shape.channels * area), (channel, area), (number, shape.size[1])
            to = self.at(planes, self.sum((image, each), (number, shape.full[1])))
            to = self.at(to, top * shape.full[1] + left)
            self.move(self.at("%first", self.sum(*terms)), to, shape.size[1], (1, 1), adds=False, exact=True)

        self.nest([shape.images, shape.size[0]], row)

    def _windows(self, planes: str, target: str) -> None:
        """Write what each tap of a channel's kernel sees: a row for each, of images and positions."""
        shape, pitch, (wide, out) = self.shape, pitch_of(self.shape), (self.shape.full[1], self.shape.out[1])

        def line(known: list[str]) -> None:
            i, j, image, number = known
            seen = (i, shape.dilation[0] * wide), (j, shape.dilation[1])
            source = (image, math.prod(shape.full)), (number, shape.stride[0] * wide), *seen
            to = (i, shape.kernel[1] * pitch), (j, pitch), (image, shape.positions), (number, out)
            read, write = self.at(planes, self.sum(*source)), self.at(target, self.sum(*to))
            self.move(read, write, out, (shape.stride[1], 1), adds=False, exact=False)

        self.nest([*shape.kernel, shape.images, shape.out[0]], line)


def pitch_of(shape: Shape) -> int:
    """Return the elements from row to row of a matrix: room for a last vector, and no multiple of a page."""
    least = -(-(shape.images * shape.positions + shape.lanes) // 16) * 16
    return least if least % 256 else least + 16


def block_of(shape: Shape) -> int:
    """Return the channels of a block: as many as fill panels of a product."""
    taps, width = math.prod(shape.kernel), 3 * shape.lanes
    few = width // math.gcd(width, taps)
    fitting = BLOCK_ELEMENTS // (taps * shape.images * shape.positions * few)
    return min(shape.channels, few * max(1, fitting))


def product_of(shape: Shape) -> Gemm:
    """Return the product of a block: outputs by windows."""
    taps, block, pitch = math.prod(shape.kernel), block_of(shape), pitch_of(shape)
    columns = {channels * taps for channels in (block, shape.channels % block) if channels}
    terms, tile = shape.images * shape.positions, tile_shape(block * taps, shape.lanes)
    sides = (pitch, 1), (1, pitch), shape.rows
    sizes = (shape.outputs,), tuple(sorted(columns))
    return Gemm(shape.kind, terms, *sides, *sizes, shape.lanes, tile, pack=True)


def _starts(shape: Shape) -> tuple[int, ...]:
    """Return where gradient, windows, planes and packed panels begin in scratch memory, in elements."""
    room, pitch = 2 * shape.lanes * shape.stride[1], pitch_of(shape)
    rows = block_of(shape) * math.prod(shape.kernel)
    sizes = shape.outputs * pitch + room, rows * pitch + room, shape.images * math.prod(shape.full) + room
    gradient, windows, planes = (-(-size // 16) * 16 for size in sizes)
    return 0, gradient, gradient + windows, gradient + windows + planes
