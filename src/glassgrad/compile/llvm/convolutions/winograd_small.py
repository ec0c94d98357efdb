"""Transforms of small images for minimal filtering: tiles of several rows, or of several images, fill a vector.

If a row of tiles is shorter than a vector, most lanes in `winograd.py` are idle. Here an image is loaded in memory
order, and its elements are permuted into the order of tiles in registers, without a border in memory; the permutation
is known at compile time. Neighbouring tiles are `step` elements apart. Elements whose row and column have the same
remainders modulo `step` form a class. Once a class is in the order of tiles, the tiles read its vectors, shifted by
whole tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from glassgrad.compile.llvm.convolutions.filtering import OUTPUTS, on_both_axes, picked
from glassgrad.compile.llvm.convolutions.windows import ShareWriter
from glassgrad.compile.llvm.convolutions.winograd_plan import Blocks, Data, Plan, filtering_of
from glassgrad.compile.llvm.loops.memory_ops import first_lanes, load_vector, store_vector
from glassgrad.compile.llvm.module.ir import Value

Place = tuple[int, int]


class _Made(dict[int, Value]):
    """Vectors that are made on first use."""

    def __init__(self, make: Callable[[int], Value]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: int) -> Value:
        value = self[key] = self._make(key)
        return value


_NOTHING = -1  # the number of a vector of zeros


class SmallWriter(ShareWriter):
    """Writes functions of the tiles of several images at once, which are `further` elements apart."""

    def data_text(self, name: str, data: Data, blocks: Blocks, pitch: int, images: int) -> str:
        """Return the function (image, tiles, planes, apart, further) that transforms the data of tiles."""
        apart = self.multiples("%apart", len(data.matrix) ** 2)
        with self.code.loop("0", "%planes", 1) as loop:
            plane = loop.counter.text
            source = self.at("%image", self.sum((plane, math.prod(data.size))))
            target = self.at("%tiles", self.sum((plane, data.split**2 * pitch)))
            seen = _Seen(self, data, blocks, images, source)
            for number in range(-(-images * blocks.high * blocks.wide // self.shape.lanes)):
                for part in range(data.split**2):
                    out = self.at(target, part * pitch + number * self.shape.lanes)
                    square = seen.square(number, *divmod(part, data.split))
                    for value, point in zip(on_both_axes(self.b, data.matrix, square), apart, strict=True):
                        self._store(value, self.at(out, point))
        return self._function(name)

    def sums_of_tiles_text(self, name: str, plan: Plan, images: int) -> str:
        """Return the function (image, tiles, planes, apart, further) that computes images' results from sums."""
        (height, width), lanes = plan.out, self.shape.lanes
        area, apart, further = (
            height * width,
            self.multiples("%apart", plan.products),
            self.multiples("%further", images),
        )
        with self.code.loop("0", "%planes", 1) as loop:
            result = loop.counter.text
            sums = self.at("%tiles", self.sum((result, plan.pitch)))
            made = _Outputs(self, plan, sums, apart)
            first = self.at("%image", self.sum((result, area)))
            for number in range(images):
                image = self.at(first, further[number])
                for start in range(0, area, lanes):
                    places = [made.place(number, *divmod(at, width)) for at in range(start, min(start + lanes, area))]
                    value = picked(self.b, made, places + places[-1:] * (lanes - len(places)))
                    self._store(value, self.at(image, start), area - start)
        return self._function(name)

    def multiples(self, number: str, count: int) -> list[str]:
        """Return the first multiples of a number, from 0 on."""
        return ["0" if factor == 0 else self.sum((number, factor)) for factor in range(count)]

    def load(self, place: str, count: int) -> Value:
        """Load `count` elements, at most a vector."""
        layout = (self.shape.lanes, 1, 0, first_lanes(count, self.shape.lanes))
        return load_vector(self.b, self.shape.kind, place, layout, [], None, place)

    def _store(self, value: Value, place: str, count: int | None = None) -> None:
        lanes = self.shape.lanes
        store_vector(self.b, value, place, (lanes, 1, 0, None if count is None else first_lanes(count, lanes)))

    def _function(self, name: str) -> str:
        self.b.raw("ret void")
        params = "ptr %image, ptr %tiles, i64 %planes, i64 %apart, i64 %further"
        # Attributes prevent LLVM from specialising copies for each call's numbers, because layers share the function.
        head = f"define internal void @{name}({params}) noinline noduplicate #0"
        return f"{head} {{\nentry:\n" + "\n".join(self.b.lines) + "\n}\n"


