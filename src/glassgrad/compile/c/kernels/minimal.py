"""Convolutions of 3x3 windows with stride 1 by minimal filtering: 16 products for 2x2 results instead of 36.

The transforms are those of native code (`compile.llvm.convolutions.filtering` has the formulas and the papers), written
as C by the same terms. Arrays are cut into tiles, and channels lie side by side in a tile, so that vectors hold
channels. Each of the 16 points has a matrix; a product multiplies it.
"""

from __future__ import annotations

from glassgrad.compile.c.builder import CBuilder
from glassgrad.compile.c.kernels.parts import indented
from glassgrad.compile.c.kernels.products import STRIP, block_size, product_function
from glassgrad.compile.c.kernels.solid import loop
from glassgrad.compile.c.kernels.windows import ConvCode
from glassgrad.compile.llvm.convolutions.filtering import THREE, Matrix, on_both_axes, turned
from glassgrad.compile.llvm.module.ir import Value

_POINTS = 16
_TILES = 64  # of a block: enough to be worth reading the weights, few enough for the second-level cache
# From this many channels and outputs, and tiles, transforms cost less than the saved products; the largest weight.
_LEAST_CHANNELS, _LEAST_TILES, _MOST_WEIGHTS = 12, 48, 1 << 18

# name -> matrix T, and what it transforms
_TRANSFORMS: dict[str, tuple[Matrix, str]] = {
    "data": (THREE.data, "the 4x4 elements of a tile"),
    "kernels": (THREE.kernel, "a kernel of 3x3"),
    "results": (THREE.outputs, "16 products into 2x2 results"),
    "gradients": (turned(THREE.outputs), "the gradients of 2x2 results"),
    "weights": (turned(THREE.kernel), "16 sums of products into the gradient of a kernel"),
}

_STRUCTS = """\
/* where squares lie side by side: the distance to the next one, and between rows and columns of one */
struct gg_squares {
    ptrdiff_t step, row, column;
};
/* images in tiles: planes of an image and their size, the border before them, the tiles along both axes, and the
   distance between the matrices of two points. Element [tile, plane] of the matrix of a point belongs to a tile. */
struct gg_tiles {
    ptrdiff_t planes, high, wide, top, left, down, across, apart;
};
"""

_INTO_TILES = """\
/* Transform rows [first, last) of tiles, counted through all images. A band is the SIDE rows of elements that a row of
   tiles reads: planes side by side, zeros outside of the image. The next row of tiles keeps the rows that it shares. */
GG_INLINE void gg_NAME_of_tiles_KIND(const struct gg_tiles *s, const TYPE *restrict images, ptrdiff_t first,
                                     ptrdiff_t last, TYPE *restrict band, TYPE *restrict tiles)
{
    const ptrdiff_t wide = 2 * s->across + SIDE - 2;
    for (ptrdiff_t r = first; r < last; r++) {
        const TYPE *image = images + r / s->down * s->planes * s->high * s->wide;
        const ptrdiff_t top = r % s->down * 2 - s->top;
        const ptrdiff_t kept = r > first && r % s->down > 0 ? SIDE - 2 : 0, row = wide * s->planes;
        memcpy(band, band + 2 * row, (size_t)(kept * row) * sizeof *band);
        memset(band + kept * row, 0, (size_t)((SIDE - kept) * row) * sizeof *band);
        for (ptrdiff_t y = kept > -top ? kept : -top; y < SIDE && top + y < s->high; y++) {
            for (ptrdiff_t x = 0; x < s->wide; x++) {
                for (ptrdiff_t c = 0; c < s->planes; c++) {
                    band[(y * wide + x + s->left) * s->planes + c] = image[(c * s->high + top + y) * s->wide + x];
                }
            }
        }
        const struct gg_squares seen = {1, row, s->planes}, points = {1, 4 * s->apart, s->apart};
        for (ptrdiff_t x = 0; x < s->across; x++, tiles += s->planes) {
            gg_NAME_KIND(s->planes, band + 2 * x * s->planes, seen, tiles, points);
        }
    }
}
"""

