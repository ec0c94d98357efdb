"""Convolutions of stride 1 by small kernels without columns: the product's tiles read the bordered image itself.

Under a tap, neighbouring outputs read neighbouring elements of the image. So a vector of B is a load from the bordered
image at the offset of the tap, and no windows are copied; with few outputs the copies would take longer than the sums.
The weights are packed once per call, in the order in which tiles read them. Sizes and distances are arguments of the
tile's function, so all layers share a few functions.

The transpose with respect to the input is the same sum over the gradient, with the kernel reversed. The one with
respect to the weight keeps a vector of sums for each tap and some outputs, and sums its lanes at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from glassgrad.compile.llvm.convolutions.plan import ConvPlan
from glassgrad.compile.llvm.convolutions.windows import MOST_COLUMNS, WIDEST, Helper, Shape, ShareWriter
from glassgrad.compile.llvm.loops.memory_ops import first_lanes, load_vector, store_vector
from glassgrad.compile.llvm.loops.scalar import across_lanes
from glassgrad.compile.llvm.module.ir import BITS, LLVM_TYPE, Builder, Function, LoopNest, Module, Value
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.products.gemm import best_rows
from glassgrad.compile.llvm.products.tiles import named, place

_ROWS = 14  # outputs whose sums, two vectors each, are held in registers
_SUMS = 27  # vectors of sums of the weight's gradient
# The most taps whose sums fit in registers, and the most weights that are packed.
_DIRECT_TAPS, _MOST_WEIGHTS = 9, 1 << 20
# With more outputs a product computes the gradient of the weight faster, because it reads each element less often.
_FEW_OUTPUTS = 32


@dataclass(frozen=True)
class Side:
    """The sizes of a sum: `planes` of `size`, with a `border` in front, for `results` of size `out`.

    The weight for result, plane and tap is at ``result * apart[0] + plane * apart[1] + tap``; with `turned`, taps are
    in reverse order.
    """

    planes: int
    size: tuple[int, int]
    border: tuple[int, int]
    full: tuple[int, int]
    results: int
    out: tuple[int, int]
    apart: tuple[int, int]
    turned: bool

    @property
    def rows(self) -> int:
        """Results of a tile."""
        return best_rows((self.results,), _ROWS)


def side_of(shape: Shape, *, turned: bool) -> Side:
    """Return the side of a convolution, or with `turned` of its transpose with respect to the input."""
    taps = math.prod(shape.kernel)
    (top, _), (left, _) = shape.padding
    if not turned:
        apart = shape.channels * taps, taps
        return Side(shape.channels, shape.size, (top, left), shape.full, shape.outputs, shape.out, apart, turned)
    reach = [shape.dilation[a] * (shape.kernel[a] - 1) for a in (0, 1)]
    border, apart = (reach[0] - top, reach[1] - left), (taps, shape.channels * taps)
    return Side(shape.outputs, shape.out, border, shape.spread, shape.channels, shape.size, apart, turned)


class Direct(ConvPlan):
    """Tiles that read the bordered image: stride 1, a small kernel, rows that fill vectors of 64 bytes."""

    name = "direct"

    @staticmethod
    def applies(shape: Shape) -> bool:
        taps = math.prod(shape.kernel)
        if shape.groups > 1 or shape.stride != (1, 1) or not 1 < taps <= _DIRECT_TAPS or host().vector_bytes < 64:
            return False
        if shape.role == "weight" and shape.outputs > _FEW_OUTPUTS:
            return False
        widths, lanes = (shape.size[1], shape.out[1]), shape.lanes
        filled = all(4 * -(-extent // lanes) * lanes <= 5 * extent for extent in widths)
        few = max(widths) <= WIDEST * lanes and shape.outputs * shape.rows <= _MOST_WEIGHTS
        planes = max(shape.channels * math.prod(shape.full), shape.outputs * math.prod(shape.spread))
        return filled and few and planes <= MOST_COLUMNS and shape.borders_fit

    @property
    def side(self) -> Side:
        return side_of(self.shape, turned=self.shape.role == "input")

    @property
    def scratch(self) -> int:
        shape, room = self.shape, 4 * self.shape.lanes
        if shape.role == "weight":
            elements = -(-shape.images // shape.parts) * math.prod(shape.full) + room
        else:
            planes, weights = self.side.planes, self.side.results * math.prod(shape.kernel)
            elements = planes * math.prod(self.side.full) + 2 * room + planes * weights
        return elements * BITS[shape.kind] // 8

    def text(self, module: Module, helper: Helper) -> str:
        writer = DirectWriter(module, self.shape)
        if self.shape.role == "weight":
            return writer.weight_text("NAME", self.shape.parts)
        return writer.sums_text("NAME", self.side)


class DirectWriter(ShareWriter):
    """Writes the function (first, second, result, scratch, lo, hi) of a convolution or of a transpose."""

    # --- forward, and with respect to the input ------------------------------------------------------

    def sums_text(self, name: str, side: Side) -> str:
        """Return the function for images [lo, hi): first = image or gradient, second = w."""
        each = math.prod(side.full)
        room = 4 * self.shape.lanes
        packed = self.at("%scratch", -(-(side.planes * each + room) // 16) * 16)
        self.clear("%scratch", side.planes * each)
        self._pack(side, packed)
        with self.code.loop("%lo", "%hi", 1) as images:
            image = images.counter.text
            source = self.at("%first", self.sum((image, side.planes * math.prod(side.size))))

            def border(known: list[str]) -> None:
                plane, row = known
                line = self.at(source, self.sum((plane, math.prod(side.size)), (row, side.size[1])))
                target = self.at("%scratch", self.sum((plane, each), (row, side.full[1])))
                target = self.at(target, side.border[0] * side.full[1] + side.border[1])
                self.move(line, target, side.size[1], (1, 1), adds=False, exact=True)

            self.nest([side.planes, side.size[0]], border)
            result = self.at("%result", self.sum((image, side.results * math.prod(side.out))))
            self._blocks(side, packed, result)
        return self.finished(name)

    def _of_rows(self, side: Side) -> list[tuple[int, int, int]]:
        """Return (first result, number of tiles, results of each)."""
        full, rest = divmod(side.results, side.rows)
        found = [(0, full, side.rows)] if full else []
        return [*found, (full * side.rows, 1, rest)] if rest else found

    def _pack(self, side: Side, packed: str) -> None:
        """Copy the weights into the order in which tiles read them: planes, taps, the results of a tile."""
        taps, kind = math.prod(self.shape.kernel), LLVM_TYPE[self.shape.kind]
        for first, count, rows in self._of_rows(side):
            start = self.at(packed, first * side.planes * taps)

            def one(known: list[str], first: int = first, rows: int = rows, start: str = start) -> None:
                tile, plane, tap, row = known
                number = tap
                if side.turned:
                    number = self.b.define(f"sub i64 {taps - 1}, {tap}", "i64").text
                terms = (tile, rows * side.apart[0]), (row, side.apart[0]), (plane, side.apart[1]), (number, 1)
                source = self.at(self.at("%second", first * side.apart[0]), self.sum(*terms))
                whole = (tile, rows * side.planes * taps), (plane, taps * rows), (tap, rows), (row, 1)
                value = self.b.define(f"load {kind}, ptr {source}", self.shape.kind)
                self.b.raw(f"store {value.typed}, ptr {self.at(start, self.sum(*whole))}")

            self.nest([count, side.planes, taps, rows], one)

    def _blocks(self, side: Side, packed: str, result: str) -> None:
        """Call the tiles of an image, one or two rows of results at a time."""
        taps, positions = math.prod(self.shape.kernel), math.prod(side.out)
        for first, count, rows in self._of_rows(side):
            with self.code.loop("0", str(count), 1) as tiles:
                left = self.at(packed, first * side.planes * taps)
                left = self.at(left, self.sum((tiles.counter.text, rows * side.planes * taps)))
                target = self.at(self.at(result, first * positions), self.sum((tiles.counter.text, rows * positions)))
                self._lines(side, rows, left, target)

    def _lines(self, side: Side, rows: int, left: str, target: str) -> None:
        height, width = side.out
        if width <= self.shape.lanes:
            # Two lines of results fill the two vectors of a tile.
            pairs = height // 2
            if pairs:
                with self.code.loop("0", str(pairs), 1) as lines:
                    line = self.b.define(f"mul i64 {lines.counter.text}, 2", "i64").text
                    further = side.full[1], width
                    self._tile(side, (rows, (width, width), further), left, target, (line, 0))
            if height % 2:
                self._tile(side, (rows, (width,), (0, 0)), left, target, (str(height - 1), 0))
            return
        lanes = self.shape.lanes
        with self.code.loop("0", str(height), 1) as lines:
            for start in range(0, width, 2 * lanes):
                left_over = width - start
                widths = tuple(min(lanes, left_over - at) for at in (0, lanes) if left_over > at)
                self._tile(side, (rows, widths, (lanes, lanes)), left, target, (lines.counter.text, start))

    def _tile(
        self,
        side: Side,
        what: tuple[int, tuple[int, ...], tuple[int, int]],
        left: str,
        target: str,
        where: tuple[str, int],
    ) -> None:
        """Call one tile: (results, columns of its vectors, offsets of its second vector) at (line, column)."""
        rows, widths, further = what
        line, column = where
        shape = self.shape
        right = self.at(self.at("%scratch", self.sum((line, side.full[1]))), column)
        out = self.at(self.at(target, self.sum((line, side.out[1]))), column)
        name = tile_function(self.module, shape, rows, widths)
        of_right = side.planes, math.prod(side.full), shape.dilation[0] * side.full[1], further[0]
        numbers = *of_right, math.prod(side.out), further[1]
        arguments = [f"ptr {left}", f"ptr {right}", f"ptr {out}", *(f"i64 {number}" for number in numbers)]
        self.b.raw(f"call void @{name}({', '.join(arguments)})")

    # --- with respect to the weight ------------------------------------------------------------------

    def weight_text(self, name: str, parts: int) -> str:
        """Return the function for parts [lo, hi) of the images: first = x, second = gradient."""
        shape, taps = self.shape, math.prod(self.shape.kernel)
        each, most = math.prod(shape.full), -(-shape.images // parts)
        self.clear("%scratch", most * each)
        with self.code.loop("%lo", "%hi", 1) as part:
            first, last = self.images_of(part.counter.text, parts)
            with self.code.loop("0", str(shape.channels), 1) as channels:
                channel = channels.counter.text
                with self.code.loop(first, last, 1) as images:
                    self._plane(images.counter.text, first, channel)
                beyond = self.sum((part.counter.text, shape.outputs * shape.channels * taps), (channel, taps))
                target = self.at("%result", beyond)
                height = max(1, _SUMS // taps)
                full, rest = divmod(shape.outputs, height)
                if full:
                    with self.code.loop("0", str(full), 1) as blocks:
                        output = self.b.define(f"mul i64 {blocks.counter.text}, {height}", "i64").text
                        self._weights((first, last), output, height, target)
                if rest:
                    self._weights((first, last), str(full * height), rest, target)
        return self.finished(name)

    def _plane(self, image: str, first: str, channel: str) -> None:
        """Copy a channel of an image into scratch memory, inside its border."""
        shape, each = self.shape, math.prod(self.shape.full)
        (top, _), (left, _) = shape.padding
        area = math.prod(shape.size)
        source = self.at("%first", self.sum((image, shape.channels * area), (channel, area)))
        number = self.b.define(f"sub i64 {image}, {first}", "i64").text
        target = self.at(self.at("%scratch", self.sum((number, each))), top * shape.full[1] + left)
        with self.code.loop("0", str(shape.size[0]), 1) as rows:
            line = self.at(source, self.sum((rows.counter.text, shape.size[1])))
            below = self.at(target, self.sum((rows.counter.text, shape.full[1])))
            self.move(line, below, shape.size[1], (1, 1), adds=False, exact=True)

    def _weights(self, images: tuple[str, str], output: str, count: int, target: str) -> None:
        """Sum over images and positions for `count` outputs and all taps of one channel."""
        shape, taps = self.shape, math.prod(self.shape.kernel)
        zero = self.b.const(0, shape.kind, shape.lanes)
        with self.code.loop(*images, 1) as loop:
            sums = [loop.carry(self.b, zero) for _ in range(count * taps)]
            image = loop.counter.text
            number = self.b.define(f"sub i64 {image}, {images[0]}", "i64").text
            x = self.at("%scratch", self.sum((number, math.prod(shape.full))))
            terms = (image, shape.outputs * shape.positions), (output, shape.positions)
            loop.next = self._places(x, self.at("%second", self.sum(*terms)), count, sums)
        below = self.at(target, self.sum((output, shape.channels * taps)))
        for at, total in enumerate(loop.next):
            if at and at % taps == 0:
                below = self.at(below, shape.channels * taps)
            value = across_lanes(self.b, "add", total)
            self.b.raw(f"store {value.typed}, ptr {self.at(below, at % taps)}")

    def _places(self, x: str, gradient: str, count: int, sums: list[Value]) -> list[Value]:
        shape, lanes = self.shape, self.shape.lanes
        with self.code.loop("0", str(shape.out[0]), 1) as lines:
            totals = [lines.carry(self.b, one) for one in sums]
            above = self.at(x, self.sum((lines.counter.text, shape.full[1])))
            line = self.at(gradient, self.sum((lines.counter.text, shape.out[1])))
            for start in range(0, shape.out[1], lanes):
                exists = first_lanes(shape.out[1] - start, lanes)
                read = [self.at(line, row * shape.positions + start) for row in range(count)]
                outputs = [self._vector(one, exists) for one in read]
                offsets = tap_offsets(shape, shape.full[1])
                under = [self._vector(self.at(above, offset + start), exists) for offset in offsets]
                pairs = [(g, value) for g in outputs for value in under]
                totals = [self.b.fma(g, value, total) for (g, value), total in zip(pairs, totals, strict=True)]
            lines.next = totals
        return totals

    def _vector(self, place: str, exists: Value | None) -> Value:
        return load_vector(self.b, self.shape.kind, place, (self.shape.lanes, 1, 0, exists), [], None, place)


def tap_offsets(shape: Shape, wide: int) -> list[int]:
    """Return the offsets of the taps in a bordered plane."""
    rows, columns = (range(extent) for extent in shape.kernel)
    return [i * shape.dilation[0] * wide + j * shape.dilation[1] for i in rows for j in columns]


_NUMBERS = ("planes", "plane", "b_row", "b_next", "c_row", "c_next")


def tile_function(module: Module, shape: Shape, rows: int, widths: tuple[int, ...]) -> str:
    """Return the function (a, b, c, numbers) that sums a tile over planes and taps.

    Planes of B are `plane` apart, the rows under a kernel `b_row`, and the data of the second vector `b_next`; `c_row`
    and `c_next` are the distances of results and of their vectors.
    """
    kind, lanes = shape.kind, shape.lanes

    def write(name: str) -> str:
        code = LoopNest(Function(module))
        starts = _starts(code.current, kind, shape.kernel[0], len(widths))
        zero = code.current.const(0, kind, lanes)
        with code.loop("0", "%planes", 1) as loop:
            b = code.current
            sums = [[loop.carry(b, zero) for _ in widths] for _ in range(rows)]
            further, term = (loop.carry(b, Value("0", "i64")) for _ in range(2))
            left = place(b, kind, "%a", term.text)
            for i in range(shape.kernel[0]):
                lines = [place(b, kind, start, further.text) for start in starts[i]]
                for j in range(shape.kernel[1]):
                    at = [place(b, kind, line, j * shape.dilation[1]) for line in lines]
                    side = [load_vector(b, kind, one, (lanes, 1, 0, None), [], None, one) for one in at]
                    tap = i * shape.kernel[1] + j
                    for row in range(rows):
                        address = place(b, kind, left, tap * rows + row)
                        spread = b.splat(b.define(f"load {LLVM_TYPE[kind]}, ptr {address}", kind), lanes)
                        sums[row] = [b.fma(spread, one, total) for one, total in zip(side, sums[row], strict=True)]
            used = math.prod(shape.kernel) * rows
            loop.next = [total for row in sums for total in row]
            loop.next += [b.define(f"add i64 {further.text}, %plane", "i64")]
            loop.next += [b.define(f"add i64 {term.text}, {used}", "i64")]
        _store(code.current, kind, sums, (lanes, widths))
        params = ["ptr %a", "ptr %b", "ptr %c", *(f"i64 %{one}" for one in _NUMBERS)]
        body = "\n".join([*code.current.lines, "  ret void"])
        return f"define internal void @{name}({', '.join(params)}) noinline #0 {{\nentry:\n{body}\n}}\n"

    size = f"{shape.kernel[0]}x{shape.kernel[1]}_{shape.dilation[1]}"
    return named(module, f"direct_{kind}_{rows}_{'_'.join(map(str, widths))}_{size}", write)


def _starts(b: Builder, kind: str, height: int, vectors: int) -> list[list[str]]:
    """Return the addresses of the rows under a kernel, for each vector of results."""
    rows = ["%b"]
    while len(rows) < height:
        rows.append(place(b, kind, rows[-1], "%b_row"))
    return [[row, place(b, kind, row, "%b_next")][:vectors] for row in rows]


def _store(b: Builder, kind: str, sums: list[list[Value]], layout: tuple[int, tuple[int, ...]]) -> None:
    lanes, widths = layout
    target = "%c"
    for number, row in enumerate(sums):
        if number:
            target = place(b, kind, target, "%c_row")
        for vector, (total, width) in enumerate(zip(row, widths, strict=True)):
            address = place(b, kind, target, "%c_next") if vector else target
            store_vector(b, total, address, (lanes, 1, 0, first_lanes(width, lanes)))
