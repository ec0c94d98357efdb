"""The transpose of minimal filtering with respect to the weight: products of transformed gradients and data, summed.

Each of the 16 matrices (outputs, channels) is the product of gradients (outputs, tiles) and data (tiles, channels);
what is left is one transform of their sums over all tiles: ``G^T [sum of (A dy A^T) * (B^T d B)] G``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from glassgrad.compile.llvm.conv_windows import Shape
from glassgrad.compile.llvm.filtering import OUTPUTS, THREE, on_both_axes, together, turned
from glassgrad.compile.llvm.gemm import Gemm, GemmWriter, product_call, tile_shape
from glassgrad.compile.llvm.ir import BITS, Value
from glassgrad.compile.llvm.winograd import (
    Blocks,
    Data,
    WinogradWriter,
    plane_elements,
    starts_of,
    tiles_of,
)


@dataclass(frozen=True)
class WeightPlan:
    """The gradient of a weight, in parts that sum over some images each.

    `starts` are the elements of scratch memory at which sums, gradients, data, a plane and packed panels begin.
    """

    shape: Shape
    blocks: Blocks
    gemm: Gemm
    pitch: int
    starts: tuple[int, ...]

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory of a share."""
        return (self.starts[-1] + 64) * BITS[self.gemm.kind] // 8 + self.gemm.scratch

    @property
    def data(self) -> Data:
        (top, _), (left, _) = self.shape.padding
        return Data(self.shape.channels, self.shape.size, (top, left), THREE.data)

    @property
    def gradient(self) -> Data:
        return Data(self.shape.outputs, self.shape.out, (0, 0), turned(THREE.outputs))


def weight_plan_of(shape: Shape, parts: int) -> WeightPlan:
    """Return how the gradient of a weight is summed in so many parts."""
    high, wide = tiles_of(shape.out)
    most = -(-shape.images // parts)
    blocks = Blocks(high, wide, max(1, min(most, 128 // (high * wide))))
    lanes, points, pitch = shape.lanes, THREE.points**2, blocks.pitch(shape.lanes)
    m, n, k = shape.outputs, shape.channels, blocks.tiles
    gemm = Gemm(
        shape.kind, k, (pitch, 1), (1, pitch), n, (m,), (n,), lanes, tile_shape(n, lanes), pack=True, accumulate=True
    )
    sizes = points * m * n, points * m * pitch + lanes, points * n * pitch + lanes, plane_elements(blocks, lanes)
    return WeightPlan(shape, blocks, gemm, pitch, starts_of(sizes))


class WinogradWeightWriter(WinogradWriter):
    """Writes the function (first, second, result, scratch, lo, hi) for parts [lo, hi): first = x, second = gradient."""

    def weight_text(self, name: str, plan: WeightPlan, parts: int) -> str:
        shape, blocks = self.shape, plan.blocks
        sums, gradients, data, plane, panel = (self.at("%scratch", start) for start in plan.starts)
        every, weights = self.filtering.points**2, shape.outputs * shape.channels
        read = [
            (self.helper(self._other().data_text("NAME", one, blocks, plan.pitch)), one, base, place)
            for one, base, place in ((plan.gradient, "%second", gradients), (plan.data, "%first", data))
        ]
        product = self.helper(GemmWriter(self.module, plan.gemm).definition("NAME"))
        last = self.helper(self._other().weights_text("NAME"))

        def block(image: str, count: str, number: str) -> None:
            row, fresh = self.row_of(blocks, number), self.sum((number, OUTPUTS * blocks.rows))
            for function, one, base, place in read:
                each = one.planes * math.prod(one.size)
                source = self.at(base, self.sum((image, each)))
                numbers = f"ptr {plane}, i64 {row}, i64 {fresh if place == gradients else 0}"
                self._over_images(blocks, function, (source, each), place, numbers, count)
            terms = self.sum((count, blocks.rows * blocks.wide))
            with self.code.loop("0", str(every), 1) as points:
                point = points.counter.text
                places = (
                    self.at(gradients, self.sum((point, shape.outputs * plan.pitch))),
                    self.at(data, self.sum((point, shape.channels * plan.pitch))),
                    self.at(sums, self.sum((point, weights))),
                    panel,
                )
                sizes = str(shape.outputs), str(shape.channels)
                product_call(self.b, plan.gemm, product, places, sizes, terms)

        with self.code.loop("%lo", "%hi", 1) as part:
            number = part.counter.text
            self.clear(sums, every * weights)
            low, high = self.images_of(number, parts)
            with self.code.loop(low, high, blocks.images) as images:
                image = images.counter.text
                left = self.b.define(f"sub i64 {high}, {image}", "u64")
                count = self.b.call("umin", left, Value(str(blocks.images), "u64")).text
                if blocks.count == 1:
                    block(image, count, "0")
                else:
                    self.nest([blocks.count], lambda known: block(image, count, known[0]))
            result = self.at("%result", self.sum((number, weights * self.filtering.taps**2)))
            self.b.raw(f"call void @{last}(ptr {sums}, ptr {result})")
        return self.finished(name)

    def weights_text(self, name: str) -> str:
        """Return the function (sums, result) of the last transform."""
        points, taps, lanes = self.filtering.points, self.filtering.taps, self.shape.lanes
        weights = self.shape.outputs * self.shape.channels

        def vector(first: str, count: int) -> None:
            places = [self.at("%first", self.sum((first, 1), ("1", number * weights))) for number in range(points**2)]
            read = [self._load(place) for place in places]
            found = on_both_axes(self.b, turned(self.filtering.kernel), read)
            target = self.at("%second", self.sum((first, taps**2)))
            for number, value in enumerate(together(self.b, found)):
                if (left := count * taps**2 - number * lanes) > 0:
                    self._store(value, self.at(target, number * lanes), left)

        self._over_kernels(vector)
        return self._inner(name, "ptr %first, ptr %second")
