"""Convolutions of 3x3 and stride 1 by minimal filtering: 16 products for four outputs where a direct sum takes 36.

A block of tiles, each the 4x4 elements that 2x2 outputs see, is transformed into 16 matrices (channels, tiles); the
weights were, once a call, into 16 matrices (outputs, channels). Their 16 products are those of the compiler's own tiles
and become outputs by the inverse transform; `filtering.py` has the transforms. A block is some rows of tiles of an
image, or a few small images, so that its matrices stay in or near the second-level cache.

The transpose with respect to the input is the same sum over the gradient, with the kernel turned round. The transforms
are linear, so the one with respect to the weight is theirs transposed: 16 products of transformed gradients and data,
summed over blocks, and one transform at the end.

Along a row, a vector holds neighbouring tiles; what its lanes beyond the last tile hold is written, too, and then
overwritten by the next row's, or never read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from glassgrad.compile.llvm.conv_windows import Shape, ShareWriter
from glassgrad.compile.llvm.direct import Side, side_of
from glassgrad.compile.llvm.filtering import OUTPUTS, THREE, Filtering, Matrix, apart, on_both_axes, together
from glassgrad.compile.llvm.gemm import Branch, Gemm, GemmWriter, product_call, tile_shape
from glassgrad.compile.llvm.ir import BITS, Module, Value
from glassgrad.compile.llvm.memory_ops import first_lanes, load_vector, store_vector

# Tiles of a block: enough for a product to be worth reading the weights, few enough for the second-level cache.
_TILES = 128

Helper = Callable[[str], str]


@dataclass(frozen=True)
class Blocks:
    """How the tiles of images are cut: `rows` of an image's (`high`, `wide`) go together, or all of several images.

    The last block of an image begins where it ends with the image, and does some rows of the one before it once more.
    """

    high: int
    wide: int
    images: int

    @property
    def count(self) -> int:
        """Blocks of an image."""
        most = max(1, _TILES // self.wide)
        return 1 if self.high <= most or self.high * self.wide <= _TILES + _TILES // 2 else -(-self.high // most)

    @property
    def rows(self) -> int:
        return -(-self.high // self.count)

    @property
    def tiles(self) -> int:
        """Tiles of a block."""
        return self.images * self.rows * self.wide

    def pitch(self, lanes: int) -> int:
        """Elements from row to row of a matrix of tiles: room for a last vector, and no multiple of a page."""
        least = -(-(self.tiles + lanes) // 16) * 16
        return least if least % 256 else least + 16


def tiles_of(out: tuple[int, int]) -> tuple[int, int]:
    """Return the rows of tiles and tiles in a row that cover the outputs."""
    return -(-out[0] // OUTPUTS), -(-out[1] // OUTPUTS)


def images_together(shape: Shape, tiles: int, most: int) -> int:
    """Return how many images fill a block, at most so many; divides their number."""
    wanted = min(most, max(1, _TILES // tiles))
    return max(d for d in range(1, wanted + 1) if shape.images % d == 0)


@dataclass(frozen=True)
class Data:
    """What is transformed of an image: so many planes of a size, with a border in front.

    A tile sees as many elements along an axis as the matrix has columns.
    """

    planes: int
    size: tuple[int, int]
    border: tuple[int, int]
    matrix: Matrix

    @property
    def seen(self) -> int:
        return len(self.matrix[0])

    def plane(self, blocks: Blocks) -> tuple[int, int]:
        """The size of what a block sees of an image."""
        more = self.seen - OUTPUTS
        return OUTPUTS * blocks.rows + more, OUTPUTS * blocks.wide + more


@dataclass(frozen=True)
class Plan:
    """A convolution, or its transpose with respect to the input, in blocks of tiles.

    `starts` are the elements of scratch memory at which weights, data, sums, a plane and packed panels begin, and the
    end of the plane; panels take what the product says.
    """

    side: Side
    blocks: Blocks
    gemm: Gemm
    pitch: int
    starts: tuple[int, ...]

    @property
    def data(self) -> Data:
        return Data(self.side.planes, self.side.size, self.side.border, THREE.data)

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory of a share."""
        return (self.starts[-1] + 64) * BITS[self.gemm.kind] // 8 + self.gemm.scratch


