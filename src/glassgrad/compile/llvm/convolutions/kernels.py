"""Convolutions in two dimensions: windows as columns, an image or a few at a time, and a matrix product for each.

An image's windows (channels times kernel, by positions) are gathered in scratch memory, where they stay in the cache
for the product that follows. The transposes run the same steps in another order: the product first and then adding the
columns back where they came from, or the product of columns and gradient, summed over images.

Small images go together: a product with few columns would read all weights for little work. Their columns lie side by
side, and what belongs to the other side of the product is brought into that order, or out of it, in scratch memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from glassgrad.compile.ir.graph import Var
from glassgrad.compile.llvm.convolutions.channels import ChannelsWriter, blocks_of
from glassgrad.compile.llvm.convolutions.channels import scratch_of as scratch_of_channels
from glassgrad.compile.llvm.convolutions.depthwise import DepthwiseWriter
from glassgrad.compile.llvm.convolutions.direct import DirectWriter, scratch_of, side_of
from glassgrad.compile.llvm.convolutions.windows import ENOUGH_COLUMNS, ConvWriter, Shape, shape_of
from glassgrad.compile.llvm.convolutions.winograd import WinogradWriter
from glassgrad.compile.llvm.convolutions.winograd_plan import Plan, plan_of, weight_plan_of
from glassgrad.compile.llvm.convolutions.winograd_weight import WinogradWeightWriter
from glassgrad.compile.llvm.module.ir import BITS, Builder
from glassgrad.compile.llvm.module.solid_base import FormCode
from glassgrad.compile.llvm.products.gemm import Branch, Gemm, GemmWriter, product_call, tile_shape
from glassgrad.compile.plan.indexing.indices import Index, row_strides
from glassgrad.compile.plan.schedule import Cut, even_bounds, region_of

if TYPE_CHECKING:
    from glassgrad.compile.llvm.module.step import StepModule
    from glassgrad.compile.plan.schedule import Task


# The result of a product is asked for before its sums are ready where it is larger than a second-level cache.
_LARGE = 1 << 20


def _is_large(rows: int, columns: int, kind: str) -> bool:
    return rows * columns * BITS[kind] // 8 >= _LARGE


class ConvCode(FormCode[Shape]):
    """conv2d, and what the transposes share with it. Images are the units of work."""

    label = "conv"
    turned = False
    read = staticmethod(shape_of)

    @property
    def flops(self) -> int:
        return self.form.flops

    def time(self) -> float:
        return 200.0 + self.form.flops / 80.0

    def units(self) -> int:
        return self.filtered.units if self.form.is_winograd else self.form.images // self.together()

    @cached_property
    def filtered(self) -> Plan:
        """How it is done by minimal filtering."""
        return plan_of(self.form, turned=self.turned)

    def together(self) -> int:
        """Return how many images are a unit."""
        return self.filtered.blocks.images if self.form.is_winograd else self.form.together

    def cuts(self, shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
        units = self.units()
        if units < 2:
            return []
        bounds = even_bounds(units, shares)
        if self.has_channels:
            # Shares read all images, and write some part of the result: neighbours in the program wait for all of it.
            return [Cut("channels", bounds, {})]
        each = self.together() if self.instr.op != "conv2d_weight_parts" else 1
        regions = {}
        operands = [(operand.root, operand.shape) for operand in self.kernel.operands if operand is not None]
        for var, shape in [*operands, (self.instr.output, self.instr.output.shape)]:
            root = alias.get(var, var)
            index = Index(0, tuple((axis, stride) for axis, stride in enumerate(row_strides(shape)) if shape[axis] > 1))
            is_weight = self.instr.op != "conv2d_weight_parts" and shape == self._w()
            by_unit = shape and shape[0] == units * each and not is_weight
            extents = dict(enumerate(shape))
            ends = [end * each for end in bounds]
            regions[root] = region_of(index, [(0, ends[-1])], ends, extents, root.size) if by_unit else None
        return [Cut("images", bounds, regions)]

    @property
    def has_channels(self) -> bool:
        """Whether shares have channels, and all images."""
        return self.form.is_winograd and self.filtered.by_results

    def _w(self) -> tuple[int, ...]:
        operand = self.kernel.operands[1]
        assert operand is not None
        return operand.shape

    # --- scratch: bordered image, columns, outputs side by side, packed panels -----------------------

    @property
    def scratch(self) -> int:
        if self.form.is_winograd:
            return self.filtered.scratch
        if self.form.is_direct:
            return scratch_of(self.form, self.instr.op, self.units()) * BITS[self.form.kind] // 8
        panel = 0 if self.form.is_depthwise else self.gemm().scratch
        return (self._start_of_panel() + 64) * BITS[self.form.kind] // 8 + panel

    def _start_of_columns(self) -> int:
        return -(-self.form.bordered // 16) * 16

    def _start_of_staged(self) -> int:
        return -(-(self._start_of_columns() + self.form.columns) // 16) * 16

    def _start_of_panel(self) -> int:
        return -(-(self._start_of_staged() + self.form.staged) // 16) * 16

    def gemm(self) -> Gemm:
        """The product of one unit of images (and group)."""
        shape = self.form
        m, k, n = shape.outputs // shape.groups, shape.rows // shape.groups, shape.width
        pack = m > 64 or (n * BITS[shape.kind] // 8 % 1024 == 0 and m > 18)
        return Gemm(shape.kind, k, (k, 1), (n, 1), n, (m,), (n,), shape.lanes, tile_shape(n, shape.lanes), pack)

    # --- emission ----------------------------------------------------------------------------------

    def emit(self, step: StepModule, b: Builder, task: Task, bounds: tuple[str, str]) -> None:
        """Loop over the share's units."""
        pointers = [*self.pointers(step, b), step.pointer(b, self.instr.output), step.scratch_pointer(b)]
        if (whole := self.whole(step)) is not None:
            self.call(step, b, whole, pointers, bounds)
            return
        writer = ConvWriter(step.module, self.form)
        with writer.code.loop("%lo", "%hi", 1) as loop:
            self.unit(step, writer, loop.counter.text)
        writer.b.raw("ret void")
        body = "\n".join(["entry:", *writer.b.lines])
        head = "(ptr %first, ptr %second, ptr %result, ptr %scratch, i64 %lo, i64 %hi) #0"
        self.call(step, b, f"define internal void @NAME{head} {{\n{body}\n}}\n", pointers, bounds)

    def whole(self, step: StepModule) -> str | None:
        """Return the function of a convolution that needs no columns; None for the others."""
        if self.form.is_depthwise:
            return DepthwiseWriter(step.module, self.form).forward_text("NAME")
        if self.form.is_winograd:
            return WinogradWriter(step.module, self.form, step.helper).sums_text("NAME", self.filtered)
        if self.form.is_direct:
            return DirectWriter(step.module, self.form).sums_text("NAME", side_of(self.form, turned=False))
        return None

    def unit(self, step: StepModule, writer: ConvWriter, number: str) -> None:
        """Emit the images of one unit: first = x, second = w."""
        shape = self.form
        columns = self.windows(step, writer, self._inputs(writer, "%first", number), "gather")
        result = self._outputs(writer, "%result", number)
        m, k = shape.outputs // shape.groups, shape.rows // shape.groups
        target = self.staged(step, writer, result, "")
        self.products(step, writer, ("%second", m * k), (columns, k * shape.width), (target, m * shape.width))
        self.staged(step, writer, result, "back")

    def _inputs(self, writer: ConvWriter, base: str, number: str) -> str:
        shape = self.form
        return writer.at(base, writer.sum((number, shape.together * shape.channels * shape.size[0] * shape.size[1])))

    def _outputs(self, writer: ConvWriter, base: str, number: str) -> str:
        return writer.at(base, writer.sum((number, self.form.outputs * self.form.width)))

    def windows(self, step: StepModule, writer: ConvWriter, images: str, what: str) -> str:
        """Call the gathering or spreading of each image's windows; return the address of the columns."""
        shape = self.form
        if shape.is_plain:
            place = self._columns(writer, images)
            if shape.together > 1:
                self.beside(step, writer, (images, place), shape.channels, back=what == "spread")
            return place
        inner = ConvWriter(step.module, shape)
        if what == "gather":
            text = inner.gather_text("NAME")
        else:
            small = shape.positions < ENOUGH_COLUMNS and shape.stride == (1, 1)
            text = inner.collect_text("NAME") if small else inner.spread_text("NAME")
        columns = self._columns(writer, images)
        name = step.helper(text)

        def one(known: list[str]) -> None:
            image = writer.at(images, writer.sum((known[0], shape.channels * shape.size[0] * shape.size[1])))
            place = writer.at(columns, writer.sum((known[0], shape.positions)))
            writer.b.raw(f"call void @{name}(ptr {image}, ptr %scratch, ptr {place})")

        if shape.together == 1:
            one(["0"])
        else:
            writer.nest([shape.together], one)
        return columns

    def _columns(self, writer: ConvWriter, images: str) -> str:
        """Return where the columns of images lie: in scratch memory, or where the only image is its own columns."""
        if self.form.is_plain and self.form.together == 1:
            return images
        return writer.at("%scratch", self._start_of_columns())

    def staged(self, step: StepModule, writer: ConvWriter, images: str, move: str) -> str:
        """Return where the outputs of a unit lie side by side, after moving them there ("in") or away ("back")."""
        if self.form.together == 1:
            return images
        place = writer.at("%scratch", self._start_of_staged())
        if move:
            self.beside(step, writer, (images, place), self.form.outputs, back=move == "back")
        return place

    def beside(
        self, step: StepModule, writer: ConvWriter, places: tuple[str, str], channels: int, *, back: bool
    ) -> None:
        """Bring the planes of images side by side, from the first place to the second, or back."""
        name = step.helper(ConvWriter(step.module, self.form).stage_text("NAME", channels, back=back))
        writer.b.raw(f"call void @{name}(ptr {places[0]}, ptr {places[1]}, ptr null)")

    def products(
        self, step: StepModule, writer: ConvWriter, a: tuple[str, int], b: tuple[str, int], c: tuple[str, int]
    ) -> None:
        """Call the product of every group; each side is (address, elements from group to group)."""
        gemm = self.gemm()
        text = GemmWriter(step.module, gemm).definition("NAME")
        name = step.helper(text)
        panel = writer.at("%scratch", self._start_of_panel())
        for group in range(self.form.groups):
            left, right, result = (writer.at(place, group * further) for place, further in (a, b, c))
            product_call(writer.b, gemm, name, (left, right, result, panel), (str(gemm.rows[0]), str(gemm.columns[0])))


