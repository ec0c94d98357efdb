"""The sizes of a convolution by minimal filtering: blocks of tiles, transformed data, and offsets in scratch memory.

A kernel of 4x4 and stride 2 equals four of 2x2 and stride 1, one for each parity of rows and of columns, over the
elements of that parity. So the sum has four times as many planes. With respect to the input, each parity of results is
a separate sum, over a gradient that is shifted by one or not: four variants of data, products and results.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from glassgrad.compile.llvm.convolutions.filtering import OUTPUTS, THREE, TWO, Filtering, Matrix, turned
from glassgrad.compile.llvm.convolutions.windows import Shape
from glassgrad.compile.llvm.module.ir import BITS
from glassgrad.compile.llvm.products.gemm import Gemm, TileShape, tile_shape

# Tiles of a block: enough for a product to be worth reading the weights, few enough for the second-level cache.
_TILES = 64
# The elements of small images are ordered in registers, in a function of at most this many vectors of tiles and loads.
_MOST_VECTORS, _MOST_LOADS = 4, 64
# Short rows fill shorter vectors, and those lack an instruction that picks elements of any two vectors.
SMALL_BITS = 512


@dataclass(frozen=True)
class Blocks:
    """The partition of tiles: a block is `rows` of an image's (`high`, `wide`) tiles, or all tiles of several images.

    The last block of an image ends with the image, so it may repeat some rows of the block before.
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
        """Elements from row to row of a matrix of tiles, with room for a last vector, and not a multiple of a page."""
        least = -(-(self.tiles + lanes) // 16) * 16
        return least if least % 256 else least + 16

    def at_once(self, shape: Shape, size: tuple[int, int]) -> int:
        """Return how many images of a size fill vectors with their tiles; 0 if rows do, or if it takes too many."""
        tiles, lanes = self.high * self.wide, shape.lanes
        if self.count > 1 or self.wide >= lanes or lanes * BITS[shape.kind] < SMALL_BITS:
            return 0
        images = max(1, min(self.images, lanes // tiles))
        few = -(-images * tiles // lanes) <= _MOST_VECTORS and images * -(-math.prod(size) // lanes) <= _MOST_LOADS
        return images if few else 0


def apart(shape: Shape, elements: int) -> int:
    """Return the distance between matrices of `elements` that are written and read in parallel.

    Vectors shorter than a cache line access the line again. So the lines of 16 matrices must not fall into one set of
    the first-level cache, as they do at multiples of a page, nor into two or three sets.
    """
    if shape.lanes * BITS[shape.kind] >= SMALL_BITS:
        return elements
    line = SMALL_BITS // BITS[shape.kind]
    lines = -(-elements // line)
    return (lines if lines % 8 else lines + 1) * line


@dataclass(frozen=True)
class Data:
    """The transformed data of an image: a number of planes of a size, with a border in front.

    Each plane is split into `split` times `split` planes, by the parity of rows and columns. A tile reads as many
    elements along an axis as the matrix has columns.
    """

    planes: int
    size: tuple[int, int]
    border: tuple[int, int]
    matrix: Matrix
    split: int = 1

    @property
    def seen(self) -> int:
        return len(self.matrix[0])

    @property
    def transformed(self) -> int:
        """Planes after they are split."""
        return self.planes * self.split**2

    def plane(self, blocks: Blocks) -> tuple[int, int]:
        """The size of the part of one of these planes that a block reads."""
        more = self.seen - OUTPUTS
        return OUTPUTS * blocks.rows + more, OUTPUTS * blocks.wide + more

    def elements(self, blocks: Blocks) -> int:
        """The number of elements of an image's plane that a block reads."""
        return self.split**2 * math.prod(self.plane(blocks))


def filtering_of(shape: Shape) -> Filtering:
    """Return the filtering along each axis."""
    return THREE if shape.stride == (1, 1) else TWO


@dataclass(frozen=True)
class _Plan:
    """The common part of the plans of all passes.

    `starts` are the offsets in scratch memory, in elements, of a pass's parts. The packed panels are last; the product
    decides their size.
    """

    shape: Shape
    blocks: Blocks
    gemm: Gemm
    starts: tuple[int, ...]

    def apart(self, elements: int) -> int:
        """Return the distance between matrices of `elements`."""
        return apart(self.shape, elements)

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory of a share."""
        return (self.starts[-1] + 64) * BITS[self.gemm.kind] // 8 + self.gemm.scratch


@dataclass(frozen=True)
class Plan(_Plan):
    """A convolution by minimal filtering or, if `turned`, its transpose with respect to the input.

    Units of work are the tiles of some images, for all `results`. Its parts in scratch memory are weights, data, sums
    and a plane.
    """

    turned: bool

    @property
    def pitch(self) -> int:
        return self.gemm.c_stride

    @property
    def results(self) -> int:
        return results_of(self.shape, turned_round=self.turned)

    @property
    def out(self) -> tuple[int, int]:
        """The size of a plane of results."""
        return self.shape.size if self.turned else self.shape.out

    @property
    def products(self) -> int:
        """Products of a block."""
        return len(self.data) * filtering_of(self.shape).points ** 2

    @property
    def data(self) -> list[Data]:
        """The transformed data of each variant."""
        return data_of(self.shape, turned_round=self.turned)

    def first(self, axis: int) -> list[int]:
        """Return the first result of each variant along an axis: 0, or 0 and 1 in some order."""
        if not self.turned:
            return [0]
        step, before = self.shape.stride[axis], self.shape.padding[axis][0]
        return [step * _first(before, parity, step) + parity - before for parity in range(step)]


def _first(before: int, parity: int, step: int) -> int:
    """Return the number of the first element of a parity that is not border."""
    return -(-(before - parity) // step)


def data_of(shape: Shape, *, turned_round: bool) -> list[Data]:
    """Return the transformed data of the image, or of the gradient for each parity of rows and columns."""
    filtering, step = filtering_of(shape), shape.stride[0]
    (top, _), (left, _) = shape.padding
    if not turned_round:
        return [Data(shape.channels, shape.size, (top, left), filtering.data, step)]
    reach = filtering.taps - 1
    above, before = ([reach - _first(size, parity, step) for parity in range(step)] for size in (top, left))
    return [Data(shape.outputs, shape.out, (row, column), filtering.data) for row in above for column in before]


def results_of(shape: Shape, *, turned_round: bool) -> int:
    """Return how many planes of results an image has."""
    return shape.channels if turned_round else shape.outputs


def plan_of(shape: Shape, *, turned: bool) -> Plan:
    """Return the plan of a convolution, or with `turned` of its transpose with respect to the input."""
    lanes, step = shape.lanes, shape.stride[0]
    out = tuple(-(-extent // step) for extent in shape.size) if turned else shape.out
    high, wide = (-(-extent // OUTPUTS) for extent in out)
    m = results_of(shape, turned_round=turned)
    data = data_of(shape, turned_round=turned)
    products, k = len(data) * filtering_of(shape).points ** 2, data[0].transformed
    blocks = Blocks(high, wide, _images_together(shape, high * wide))
    n, pitch = blocks.tiles, blocks.pitch(lanes)
    tile = _tile(n, lanes)
    far = turned and m * BITS[shape.kind] // 8 >= 1024 and n > tile.vectors * lanes
    strides = (1, m) if turned else (k, 1)
    gemm = Gemm(shape.kind, k, strides, (pitch, 1), pitch, (m,), (n,), lanes, tile, m > 64, far)
    kernels, *sizes = [products * apart(shape, size) for size in (m * k, k * pitch, m * pitch)]
    starts = _starts_of([kernels, *(size + lanes for size in sizes), data[0].elements(blocks) + 4 * lanes])
    return Plan(shape, blocks, gemm, starts, turned)


def _tile(columns: int, lanes: int) -> TileShape:
    """Return the tile of a product; avoid tiles of three vectors that would leave a single one over."""
    return tile_shape(2 * lanes if -(-columns // lanes) % 3 == 1 else columns, lanes)


def _images_together(shape: Shape, tiles: int) -> int:
    """Return how many images of `tiles` each fill a block; the result divides the number of images."""
    wanted = max(1, min(shape.images // 2, _TILES // tiles))
    return max(d for d in range(1, wanted + 1) if shape.images % d == 0)


def _starts_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the offsets of consecutive arrays of these sizes, each with a vector's alignment, and their end."""
    rounded = [-(-size // 16) * 16 for size in sizes]
    return tuple(itertools.accumulate(rounded, initial=0))


@dataclass(frozen=True)
class WeightPlan(_Plan):
    """The gradient of a weight, in parts that sum over some images each.

    Its parts in scratch memory are sums, gradients, data and a plane.
    """

    @property
    def pitch(self) -> int:
        return self.gemm.a_strides[0]

    @property
    def data(self) -> Data:
        return data_of(self.shape, turned_round=False)[0]

    @property
    def gradient(self) -> Data:
        return gradient_of(self.shape)


def gradient_of(shape: Shape) -> Data:
    """Return the transformed data of the output's gradient, for the gradient of the weight."""
    return Data(shape.outputs, shape.out, (0, 0), turned(filtering_of(shape).outputs))


def weight_plan_of(shape: Shape, parts: int) -> WeightPlan:
    """Return the plan of the gradient of a weight, summed in `parts`."""
    high, wide = (-(-extent // OUTPUTS) for extent in shape.out)
    most = -(-shape.images // parts)
    blocks = Blocks(high, wide, max(1, min(most, _TILES // (high * wide))))
    lanes, points, pitch = shape.lanes, filtering_of(shape).points ** 2, blocks.pitch(shape.lanes)
    data, gradient = data_of(shape, turned_round=False)[0], gradient_of(shape)
    m, n, k = shape.outputs, data.transformed, blocks.tiles
    gemm = Gemm(
        shape.kind, k, (pitch, 1), (1, pitch), n, (m,), (n,), lanes, tile_shape(n, lanes), pack=True, accumulate=True
    )
    plane = max(data.elements(blocks), gradient.elements(blocks)) + 4 * lanes
    sums, *sizes = [points * apart(shape, size) for size in (m * n, m * pitch, n * pitch)]
    return WeightPlan(shape, blocks, gemm, _starts_of([sums, *(size + lanes for size in sizes), plane]))
