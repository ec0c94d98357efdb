"""Convolution by im2col: windows as columns, one or a few images at a time, and a matrix product for each.

An image's windows (channels times kernel, by positions) are gathered in scratch memory and stay in the cache for the
following product. The transposes run the same steps in another order: first the product and then adding the columns
back to the image, or the product of columns and gradient, summed over images.

Small images are processed together, because a product with few columns would read all weights for little work. Their
columns are side by side. The outputs are converted into that order, or back, in scratch memory.
"""

from __future__ import annotations

from glassgrad.compile.llvm.convolutions.plan import ConvPlan
from glassgrad.compile.llvm.convolutions.windows import (
    MOST_COLUMNS,
    ConvWriter,
    Helper,
    Shape,
    ShareWriter,
)
from glassgrad.compile.llvm.module.ir import BITS, Module
from glassgrad.compile.llvm.products.gemm import Gemm, GemmWriter, product_call, tile_shape

# Prefetch the result of a product before its sums are ready if it is larger than a second-level cache.
_LARGE = 1 << 20


def _is_large(rows: int, columns: int, kind: str) -> bool:
    return rows * columns * BITS[kind] // 8 >= _LARGE


class Columns(ConvPlan):
    """Columns and a product. Scratch memory: bordered image, columns, outputs side by side, packed panels."""

    name = "columns"

    @staticmethod
    def applies(shape: Shape) -> bool:
        return shape.columns <= MOST_COLUMNS

    @property
    def images(self) -> int:
        return self.shape.together

    @property
    def scratch(self) -> int:
        return self.bytes_of(self.start_of_panel) + self.gemm.scratch

    @property
    def start_of_columns(self) -> int:
        return _aligned(self.shape.bordered)

    @property
    def start_of_staged(self) -> int:
        return _aligned(self.start_of_columns + self.shape.columns)

    @property
    def start_of_panel(self) -> int:
        return _aligned(self.start_of_staged + self.shape.staged)

    @property
    def gemm(self) -> Gemm:
        """The product of one unit of images, for one group of channels."""
        shape = self.shape
        outputs, rows, width = shape.outputs // shape.groups, shape.rows // shape.groups, shape.width
        kind, lanes = shape.kind, shape.lanes
        match shape.role:
            case "result":
                m, k, n = outputs, rows, width
                pack = m > 64 or (n * BITS[kind] // 8 % 1024 == 0 and m > 18)
                return Gemm(kind, k, (k, 1), (n, 1), n, (m,), (n,), lanes, tile_shape(n, lanes), pack)
            case "input":
                m, k, n = rows, outputs, width
                tile = tile_shape(n, lanes)
                far = m * BITS[kind] // 8 >= 1024 and n > tile.vectors * lanes
                fetch = _is_large(m, n, kind)
                return Gemm(kind, k, (1, m), (n, 1), n, (m,), (n,), lanes, tile, m > 64, far, fetch=fetch)
        m, k, n = outputs, width, rows
        sizes = (k, 1), (1, k), n, (m,), (n,)
        fetch = _is_large(m, n, kind)
        return Gemm(kind, k, *sizes, lanes, tile_shape(n, lanes), pack=True, accumulate=True, fetch=fetch)

    def text(self, module: Module, helper: Helper) -> str:
        return ColumnsWriter(module, self, helper).definition("NAME")


def _aligned(elements: int) -> int:
    return -(-elements // 16) * 16


class ColumnsWriter(ShareWriter):
    """Writes the function (first, second, result, scratch, lo, hi) of a convolution by columns.

    Args:
        module: the module it belongs to.
        plan: sizes and the offsets in scratch memory.
        helper: adds a function that a text calls NAME to the module and returns its name.
    """

    def __init__(self, module: Module, plan: Columns, helper: Helper) -> None:
        super().__init__(module, plan.shape)
        self.plan, self.helper = plan, helper

    def definition(self, name: str) -> str:
        """Return the function of all units [lo, hi)."""
        unit = {"result": self._result, "input": self._input, "weight": self._weight}[self.shape.role]
        with self.code.loop("%lo", "%hi", 1) as loop:
            unit(loop.counter.text)
        return self.finished(name)

    # --- one unit of work ----------------------------------------------------------------------------

    def _result(self, number: str) -> None:
        """Emit the results of a unit of images: first = x, second = w."""
        shape = self.shape
        columns = self._windows(self._inputs("%first", number), back=False)
        result = self._outputs("%result", number)
        m, k = shape.outputs // shape.groups, shape.rows // shape.groups
        target = self._place_of_staged(result)
        self._products(("%second", m * k), (columns, k * shape.width), (target, m * shape.width))
        self._stage(result, target, back=True)

    def _input(self, number: str) -> None:
        """Emit the gradient of a unit of images: first = gradient, second = w."""
        shape = self.shape
        outputs = self._outputs("%first", number)
        gradient = self._place_of_staged(outputs)
        self._stage(outputs, gradient, back=False)
        images = self._inputs("%result", number)
        columns = self._place_of_columns(images)
        m, k = shape.rows // shape.groups, shape.outputs // shape.groups
        self._products(("%second", m * k), (gradient, k * shape.width), (columns, m * shape.width))
        self._windows(images, back=True)

    def _weight(self, number: str) -> None:
        """Emit a part of the gradient of the weight, the sum over some units: first = x, second = gradient."""
        shape = self.shape
        units = shape.images // shape.together
        m, n = shape.outputs // shape.groups, shape.rows // shape.groups
        size = shape.groups * m * n
        result = self.at("%result", self.sum((number, size)))
        self.clear(result, size)
        first = self.b.define(f"mul i64 {number}, {units}", "i64").text
        first = self.b.define(f"udiv i64 {first}, {shape.parts}", "i64").text
        after = self.b.define(f"add i64 {number}, 1", "i64").text
        last = self.b.define(f"mul i64 {after}, {units}", "i64").text
        last = self.b.define(f"udiv i64 {last}, {shape.parts}", "i64").text
        any_left = self.b.define(f"icmp ult i64 {first}, {last}", "b1").text
        with self.code.when(any_left), self.code.loop(first, last, 1) as loop:
            some = loop.counter.text
            columns = self._windows(self._inputs("%first", some), back=False)
            outputs = self._outputs("%second", some)
            gradient = self._place_of_staged(outputs)
            self._stage(outputs, gradient, back=False)
            self._products((gradient, m * shape.width), (columns, n * shape.width), (result, m * n))

    # --- addresses and copies --------------------------------------------------------------------------

    def _inputs(self, base: str, number: str) -> str:
        shape = self.shape
        return self.at(base, self.sum((number, shape.together * shape.channels * shape.size[0] * shape.size[1])))

    def _outputs(self, base: str, number: str) -> str:
        return self.at(base, self.sum((number, self.shape.outputs * self.shape.width)))

    def _place_of_columns(self, images: str) -> str:
        """Return the address of the columns: scratch memory, or the image itself if it already equals its columns."""
        if self.shape.is_plain and self.shape.together == 1:
            return images
        return self.at("%scratch", self.plan.start_of_columns)

    def _place_of_staged(self, images: str) -> str:
        """Return the address of a unit's outputs side by side: scratch memory, or that of its only image."""
        return images if self.shape.together == 1 else self.at("%scratch", self.plan.start_of_staged)

    def _windows(self, images: str, *, back: bool) -> str:
        """Gather the windows of a unit's images as columns, or add them `back`; return the address of the columns."""
        shape = self.shape
        if shape.is_plain:
            place = self._place_of_columns(images)
            if shape.together > 1:
                self._beside(images, place, shape.channels, back=back)
            return place
        inner = ConvWriter(self.module, shape)
        text = inner.spread_text("NAME") if back else inner.gather_text("NAME")
        columns = self._place_of_columns(images)
        name = self.helper(text)

        def one(known: list[str]) -> None:
            image = self.at(images, self.sum((known[0], shape.channels * shape.size[0] * shape.size[1])))
            place = self.at(columns, self.sum((known[0], shape.positions)))
            self.b.raw(f"call void @{name}(ptr {image}, ptr %scratch, ptr {place})")

        if shape.together == 1:
            one(["0"])
        else:
            self.nest([shape.together], one)
        return columns

    def _stage(self, images: str, staged: str, *, back: bool) -> None:
        """Copy the outputs of a unit of several images side by side, or `back`."""
        if self.shape.together > 1:
            self._beside(images, staged, self.shape.outputs, back=back)

    def _beside(self, images: str, place: str, channels: int, *, back: bool) -> None:
        """Copy the planes of images side by side to `place`, or `back`."""
        name = self.helper(ConvWriter(self.module, self.shape).stage_text("NAME", channels, back=back))
        self.b.raw(f"call void @{name}(ptr {images}, ptr {place}, ptr null)")

    def _products(self, a: tuple[str, int], b: tuple[str, int], c: tuple[str, int]) -> None:
        """Call the product of every group; each operand is (address, elements from group to group)."""
        gemm = self.plan.gemm
        name = self.helper(GemmWriter(self.module, gemm).definition("NAME"))
        panel = self.at("%scratch", self.plan.start_of_panel)
        sizes = str(gemm.rows[0]), str(gemm.columns[0])
        for group in range(self.shape.groups):
            left, right, result = (self.at(place, group * further) for place, further in (a, b, c))
            product_call(self.b, gemm, name, (left, right, result, panel), sizes)