def plan_of(shape: Shape, *, turned: bool) -> Plan:
    """Return how a convolution is done, or with `turned` its transpose with respect to the input."""
    side, lanes = side_of(shape, turned=turned), shape.lanes
    high, wide = tiles_of(side.out)
    blocks = Blocks(high, wide, images_together(shape, high * wide, max(1, shape.images // 2)))
    pitch, points = blocks.pitch(lanes), THREE.points**2
    m, n, k = side.results, blocks.tiles, side.planes
    tile = tile_shape(n, lanes)
    far = turned and m * BITS[shape.kind] // 8 >= 1024 and n > tile.vectors * lanes
    strides = (1, m) if turned else (k, 1)
    gemm = Gemm(shape.kind, k, strides, (pitch, 1), pitch, (m,), (n,), lanes, tile, m > 64, far)
    sizes = points * m * k, points * k * pitch + lanes, points * m * pitch + lanes, plane_elements(blocks, lanes)
    return Plan(side, blocks, gemm, pitch, starts_of(sizes))


def plane_elements(blocks: Blocks, lanes: int) -> int:
    """Return the elements that a block's part of an image takes, with room for last vectors."""
    return (OUTPUTS * blocks.rows + THREE.taps - 1) * (OUTPUTS * blocks.wide + THREE.taps - 1) + 4 * lanes


def starts_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return where arrays of such sizes begin one behind the other, each at a vector's alignment, and their end."""
    rounded = [-(-size // 16) * 16 for size in sizes]
    return tuple(itertools.accumulate(rounded, initial=0))


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
        self.filtering: Filtering = THREE

    # --- forward, and with respect to the input ------------------------------------------------------

    def sums_text(self, name: str, plan: Plan) -> str:
        """Return the function for units [lo, hi): first = image or gradient, second = w."""
        side, blocks = plan.side, plan.blocks
        kernels, data, sums, plane, panel = (self.at("%scratch", start) for start in plan.starts)
        text = self._other().kernels_text("NAME", side)
        self.b.raw(f"call void @{self.helper(text)}(ptr %second, ptr {kernels})")
        of_source, of_result = side.planes * math.prod(side.size), side.results * math.prod(side.out)
        data_name = self.helper(self._other().data_text("NAME", plan.data, blocks, plan.pitch))
        sums_name = self.helper(self._other().sums_of_tiles_text("NAME", side, blocks, plan.pitch))
        product = self.helper(GemmWriter(self.module, plan.gemm).definition("NAME"))

        def block(known: list[str]) -> None:
            unit, number = known
            row = self.row_of(blocks, number)
            source = self.at("%first", self.sum((unit, blocks.images * of_source)))
            self._over_images(blocks, data_name, (source, of_source), data, f"ptr {plane}, i64 {row}, i64 0")
            with self.code.loop("0", str(self.filtering.points**2), 1) as points:
                point = points.counter.text
                places = (
                    self.at(kernels, self.sum((point, side.results * side.planes))),
                    self.at(data, self.sum((point, side.planes * plan.pitch))),
                    self.at(sums, self.sum((point, side.results * plan.pitch))),
                    panel,
                )
                product_call(self.b, plan.gemm, product, places, (str(side.results), str(blocks.tiles)))
            result = self.at("%result", self.sum((unit, blocks.images * of_result)))
            self._over_images(blocks, sums_name, (result, of_result), sums, f"i64 {row}")

        with self.code.loop("%lo", "%hi", 1) as units:
            if blocks.count == 1:
                block([units.counter.text, "0"])
            else:
                self.nest([blocks.count], lambda known: block([units.counter.text, *known]))
        return self.finished(name)

    def row_of(self, blocks: Blocks, number: str) -> str:
        """Return the first row of tiles of a block."""
        if number == "0":
            return number
        row = Value(self.sum((number, blocks.rows)), "u64")
        return self.b.call("umin", row, Value(str(blocks.high - blocks.rows), "u64")).text

    def _over_images(
        self, blocks: Blocks, name: str, images: tuple[str, int], tiles: str, more: str, count: str | None = None
    ) -> None:
        """Call a function of an image and its tiles for each image of a block; images lie so many elements apart."""

        def one(known: list[str]) -> None:
            image = self.at(images[0], self.sum((known[0], images[1])))
            place = self.at(tiles, self.sum((known[0], blocks.rows * blocks.wide)))
            self.b.raw(f"call void @{name}(ptr {image}, ptr {place}, {more})")

        if blocks.images == 1:
            one(["0"])
            return
        with self.code.loop("0", count or str(blocks.images), 1) as loop:
            one([loop.counter.text])

    def _other(self) -> Self:
        return type(self)(self.module, self.shape, self.helper)

    # --- the transforms ------------------------------------------------------------------------------

    def _load(self, place: str, exists: Value | None = None) -> Value:
        return load_vector(self.b, self.shape.kind, place, (self.shape.lanes, 1, 0, exists), [], None, place)

    def _store(self, value: Value, place: str, count: int | None = None) -> None:
        lanes = self.shape.lanes
        store_vector(self.b, value, place, (lanes, 1, 0, None if count is None else first_lanes(count, lanes)))

    def _over_kernels(self, one: Callable[[str, int], None]) -> None:
        """Call ``one(first kernel, how many)`` for vectors of all kernels."""
        lanes, kernels = self.shape.lanes, self.shape.outputs * self.shape.channels
        full, rest = divmod(kernels, lanes)
        if full:
            with self.code.loop("0", str(full * lanes), lanes) as loop:
                one(loop.counter.text, lanes)
        if rest:
            one(str(full * lanes), rest)

    def kernels_text(self, name: str, side: Side) -> str:
        """Return the function (w, kernels) that transforms the weights, each to a place in every one of 16 matrices."""
        shape, lanes, taps = self.shape, self.shape.lanes, math.prod(self.shape.kernel)
        kernels = shape.outputs * shape.channels

        def vector(first: str, count: int) -> None:
            source = self.at("%first", self.sum((first, taps)))
            loaded = []
            for start in range(0, taps * lanes, lanes):
                left = taps * count - start
                there = self._load(self.at(source, start), first_lanes(left, lanes)) if left > 0 else None
                loaded.append(there or self.b.const(0, shape.kind, lanes))
            found = apart(self.b, loaded)
            if side.turned:
                found = found[::-1]
            for number, value in enumerate(on_both_axes(self.b, self.filtering.kernel, found)):
                self._store(value, self.at("%second", self.sum((first, 1), ("1", number * kernels))), count)

        self._over_kernels(vector)
        return self._inner(name, "ptr %first, ptr %second")

    def data_text(self, name: str, data: Data, blocks: Blocks, pitch: int) -> str:
        """Return the function (image, tiles, plane, row, fresh) that transforms what a block's tiles see of an image.

        Its tiles begin in row `row`; rows of the image before `fresh` count as zeros.
        """
        (high, wide), (tall, long), (top, left) = data.plane(blocks), data.size, data.border
        low, stop = self._rows_seen(data, blocks)
        if blocks.count == 1:
            self.clear("%plane", high * wide)

        def plane(known: list[str]) -> None:
            if blocks.count > 1:
                self.clear("%plane", high * wide)
            image = self.at("%image", self.sum((known[0], tall * long)))
            with self.code.loop(low, stop, 1) as rows:
                source = self.at(image, self.sum((rows.counter.text, long)))
                number = self._less(self.sum((rows.counter.text, 1), ("1", top)), "%row" if blocks.count > 1 else "0")
                target = self.at(self.at("%plane", self.sum((number, wide))), left)
                self.move(source, target, min(long, wide - left), (1, 1), adds=False, exact=True)
            out = self.at("%tiles", self.sum((known[0], pitch)))
            with self.code.loop("0", str(blocks.rows), 1) as rows:
                above = self.at("%plane", self.sum((rows.counter.text, OUTPUTS * wide)))
                place = self.at(out, self.sum((rows.counter.text, blocks.wide)))
                self._along(blocks.wide, lambda first: vector(first, above, place))

        def vector(first: str, above: str, place: str) -> None:
            lines = [self.at(above, self.sum((first, OUTPUTS), ("1", i * wide))) for i in range(data.seen)]
            square = [value for line in lines for value in self._row_of_tiles(line, data.seen)]
            for number, value in enumerate(on_both_axes(self.b, data.matrix, square)):
                self._store(value, self.at(place, self.sum((first, 1), ("1", number * data.planes * pitch))))

        self.nest([data.planes], plane)
        return self._inner(name, "ptr %image, ptr %tiles, ptr %plane, i64 %row, i64 %fresh")

    def _rows_seen(self, data: Data, blocks: Blocks) -> tuple[str, str]:
        """Return the image's first row that a block sees, and the row behind its last."""
        high, top, tall = data.plane(blocks)[0], data.border[0], data.size[0]
        if blocks.count == 1:
            return "0", str(min(tall, high - top))
        first = self.b.define(f"sub i64 {self.sum(('%row', OUTPUTS))}, {top}", "i64")
        low = self.b.call("smax", first, Value("%fresh", "i64"))
        stop = self.b.call("smin", self.b.define(f"add i64 {first.text}, {high}", "i64"), Value(str(tall), "i64"))
        return low.text, stop.text

    def _less(self, value: str, row: str) -> str:
        if row == "0":
            return value
        return self.b.define(f"sub i64 {value}, {self.sum((row, OUTPUTS))}", "i64").text

    def _row_of_tiles(self, place: str, seen: int) -> list[Value]:
        """Load the elements of one row that neighbouring tiles see: the first of each tile, the second, and so on."""
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

    def sums_of_tiles_text(self, name: str, side: Side, blocks: Blocks, pitch: int) -> str:
        """Return the function (image, tiles, row) that makes an image's results of the products of a block's tiles."""
        height, width = side.out
        full, rest = divmod(width, OUTPUTS * self.shape.lanes)

        def plane(known: list[str]) -> None:
            source = self.at("%tiles", self.sum((known[0], pitch)))
            result = self.at("%image", self.sum((known[0], height * width)))
            with self.code.loop("0", str(blocks.rows), 1) as rows:
                row = rows.counter.text
                place = self.at(source, self.sum((row, blocks.wide)))
                line = self.sum((row, OUTPUTS)) if blocks.count == 1 else self.sum((row, OUTPUTS), ("%row", OUTPUTS))
                target = self.at(result, self.sum((line, width)))
                if full:
                    lanes = self.shape.lanes
                    with self.code.loop("0", str(full * lanes), lanes) as loop:
                        vector(loop.counter.text, place, (target, line), OUTPUTS * lanes)
                if rest:
                    vector(str(full * self.shape.lanes), place, (target, line), rest)

        def vector(first: str, place: str, where: tuple[str, str], count: int) -> None:
            starts = range(0, self.filtering.points**2 * side.results * pitch, side.results * pitch)
            read = [self._load(self.at(place, self.sum((first, 1), ("1", start)))) for start in starts]
            found = on_both_axes(self.b, self.filtering.outputs, read)
            target, line = where
            for number in range(OUTPUTS):
                values = found[number * OUTPUTS : (number + 1) * OUTPUTS]
                begin = self.at(target, self.sum((first, OUTPUTS), ("1", number * width)))
                if number and height % OUTPUTS:
                    below = self.b.define(f"add i64 {line}, {number}", "i64").text
                    with Branch(self.code, self.b.define(f"icmp ult i64 {below}, {height}", "b1").text):
                        self._store_line(values, begin, count)
                else:
                    self._store_line(values, begin, count)

        self.nest([side.results], plane)
        return self._inner(name, "ptr %image, ptr %tiles, i64 %row")

    def _store_line(self, values: list[Value], place: str, count: int) -> None:
        """Store the results of neighbouring tiles in one row, `count` of them."""
        lanes = self.shape.lanes
        for number, value in enumerate(together(self.b, values)):
            if count > number * lanes:
                self._store(value, self.at(place, number * lanes), count - number * lanes)

    def _inner(self, name: str, params: str) -> str:
        self.b.raw("ret void")
        return f"define internal void @{name}({params}) noinline #0 {{\nentry:\n" + "\n".join(self.b.lines) + "\n}\n"
