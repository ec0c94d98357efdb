"""Convolutions by minimal filtering: fewer products than direct sums, 16 instead of 36 for four outputs of 3x3.

A block of tiles (each the 4x4 elements that 2x2 outputs read) is transformed into 16 matrices (channels, tiles). The
weights are transformed once per call into 16 matrices (outputs, channels). The compiler's own matrix products multiply
them, and the inverse transform yields outputs; `filtering.py` has the transforms, `winograd_plan.py` the sizes. A block
is some rows of tiles of an image, or a few small images, so its matrices stay in or near the second-level cache.
A kernel of 4x4 and stride 2 is split into four of 2x2, each with 9 products instead of 16.

The transpose with respect to the input is the same sum over the gradient, with the kernel reversed. The transforms are
linear, so the transpose with respect to the weight uses the transposed transforms: 16 products of transformed gradients
and data, summed over blocks, and one transform at the end.

Along a row, a vector holds neighbouring tiles. Lanes beyond the last tile are also written, and then overwritten by the
next row or never read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace

from glassgrad.compile.llvm.convolutions.filtering import OUTPUTS, apart, on_both_axes, together
from glassgrad.compile.llvm.convolutions.windows import Helper, Shape, ShareWriter
from glassgrad.compile.llvm.convolutions.winograd_plan import Blocks, Data, Plan, WeightPlan, filtering_of
from glassgrad.compile.llvm.convolutions.winograd_small import SmallWriter
from glassgrad.compile.llvm.loops.memory_ops import first_lanes, load_vector, store_vector
from glassgrad.compile.llvm.module.ir import Module, Value
from glassgrad.compile.llvm.products.gemm import GemmWriter, product_call
from glassgrad.compile.llvm.products.tiles import written

# Parameters of functions of an image's tiles: the image, the tiles in the first matrix, planes, distance of matrices.
_OF_AN_IMAGE = "ptr %image, ptr %tiles, i64 %planes, i64 %apart"


def of_any_size(shape: Shape) -> Shape:
    """Return a shape with the fields neutralised that differ between layers with the same transforms."""
    return replace(shape, images=1, channels=1, outputs=1, role="result", parts=1)


def of_any_layer(plan: Plan) -> Plan:
    """Return a plan with the fields neutralised that differ between layers with the same transforms."""
    gemm = replace(plan.gemm, k=1, a_strides=(1, 1), b_strides=(1, 1), rows=(1,), columns=(1,), pack=False)
    blocks = replace(plan.blocks, images=1)
    return replace(plan, shape=of_any_size(plan.shape), blocks=blocks, gemm=gemm, starts=())


class WinogradWriter(ShareWriter):
    """Writes the function (first, second, result, scratch, lo, hi) of a convolution or of a transpose.

    Args:
        module: the module it belongs to.
        shape: the convolution's sizes.
        helper: adds a function that a text calls NAME to the module and returns its name.
    """

    def __init__(self, module: Module, shape: Shape, helper: Helper) -> None:
        super().__init__(module, shape)
        self.helper = helper
        self.filtering = filtering_of(shape)

    # --- forward, and with respect to the input ------------------------------------------------------

    def sums_text(self, name: str, plan: Plan) -> str:
        """Return the function for units [lo, hi): first = image or gradient, second = w."""
        self._kernels(plan)

        def block(known: list[str]) -> None:
            unit, number = known
            row = self.row_of(plan.blocks, number)
            self._data(plan, unit, row)
            self._products(plan)
            self._results(plan, unit, row)

        with self.code.loop("%lo", "%hi", 1) as units:
            if plan.blocks.count == 1:
                block([units.counter.text, "0"])
            else:
                self.nest([plan.blocks.count], lambda known: block([units.counter.text, *known]))
        return self.finished(name)

    def _places(self, plan: Plan) -> list[str]:
        """Return the parts of scratch memory: weights, data, sums, a plane, panels."""
        return [self.at("%scratch", start) for start in plan.starts]

    def _kernels(self, plan: Plan) -> None:
        """Transform all kernels."""
        name = self.helper(self._once(WinogradWriter.kernels_text, plan.turned))
        place = self._places(plan)[0]
        kernels, split = plan.results * plan.data[0].planes, plan.data[0].split ** 2
        apart = plan.apart(kernels * split) // split
        self.b.raw(f"call void @{name}(ptr %second, ptr {place}, i64 {kernels}, i64 {apart})")

    def _data(self, plan: Plan, unit: str, row: str) -> None:
        """Transform the data of a block of tiles, for each variant."""
        _, data, _, plane, _ = self._places(plan)
        read, terms = plan.data[0], plan.data[0].transformed
        each = read.planes * math.prod(read.size)
        source = self.at("%first", self.sum((unit, plan.blocks.images * each)))
        for variant, one in enumerate(plan.data):
            place = self.at(data, variant * self.filtering.points**2 * plan.apart(terms * plan.pitch))
            self.transform(plan, one, (source, place), (plane, row, "0"))

    def transform(
        self,
        plan: Plan | WeightPlan,
        data: Data,
        places: tuple[str, str],
        where: tuple[str, str, str],
        count: str | None = None,
    ) -> None:
        """Transform the data of a block's tiles, for all its images or the given number, from one address to another.

        `where` is a plane of scratch memory, the first row of tiles, and the first row of elements that is not zero.
        """
        (source, target), (plane, row, fresh), blocks = places, where, plan.blocks
        each, images = data.planes * math.prod(data.size), blocks.at_once(self.shape, data.size)
        more = self.counts(data.planes, plan.apart(data.transformed * plan.pitch))
        data, one_image = replace(data, planes=1), replace(blocks, images=1)
        if images == 1 or (images and count is None):
            text = self._once_small(SmallWriter.data_text, data, one_image, plan.pitch, images)
            more += f", i64 {each}"
        else:
            images, text = 1, self._once(WinogradWriter.data_text, data, one_image, plan.pitch)
            more += f", ptr {plane}, i64 {row}, i64 {fresh}"
        self._over_images(blocks, self.helper(text), (source, each), target, more, count or images)

    def _products(self, plan: Plan) -> None:
        """Multiply weights by data, one matrix after another."""
        kernels, data, sums, _, panel = self._places(plan)
        product, terms = self.helper(GemmWriter(self.module, plan.gemm).definition("NAME")), plan.data[0].transformed
        with self.code.loop("0", str(plan.products), 1) as points:
            point = points.counter.text
            places = (
                self.at(kernels, self.sum((point, plan.apart(plan.results * terms)))),
                self.at(data, self.sum((point, plan.apart(terms * plan.pitch)))),
                self.at(sums, self.sum((point, plan.apart(plan.results * plan.pitch)))),
                panel,
            )
            product_call(self.b, plan.gemm, product, places, (str(plan.results), str(plan.blocks.tiles)))

    def _results(self, plan: Plan, unit: str, row: str) -> None:
        """Compute results from a block's sums, for a unit of images."""
        sums, area = self._places(plan)[2], math.prod(plan.out)
        each, images = plan.results * area, plan.blocks.at_once(self.shape, plan.out)
        result = self.at("%result", self.sum((unit, plan.blocks.images * each)))
        if images:
            text = self._once_small(SmallWriter.sums_of_tiles_text, of_any_layer(plan), images)
        else:
            text = self._once(WinogradWriter.sums_of_tiles_text, of_any_layer(plan))
        more = f"{self.counts(plan.results, plan.apart(plan.results * plan.pitch))}, i64 {each if images else row}"
        self._over_images(plan.blocks, self.helper(text), (result, each), sums, more, max(images, 1))

    @staticmethod
    def counts(planes: int, apart: int) -> str:
        """Return the last two arguments (planes, apart) of a function of an image's tiles."""
        return f"i64 {planes}, i64 {apart}"

    def row_of(self, blocks: Blocks, number: str) -> str:
        """Return the first row of tiles of a block."""
        if number == "0":
            return number
        row = Value(self.sum((number, blocks.rows)), "u64")
        return self.b.call("umin", row, Value(str(blocks.high - blocks.rows), "u64")).text

    def _over_images(
        self, blocks: Blocks, name: str, images: tuple[str, int], tiles: str, more: str, together: str | int
    ) -> None:
        """Call a function of an image and its tiles for each image of a block; `images` are an address and a distance.

        `together` is the number of images per call (the last call may overlap the one before), or a text with the
        number of images.
        """

        def one(number: str) -> None:
            image = self.at(images[0], self.sum((number, images[1])))
            place = self.at(tiles, self.sum((number, blocks.rows * blocks.wide)))
            self.b.raw(f"call void @{name}(ptr {image}, ptr {place}, {more})")

        step = together if isinstance(together, int) else 1
        if blocks.images <= step:
            one("0")
            return
        count = str(blocks.images) if isinstance(together, int) else together
        with self.code.loop("0", count, step) as loop:
            number = loop.counter
            if step > 1:
                last = Value(str(blocks.images - step), "u64")
                number = self.b.call("umin", Value(number.text, "u64"), last)
            one(number.text)

    def _once(self, write: Callable[..., str], *about: Hashable) -> str:
        """Return the text of a function that layers of any number of channels share.

        It is written for a neutral shape, so it is valid for all these layers.
        """
        shape = of_any_size(self.shape)
        return written(
            self.module,
            (write, shape, *about),
            lambda module: write(type(self)(module, shape, self.helper), "NAME", *about),
        )

    def _once_small(self, write: Callable[..., str], *about: Hashable) -> str:
        """Like `_once`, for functions of a `SmallWriter`."""
        shape = of_any_size(self.shape)
        return written(
            self.module, (write, shape, *about), lambda module: write(SmallWriter(module, shape), "NAME", *about)
        )

    # --- the transforms ------------------------------------------------------------------------------

    def _load(self, place: str, exists: Value | None = None) -> Value:
        return load_vector(self.b, self.shape.kind, place, (self.shape.lanes, 1, 0, exists), [], None, place)

    def _store(self, value: Value, place: str, exists: Value | None = None) -> None:
        store_vector(self.b, value, place, (self.shape.lanes, 1, 0, exists))

    def _over_kernels(self, one: Callable[[str, str | None], None]) -> None:
        """Call ``one(first kernel, count)`` for vectors of `%kernels`; the count None means a full vector."""
        lanes = self.shape.lanes
        rest = self.b.define(f"urem i64 %kernels, {lanes}", "i64").text
        stop = self.b.define(f"sub i64 %kernels, {rest}", "i64").text
        with (
            self.code.when(self.b.define(f"icmp ne i64 {stop}, 0", "b1").text),
            self.code.loop("0", stop, lanes) as loop,
        ):
            one(loop.counter.text, None)
        with self.code.when(self.b.define(f"icmp ne i64 {rest}, 0", "b1").text):
            one(stop, rest)

    def _exists(self, count: str | None, factor: int, start: int) -> Value | None:
        """Return the mask of lanes from `start` on that exist among `count` times `factor`; None for all."""
        if count is None:
            return None
        left = self.b.define(f"sub i64 {self.sum((count, factor))}, {start}", "i64")
        return self.b.compare("lt", self.b.lane_numbers(self.shape.lanes), left)

    def kernels_text(self, name: str, turned: bool) -> str:
        """Return the function (w, transformed, kernels, apart) that transforms kernels into entries of all matrices.

        Matrices hold `apart` kernels, reversed if `turned`.
        """
        lanes, taps = self.shape.lanes, math.prod(self.shape.kernel)

        def vector(first: str, count: str | None) -> None:
            source = self.at("%first", self.sum((first, taps)))
            starts = range(0, taps * lanes, lanes)
            loaded = [self._load(self.at(source, start), self._exists(count, taps, start)) for start in starts]
            found = [
                self._kernel(square[::-1] if turned else square) for square in self.by_parity(apart(self.b, loaded))
            ]
            if turned:
                for number, value in enumerate(value for square in found for value in square):
                    target = self.at("%second", self.sum((first, 1), ("%apart", number)))
                    self._store(value, target, self._exists(count, 1, 0))
                return
            # The parities of an output and channel are consecutive, like the planes of their data.
            for number, values in enumerate(zip(*found, strict=True)):
                target = self.at("%second", self.sum((first, len(found)), ("%apart", number * len(found))))
                self._store_kernels(list(values), target, count)

        self._over_kernels(vector)
        return self._inner(name, "ptr %first, ptr %second, i64 %kernels, i64 %apart")

    def _store_kernels(self, values: list[Value], place: str, count: str | None) -> None:
        """Store the values of `count` kernels from each of the vectors, kernel by kernel."""
        for start, value in enumerate(together(self.b, values)):
            at = start * self.shape.lanes
            self._store(value, self.at(place, at), self._exists(count, len(values), at))

    def _kernel(self, square: list[Value]) -> list[Value]:
        return on_both_axes(self.b, self.filtering.kernel, square)

    def by_parity(self, taps: list[Value]) -> list[list[Value]]:
        """Return the taps that apply to elements of each parity of rows and columns."""
        step, (high, wide) = self.shape.stride[0], self.shape.kernel
        return [
            [taps[i * wide + j] for i in range(a, high, step) for j in range(b, wide, step)]
            for a in range(step)
            for b in range(step)
        ]

    def store_together(self, values: list[Value], place: str, count: int) -> None:
        """Store `count` elements of interleaved vectors."""
        lanes = self.shape.lanes
        for number, value in enumerate(together(self.b, values)):
            if count > number * lanes:
                self._store(value, self.at(place, number * lanes), first_lanes(count - number * lanes, lanes))

    def data_text(self, name: str, data: Data, blocks: Blocks, pitch: int) -> str:
        """Return the function (image, tiles, planes, apart, plane, row, fresh) that transforms the data of tiles.

        Matrices of tiles are `apart` elements apart. The block's tiles begin in row `row`; rows of the bordered image
        before `fresh` count as zeros.
        """
        high, wide = data.plane(blocks)
        if blocks.count == 1:
            self.clear("%plane", data.elements(blocks))

        def plane(known: list[str]) -> None:
            if blocks.count > 1:
                self.clear("%plane", data.elements(blocks))
            image = self.at("%image", self.sum((known[0], math.prod(data.size))))
            for parity in range(data.split):
                self._bordered(data, blocks, image, parity)
            out = self.at("%tiles", self.sum((known[0], data.split**2 * pitch)))
            self.nest([data.split**2, blocks.rows], lambda inner: row(out, *inner))

        def row(out: str, part: str, number: str) -> None:
            above = self.at("%plane", self.sum((part, high * wide), (number, OUTPUTS * wide)))
            place = self.at(out, self.sum((part, pitch), (number, blocks.wide)))
            self._along(blocks.wide, lambda first: vector(first, above, place))

        def vector(first: str, above: str, place: str) -> None:
            lines = [self.at(above, self.sum((first, OUTPUTS), ("1", i * wide))) for i in range(data.seen)]
            square = [value for line in lines for value in self._row_of_tiles(line, data.seen)]
            for number, value in enumerate(on_both_axes(self.b, data.matrix, square)):
                self._store(value, self.at(place, self.sum((first, 1), ("%apart", number))))

        with self.code.loop("0", "%planes", 1) as loop:
            plane([loop.counter.text])
        return self._inner(name, f"{_OF_AN_IMAGE}, ptr %plane, i64 %row, i64 %fresh")

    def _bordered(self, data: Data, blocks: Blocks, image: str, parity: int) -> None:
        """Copy the rows of one parity that a block reads from an image, with columns separated by parity."""
        (high, wide), (tall, long), (top, left), step = data.plane(blocks), data.size, data.border, data.split
        # Number k of these rows is row step * k + parity - top of the image.
        first, stop = max(0, -(-(top - parity) // step)), (tall - 1 + top - parity) // step + 1
        if blocks.count == 1:
            bounds = str(first), str(min(stop, high))
        else:
            start = Value(self.sum(("%row", OUTPUTS)), "i64")
            low = self.b.call("smax", self.b.call("smax", start, Value("%fresh", "i64")), Value(str(first), "i64"))
            end = self.b.define(f"add i64 {start.text}, {high}", "i64")
            bounds = low.text, self.b.call("smin", end, Value(str(stop), "i64")).text
        some = self.b.define(f"icmp slt i64 {bounds[0]}, {bounds[1]}", "b1").text
        with self.code.when(some), self.code.loop(*bounds, 1) as rows:
            number = rows.counter.text
            line = self.at(image, self.sum((number, step * long), ("1", (parity - top) * long)))
            if blocks.count > 1:
                number = self.b.define(f"sub i64 {number}, {self.sum(('%row', OUTPUTS))}", "i64").text
            target = self.at(self.at("%plane", parity * step * high * wide), self.sum((number, wide)))
            for other in range(step):
                column = (other - left) % step
                place = (column + left) // step
                count = min(-(-(long - column) // step), wide - place)
                if count > 0:
                    there = self.at(target, other * high * wide + place)
                    self.move(self.at(line, column), there, count, (step, 1), adds=False, exact=True)

    def _row_of_tiles(self, place: str, seen: int) -> list[Value]:
        """Load the elements of one row for neighbouring tiles: the first of each tile, the second, and so on."""
        lanes, found = self.shape.lanes, []
        for start in range(0, seen, OUTPUTS):
            halves = [self._load(self.at(place, start + further)) for further in (0, lanes)]
            found += apart(self.b, halves)
        return found[:seen]

    def _along(self, tiles: int, vector: Callable[[str], None]) -> None:
        """Call ``vector(first tile)`` along a row of tiles."""
        lanes = self.shape.lanes
        if tiles <= lanes:
            vector("0")
            return
        with self.code.loop("0", str(tiles), lanes) as loop:
            vector(loop.counter.text)

    def sums_of_tiles_text(self, name: str, plan: Plan) -> str:
        """Return the function (image, tiles, planes, apart, row) that computes an image's results from products.

        Results of several variants alternate along rows and columns.
        """
        blocks, (height, width), pitch = plan.blocks, plan.out, plan.pitch
        variants = [plan.first(axis) for axis in (0, 1)]
        step = len(variants[0])
        each = OUTPUTS * step * self.shape.lanes
        full, rest = divmod(width, each)

        def row(known: list[str]) -> None:
            result, number = known
            source = self.at("%tiles", self.sum((result, pitch), (number, blocks.wide)))
            image = self.at("%image", self.sum((result, height * width)))
            line = self.sum((number, OUTPUTS)) if blocks.count == 1 else self.sum((number, OUTPUTS), ("%row", OUTPUTS))
            for which in range(step):
                if full:
                    lanes = self.shape.lanes
                    with self.code.loop("0", str(full * lanes), lanes) as loop:
                        vector(loop.counter.text, source, (image, line, which), each)
                if rest:
                    vector(str(full * self.shape.lanes), source, (image, line, which), rest)

        def vector(first: str, source: str, where: tuple[str, str, int], count: int) -> None:
            image, line, which = where
            lines = self._lines(plan, self.at(source, first), which)
            before = variants[0][which]
            have = -(-(height - before) // step)  # rows of this variant
            for number, values in enumerate(lines):
                below = self.sum((line, step), ("1", step * number + before))
                place = self.at(self.at(image, self.sum((below, width))), self.sum((first, OUTPUTS * step)))
                if OUTPUTS * (blocks.high - 1) + number < have:
                    self.store_together(values, place, count)
                    continue
                with self.code.when(self.b.define(f"icmp ult i64 {below}, {height}", "b1").text):
                    self.store_together(values, place, count)

        with self.code.loop("0", "%planes", 1) as results:
            self.nest([blocks.rows], lambda known: row([results.counter.text, *known]))
        return self._inner(name, f"{_OF_AN_IMAGE}, i64 %row")

    def _lines(self, plan: Plan, source: str, which: int) -> list[list[Value]]:
        """Return the results of neighbouring tiles in two rows: vectors whose elements alternate along a row."""
        along, every = plan.first(1), self.filtering.points**2
        found = {}
        for number, first in enumerate(along):
            start = (which * len(along) + number) * every
            places = [self.at(source, self.sum(("%apart", start + point))) for point in range(every)]
            found[first] = on_both_axes(self.b, self.filtering.outputs, [self._load(place) for place in places])
        starts = range(0, OUTPUTS**2, OUTPUTS)
        return [[found[first][at + j] for j in range(OUTPUTS) for first in sorted(found)] for at in starts]

    def _inner(self, name: str, params: str) -> str:
        self.b.raw("ret void")
        # Attributes prevent LLVM from specialising copies for each call's numbers, because layers share the function.
        return (
            f"define internal void @{name}({params}) noinline noduplicate #0 {{\nentry:\n"
            + "\n".join(self.b.lines)
            + "\n}\n"
        )