class _Seen:
    """The data of one plane for the tiles of some images; the plane of the first image begins at `source`."""

    def __init__(self, writer: SmallWriter, data: Data, blocks: Blocks, images: int, source: str) -> None:
        self.writer, self.data, self.blocks, self.images, self.source = writer, data, blocks, images, source
        self.lanes, self.step = writer.shape.lanes, data.split * OUTPUTS
        self.grid = -(-data.size[0] // self.step), -(-data.size[1] // self.step)
        self.area = math.prod(data.size)
        self.loaded = _Made(self._load)
        self.classes: dict[Place, _Made] = {}

    def square(self, number: int, above: int, left: int) -> list[Value]:
        """Return the elements of one parity of rows and columns for a vector of tiles, row by row."""
        seen = range(self.data.seen)
        return [self._element(number, (self._moved(i, above, 0), self._moved(j, left, 1))) for i in seen for j in seen]

    def _moved(self, seen: int, parity: int, axis: int) -> int:
        return self.data.split * seen + parity - self.data.border[axis]

    def _element(self, number: int, moved: Place) -> Value:
        """Return for a vector of tiles the elements at the offset `moved` from each tile's first element."""
        kind = moved[0] % self.step, moved[1] % self.step
        if kind not in self.classes:
            self.classes[kind] = _Made(lambda which: self._class(kind, which))
            self.classes[kind][_NOTHING] = self._zeros()
        places = [self._of_tile(number * self.lanes + lane, moved) for lane in range(self.lanes)]
        return picked(self.writer.b, self.classes[kind], places)

    def _of_tile(self, tile: int, moved: Place) -> Place:
        """Return the position in its class of the element at the offset `moved` from a tile's first element."""
        image, rest = divmod(tile, self.blocks.high * self.blocks.wide)
        row, column = (at * self.step + far for at, far in zip(divmod(rest, self.blocks.wide), moved, strict=True))
        if image >= self.images or not (0 <= row < self.data.size[0] and 0 <= column < self.data.size[1]):
            return _NOTHING, 0
        place = row // self.step * self.grid[1] + column // self.step
        return divmod(image * math.prod(self.grid) + place, self.lanes)

    def _class(self, kind: Place, which: int) -> Value:
        """Return a vector of the elements of a class, row by row and image by image."""
        self.loaded.setdefault(_NOTHING, self._zeros())
        places = [self._in_memory(which * self.lanes + lane, kind) for lane in range(self.lanes)]
        return picked(self.writer.b, self.loaded, places)

    def _in_memory(self, number: int, kind: Place) -> Place:
        image, rest = divmod(number, math.prod(self.grid))
        row, column = (at * self.step + far for at, far in zip(divmod(rest, self.grid[1]), kind, strict=True))
        if image >= self.images or row >= self.data.size[0] or column >= self.data.size[1]:
            return _NOTHING, 0
        vector, lane = divmod(row * self.data.size[1] + column, self.lanes)
        return image * -(-self.area // self.lanes) + vector, lane

    def _load(self, number: int) -> Value:
        image, vector = divmod(number, -(-self.area // self.lanes))
        start = vector * self.lanes
        source = self.writer.at(self.source, self.writer.sum(("%further", image))) if image else self.source
        return self.writer.load(self.writer.at(source, start), self.area - start)

    def _zeros(self) -> Value:
        return self.writer.b.const(0, self.writer.shape.kind, self.lanes)


class _Outputs(_Made):
    """The outputs of vectors of tiles: several numbers for each tile, by variant, row and column."""

    def __init__(self, writer: SmallWriter, plan: Plan, sums: str, apart: list[str]) -> None:
        super().__init__(self._one)
        self.writer, self.plan, self.sums, self.apart = writer, plan, sums, apart
        self.first = plan.first(0), plan.first(1)
        self.found: dict[int, list[Value]] = {}

    def place(self, image: int, row: int, column: int) -> Place:
        """Return the number of the vector that has an element of an image, and its lane."""
        blocks, variants = self.plan.blocks, len(self.first[0])
        (above, i), (left, j) = divmod(row // variants, OUTPUTS), divmod(column // variants, OUTPUTS)
        tile = image * blocks.high * blocks.wide + above * blocks.wide + left
        vector, lane = divmod(tile, self.writer.shape.lanes)
        down, along = self.first[0].index(row % variants), self.first[1].index(column % variants)
        return (((vector * variants + down) * variants + along) * OUTPUTS + i) * OUTPUTS + j, lane

    def _one(self, number: int) -> Value:
        which, output = divmod(number, OUTPUTS**2)
        if which not in self.found:
            self.found[which] = self._all(*divmod(which, len(self.first[0]) ** 2))
        return self.found[which][output]

    def _all(self, vector: int, variant: int) -> list[Value]:
        """Return all outputs of a vector of tiles."""
        writer, filtering = self.writer, filtering_of(self.plan.shape)
        lanes, every = writer.shape.lanes, filtering.points**2
        source = writer.at(self.sums, vector * lanes)
        places = [writer.at(source, self.apart[variant * every + point]) for point in range(every)]
        return on_both_axes(writer.b, filtering.outputs, [writer.load(place, lanes) for place in places])