class ConvInputCode(ConvCode):
    """The transpose with respect to the input: first = gradient, second = w."""

    turned = True

    def gemm(self) -> Gemm:
        shape = self.form
        m, k, n = shape.rows // shape.groups, shape.outputs // shape.groups, shape.width
        tile = tile_shape(n, shape.lanes)
        far = m * BITS[shape.kind] // 8 >= 1024 and n > tile.vectors * shape.lanes
        pack, fetch = m > 64, _is_large(m, n, shape.kind)
        return Gemm(shape.kind, k, (1, m), (n, 1), n, (m,), (n,), shape.lanes, tile, pack, far, fetch=fetch)

    def unit(self, step: StepModule, writer: ConvWriter, number: str) -> None:
        shape = self.form
        gradient = self.staged(step, writer, self._outputs(writer, "%first", number), "in")
        images = self._inputs(writer, "%result", number)
        columns = self._columns(writer, images)
        m, k = shape.rows // shape.groups, shape.outputs // shape.groups
        self.products(step, writer, ("%second", m * k), (gradient, k * shape.width), (columns, m * shape.width))
        self.windows(step, writer, images, "spread")

    def whole(self, step: StepModule) -> str | None:
        if self.form.is_depthwise:
            return DepthwiseWriter(step.module, self.form).input_text("NAME")
        if self.form.is_winograd:
            return WinogradWriter(step.module, self.form, step.helper).sums_text("NAME", self.filtered)
        if self.form.is_direct:
            return DirectWriter(step.module, self.form).sums_text("NAME", side_of(self.form, turned=True))
        return None


