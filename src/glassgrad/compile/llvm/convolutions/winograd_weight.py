"""The transpose of minimal filtering with respect to the weight: products of transformed gradients and data, summed.

Each of the 16 matrices (outputs, channels) is the product of gradients (outputs, tiles) and data (tiles, channels).
One transform of their sums over all tiles follows: ``G^T [sum of (A dy A^T) * (B^T d B)] G``.
"""

from __future__ import annotations

import math

from glassgrad.compile.llvm.convolutions.filtering import OUTPUTS, apart, on_both_axes, turned
from glassgrad.compile.llvm.convolutions.winograd import WinogradWriter
from glassgrad.compile.llvm.convolutions.winograd_plan import WeightPlan
from glassgrad.compile.llvm.module.ir import Value
from glassgrad.compile.llvm.products.gemm import GemmWriter, product_call


class WinogradWeightWriter(WinogradWriter):
    """Writes the function (first, second, result, scratch, lo, hi) for parts [lo, hi): first = x, second = gradient."""

    def weight_text(self, name: str, plan: WeightPlan, parts: int) -> str:
        shape, blocks = self.shape, plan.blocks
        sums, gradients, data, plane, panel = (self.at("%scratch", start) for start in plan.starts)
        columns = plan.data.transformed
        every, weights = self.filtering.points**2, plan.apart(shape.outputs * columns)
        product = self.helper(GemmWriter(self.module, plan.gemm).definition("NAME"))
        last = self.helper(self._once(WinogradWeightWriter.weights_text))

        def block(image: str, count: str, number: str) -> None:
            row, fresh = self.row_of(blocks, number), self.sum((number, OUTPUTS * blocks.rows))
            parts = (plan.gradient, "%second", gradients, fresh), (plan.data, "%first", data, "0")
            for one, base, place, begin in parts:
                source = self.at(base, self.sum((image, one.planes * math.prod(one.size))))
                self.transform(plan, one, (source, place), (plane, row, begin), count)
            terms = self.sum((count, blocks.rows * blocks.wide))
            with self.code.loop("0", str(every), 1) as points:
                point = points.counter.text
                places = (
                    self.at(gradients, self.sum((point, plan.apart(shape.outputs * plan.pitch)))),
                    self.at(data, self.sum((point, plan.apart(columns * plan.pitch)))),
                    self.at(sums, self.sum((point, weights))),
                    panel,
                )
                sizes = str(shape.outputs), str(columns)
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
            result = self.at("%result", self.sum((number, shape.outputs * shape.channels * math.prod(shape.kernel))))
            sizes = f"i64 {shape.outputs * shape.channels}, i64 {weights // plan.data.split**2}"
            self.b.raw(f"call void @{last}(ptr {sums}, ptr {result}, {sizes})")
        return self.finished(name)

    def weights_text(self, name: str) -> str:
        """Return the function (sums, result, kernels, apart) of the last transform; matrices are `apart` apart."""
        points, lanes, parities = self.filtering.points**2, self.shape.lanes, self.shape.stride[0] ** 2
        taps = math.prod(self.shape.kernel)

        def vector(first: str, count: str | None) -> None:
            squares: list[list[Value]] = [[] for _ in range(parities)]
            for number in range(points):
                place = self.at("%first", self.sum((first, parities), ("%apart", number * parities)))
                read = [self._load(self.at(place, start)) for start in range(0, parities * lanes, lanes)]
                for square, value in zip(squares, apart(self.b, read), strict=True):
                    square.append(value)
            found = [on_both_axes(self.b, turned(self.filtering.kernel), square) for square in squares]
            self._store_kernels(self.in_order(found), self.at("%second", self.sum((first, taps))), count)

        self._over_kernels(vector)
        return self._inner(name, "ptr %first, ptr %second, i64 %kernels, i64 %apart")

    def in_order(self, squares: list[list[Value]]) -> list[Value]:
        """Undo `by_parity`."""
        step, (high, wide) = self.shape.stride[0], self.shape.kernel
        return [
            squares[i % step * step + j % step][i // step * (wide // step) + j // step]
            for i in range(high)
            for j in range(wide)
        ]