_OUT_OF_TILES = """\
/* Transform products into rows [first, last) of tiles of results. */
GG_INLINE void gg_out_of_tiles_KIND(const struct gg_tiles *s, const TYPE *restrict tiles, ptrdiff_t first,
                                    ptrdiff_t last, TYPE *restrict band, TYPE *restrict images)
{
    const ptrdiff_t wide = 2 * s->across;
    const struct gg_squares seen = {1, wide * s->planes, s->planes}, points = {1, 4 * s->apart, s->apart};
    for (ptrdiff_t r = first; r < last; r++) {
        TYPE *image = images + r / s->down * s->planes * s->high * s->wide;
        const ptrdiff_t top = r % s->down * 2;
        for (ptrdiff_t x = 0; x < s->across; x++, tiles += s->planes) {
            gg_results_KIND(s->planes, tiles, points, band + 2 * x * s->planes, seen);
        }
        for (ptrdiff_t y = 0; y < 2 && top + y < s->high; y++) {
            for (ptrdiff_t x = 0; x < s->wide; x++) {
                for (ptrdiff_t c = 0; c < s->planes; c++) {
                    image[(c * s->high + top + y) * s->wide + x] = band[(y * wide + x) * s->planes + c];
                }
            }
        }
    }
}
"""


class MinimalCode(ConvCode):
    """conv2d and its transposes, by minimal filtering where that saves time."""

    def lines(self) -> list[str]:
        """Return the body: transforms and products of one block of tiles after another."""
        self.sized()
        if not self._pays():
            return super().lines()
        self.helpers.need("gg_tiles", _STRUCTS)
        (top, _), (left, _) = self.instr.params["padding"]
        source, target = self.x, self.y
        if self.instr.op == "conv2d_input":  # the convolution of the gradient with reversed kernels
            source, target, top, left = self.y, self.x, 2 - top, 2 - left
        down, across = (-(-size // 2) for size in target[2:])
        count, rows = target[0] * down, min(target[0] * down, max(1, _TILES // across))
        self.parts = min(self.parts, -(-count // rows))
        self.k, self.n, self.tiles = source[1], target[1], f"(last - first) * {across}"
        self.of_x, self.of_y, self.of_w = (
            _apart(one) for one in (rows * across * self.k, rows * across * self.n, self.k * self.n)
        )
        self.points, self.sums = self.own("points", _POINTS * self.of_x), self.own("products", _POINTS * self.of_y)
        self.band = self.own("band", 4 * (2 * across + 2) * max(self.k, self.n))
        self.strips = self.own("strips", block_size(max(self.k, self.n), max(rows * across, self.k)))
        weight = self.instr.op == "conv2d_weight"
        before, steps, after = self._of_weight(self.parts * rows) if weight else self._of_results()
        block = [
            f"const ptrdiff_t last = first + {rows} < {count} ? first + {rows} : {count};",
            f"{self._into('data')}(&tiles_of_x, {self.start(0)}, first, last, {self.band}, {self.points});",
            *steps,
        ]
        numbers = {
            "tiles_of_x": (*source[1:], top, left, down, across, self.of_x),
            "tiles_of_y": (*target[1:], 0, 0, down, across, self.of_y),
        }
        structs = [
            f"static const struct gg_tiles {name} = {{{', '.join(map(str, one))}}};" for name, one in numbers.items()
        ]
        return [*structs, *before, *self.shared("first", count, block, rows), *after]

    def _pays(self) -> bool:
        params = self.instr.params
        (top, bottom), (left, right) = params["padding"]
        form = self.w[2:] == (3, 3) and params["stride"] == (1, 1) == params["dilation"] and self.groups == 1
        tiles = self.y[0] * -(-self.y[2] // 2) * -(-self.y[3] // 2)
        many = min(self.channels, self.outputs) >= _LEAST_CHANNELS and tiles >= _LEAST_TILES
        return form and max(top, bottom, left, right) <= 2 and many and self.channels * self.outputs <= _MOST_WEIGHTS

    # --- parts ---

    def _transform(self, name: str) -> str:
        """Return the name of the function of one of the transforms."""
        matrix, what = _TRANSFORMS[name]
        side, b = len(matrix[0]), CBuilder(self.helpers)
        given = [Value(f"x{number}", self.kind) for number in range(side * side)]
        found = on_both_axes(b, matrix, given)
        rows = "; ".join(" ".join(f"{value:g}" for value in row) for row in matrix)
        at = "{0}[n * {1}.step + {2} * {1}.row + {3} * {1}.column]"
        loads = [f"const TYPE {one.text} = {at.format('a', 'from', *divmod(i, side))};" for i, one in enumerate(given)]
        stores = [f"{at.format('b', 'to', *divmod(i, len(matrix)))} = {one.text};" for i, one in enumerate(found)]
        body = indented(["GG_SIMD_LOOP", *loop("n", "count", [*loads, *b.lines, *stores])])
        text = (
            f"/* T X T', T = [{rows}], for squares X side by side: {what}. */\n"
            f"GG_INLINE void gg_{name}_KIND(ptrdiff_t count, const TYPE *restrict a, struct gg_squares from,\n"
            f"                              TYPE *restrict b, struct gg_squares to)\n{{\n" + "\n".join(body) + "\n}\n"
        )
        return self.helpers.templated(f"gg_{name}", text, self.kind)

    def _into(self, name: str) -> str:
        """Return the name of the function that transforms images into matrices of tiles."""
        self._transform(name)
        text = _INTO_TILES.replace("NAME", name).replace("SIDE", "4" if name == "data" else "2")
        return self.helpers.templated(f"gg_{name}_of_tiles", text, self.kind)

    # --- bodies: lines before the blocks, in a block once the data is transformed, and after the blocks ---

    def _of_results(self) -> tuple[list[str], list[str], list[str]]:
        """Return the lines of a sum: kernels into matrices (k, n), then products (tiles, n), then results."""
        kernels, of_weight = self.room("kernels", self.kind, _POINTS * self.of_w), self.channels * 9
        if self.instr.op == "conv2d":
            place, taps, to, step = "", "{9, 3, 1}", "o", self.n
        else:
            place, taps, to, step = " + 8", "{9, -3, -1}", f"o * {self.n}", 1
        transformed = (
            f"{self._transform('kernels')}({self.channels}, {self.start(1)} + o * {of_weight}{place}, "
            f"(struct gg_squares){taps}, {kernels} + {to}, {self._matrices(step)});"
        )
        product = (
            f"{product_function(self.helpers, self.kind)}(false, {self.tiles}, {self.n}, {self.k}, "
            f"{self.points} + e * {self.of_x}, {self.k}, 1, {kernels} + e * {self.of_w}, {self.n}, 1, "
            f"{self.sums} + e * {self.of_y}, {self.n}, {self.strips});"
        )
        self._transform("results")
        name = self.helpers.templated("gg_out_of_tiles", _OUT_OF_TILES, self.kind)
        results = f"{name}(&tiles_of_y, {self.sums}, first, last, {self.band}, {self.pointer(self.instr.output)});"
        return loop("o", self.outputs, [transformed]), [*loop("e", _POINTS, [product]), results], []

    def _of_weight(self, once: int) -> tuple[list[str], list[str], list[str]]:
        """Return the lines of the weight's gradient: products (n, k) of gradients and data, summed over all tiles."""
        gradients = f"{self._into('gradients')}(&tiles_of_y, {self.start(1)}, first, last, {self.band}, {self.sums});"
        product = (
            f"{product_function(self.helpers, self.kind)}(first >= {once}, {self.n}, {self.k}, {self.tiles}, "
            f"{self.sums} + e * {self.of_y}, 1, {self.n}, {self.points} + e * {self.of_x}, {self.k}, 1, "
            f"{self.own('total', _POINTS * self.of_w)} + e * {self.of_w}, {self.k}, {self.strips});"
        )
        last = (
            f"{self._transform('weights')}({self.k * self.n}, total, {self._matrices(1)}, "
            f"{self.pointer(self.instr.output)}, (struct gg_squares){{9, 3, 1}});"
        )
        return (
            [],
            [gradients, *loop("e", _POINTS, [product])],
            [*self.summed("total", _POINTS * self.of_w, "total"), last],
        )

    def _matrices(self, step: int) -> str:
        """Return where the 4x4 points of a kernel lie."""
        return f"(struct gg_squares){{{step}, {4 * self.of_w}, {self.of_w}}}"


def _apart(elements: int) -> int:
    """Return the distance between matrices: an odd number of cache lines, so that they do not fall into one set."""
    return (-(-elements // STRIP) | 1) * STRIP