class ConvWeightCode(ConvCode):
    """The transpose with respect to the weight, in parts of several units each: first = x, second = gradient."""

    def units(self) -> int:
        return blocks_of(self.form) if self.form.is_by_channels else self.instr.output.shape[0]

    @property
    def has_channels(self) -> bool:
        return self.form.is_by_channels

    @property
    def scratch(self) -> int:
        if self.form.is_by_channels:
            return scratch_of_channels(self.form)
        return weight_plan_of(self.form, self.units()).scratch if self.form.is_winograd else super().scratch

    def whole(self, step: StepModule) -> str | None:
        if self.form.is_depthwise:
            return DepthwiseWriter(step.module, self.form).weight_text("NAME", self.units())
        if self.form.is_by_channels:
            return ChannelsWriter(step.module, self.form).weight_text("NAME", step.helper)
        if self.form.is_winograd:
            plan = weight_plan_of(self.form, self.units())
            return WinogradWeightWriter(step.module, self.form, step.helper).weight_text("NAME", plan, self.units())
        if self.form.is_direct:
            return DirectWriter(step.module, self.form).weight_text("NAME", self.units())
        return None

    def gemm(self) -> Gemm:
        shape = self.form
        m, k, n = shape.outputs // shape.groups, shape.width, shape.rows // shape.groups
        tile = tile_shape(n, shape.lanes)
        fetch = _is_large(m, n, shape.kind)
        return Gemm(
            shape.kind, k, (k, 1), (1, k), n, (m,), (n,), shape.lanes, tile, pack=True, accumulate=True, fetch=fetch
        )

    def unit(self, step: StepModule, writer: ConvWriter, number: str) -> None:
        shape = self.form
        parts, units = self.units(), shape.images // shape.together
        m, n = shape.outputs // shape.groups, shape.rows // shape.groups
        size = shape.groups * m * n
        result = writer.at("%result", writer.sum((number, size)))
        writer.clear(result, size)
        b = writer.b
        first = b.define(f"mul i64 {number}, {units}", "i64").text
        first = b.define(f"udiv i64 {first}, {parts}", "i64").text
        last = b.define(f"mul i64 {b.define(f'add i64 {number}, 1', 'i64').text}, {units}", "i64").text
        last = b.define(f"udiv i64 {last}, {parts}", "i64").text
        any_left = b.define(f"icmp ult i64 {first}, {last}", "b1").text
        with Branch(writer.code, any_left), writer.code.loop(first, last, 1) as loop:
            some = loop.counter.text
            columns = self.windows(step, writer, self._inputs(writer, "%first", some), "gather")
            gradient = self.staged(step, writer, self._outputs(writer, "%second", some), "in")
            self.products(step, writer, (gradient, m * shape.width), (columns, n * shape.width), (result, m * n))
