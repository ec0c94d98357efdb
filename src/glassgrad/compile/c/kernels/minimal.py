"""Convolutions of 3x3 windows with stride 1 by minimal filtering: 16 products for 2x2 results instead of 36.

The transforms are those of native code (`compile.llvm.convolutions.filtering` has the formulas and the papers), written
as C by the same terms. Arrays are cut into tiles, and channels lie side by side in a tile, so that vectors hold
channels. Each of the 16 points has a matrix; a product multiplies it.
"""

from __future__ import annotations

from glassgrad.compile.c.builder import CBuilder
from glassgrad.compile.c.kernels.parts import indented
from glassgrad.compile.c.kernels.products import STRIP, block_size, packed_functions, product_function, strips_size
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
        self.sized()
        if not self._pays():
            return super().lines()
        self.helpers.need("gg_tiles", _STRUCTS)
        packed_functions(self.helpers, self.kind)
        return self._of_weight() if self.instr.op == "conv2d_weight" else self._of_results()

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
        loads = [
            f"const TYPE x{number} = {at.format('a', 'from', *divmod(number, side))};" for number in range(side * side)
        ]
        stores = [
            f"{at.format('b', 'to', *divmod(number, len(matrix)))} = {value.text};" for number, value in enumerate(found)
        ]
        body = indented(["GG_SIMD_LOOP", *loop("n", "count", [*loads, *b.lines, *stores])])
        text = (
            f"/* T X T', T = [{rows}], for squares X side by side: {what}. */\n"
            f"GG_INLINE void gg_{name}_KIND(ptrdiff_t count, const TYPE *restrict a, struct gg_squares from,\n"
            f"                              TYPE *restrict b, struct gg_squares to)\n{{\n" + "\n".join(body) + "\n}\n"
        )
        return self.helpers.templated(f"gg_{name}", text, self.kind)

    def _out_of(self) -> str:
        self._transform("results")
        return self.helpers.templated("gg_out_of_tiles", _OUT_OF_TILES, self.kind)

    def _into(self, name: str) -> str:
        """Return the name of the function that transforms images into matrices of tiles."""
        self._transform(name)
        text = _INTO_TILES.replace("NAME", name).replace("SIDE", "4" if name == "data" else "2")
        return self.helpers.templated(f"gg_{name}_of_tiles", text, self.kind)

    def _plan(self, high: int, wide: int) -> None:
        """Cut results of a size into tiles, and rows of tiles into blocks."""
        self.down, self.across = -(-high // 2), -(-wide // 2)
        self.rows, self.all = max(1, _TILES // self.across), self.x[0] * self.down
        self.parts = min(self.parts, -(-self.all // self.rows))

    def _tiles(self, name: str, shape: tuple[int, ...], top: int = 0, left: int = 0) -> tuple[str, int]:
        """Return the struct of an array in tiles, and the distance between its matrices."""
        apart = _apart(self.rows * self.across * shape[1])
        numbers = ", ".join(map(str, (*shape[1:], top, left, self.down, self.across, apart)))
        return f"static const struct gg_tiles {name} = {{{numbers}}};", apart

    def _blocks(self, body: list[str]) -> list[str]:
        """Return the loop over blocks of tiles, which threads share."""
        last = f"const ptrdiff_t last = first + {self.rows} < {self.all} ? first + {self.rows} : {self.all};"
        return self.shared("first", self.all, self.rows, [last, *body])

    def _band(self, planes: int) -> str:
        return self.own("band", 4 * (2 * self.across + 2) * planes)

    # --- bodies ---

    def _of_results(self) -> list[str]:
        """Return the body of the convolution; for the image's gradient the kernels are reversed."""
        forward, (top, left) = self.instr.op == "conv2d", (first for first, _ in self.instr.params["padding"])
        source, target = (self.x, self.y) if forward else (self.y, self.x)
        self._plan(*target[2:])
        k, n = source[1], target[1]
        of_x, apart_x = self._tiles("tiles_of_x", source, *((top, left) if forward else (2 - top, 2 - left)))
        of_y, apart_y = self._tiles("tiles_of_y", target)
        apart, size = _apart(k * n), strips_size(n, k)
        kernels, strips = self.room("kernels", self.kind, _POINTS * apart), self.room("strips", self.kind, _POINTS * size)
        points, products = self.own("points", _POINTS * apart_x), self.own("products", _POINTS * apart_y)
        band, out = self._band(max(k, n)), self.pointer(self.instr.output)
        strips_name, pack = packed_functions(self.helpers, self.kind)
        weight = f"{self.start(1)}, {_WEIGHTS}" if forward else f"{self.start(1)} + 8, {_REVERSED}"
        product = (
            f"{strips_name}(false, (last - first) * {self.across}, {n}, {k}, {points} + e * {apart_x}, {k}, 1, "
            f"{strips} + e * {size}, {products} + e * {apart_y}, {n});"
        )
        packed = f"{pack}({n}, {k}, {kernels} + e * {apart}, {f'1, {k}' if forward else f'{n}, 1'}, {strips} + e * {size});"
        block = [
            f"{self._into('data')}(&tiles_of_x, {self.start(0)}, first, last, {band}, {points});",
            *loop("e", _POINTS, [product]),
            f"{self._out_of()}(&tiles_of_y, {products}, first, last, {band}, {out});",
        ]
        transformed = f"{self._transform('kernels')}({k * n}, {weight}, {kernels}, {_matrices(apart)});"
        return [of_x, of_y, transformed, *loop("e", _POINTS, [packed]), *self._blocks(block)]

    def _of_weight(self) -> list[str]:
        """Return the body of the gradient of the weight: products summed over all tiles, and one transform."""
        top, left = (first for first, _ in self.instr.params["padding"])
        self._plan(*self.y[2:])
        (of_x, apart_x), (of_y, apart_y) = self._tiles("tiles_of_x", self.x, top, left), self._tiles("tiles_of_y", self.y)
        c, o = self.channels, self.outputs
        apart = _apart(c * o)
        points, products = self.own("points", _POINTS * apart_x), self.own("products", _POINTS * apart_y)
        band, total = self._band(max(c, o)), self.own("total", _POINTS * apart)
        strips = self.own("strips", block_size(c, self.rows * self.across))
        product = (
            f"{product_function(self.helpers, self.kind)}(first >= {self.parts * self.rows}, {o}, {c}, "
            f"(last - first) * {self.across}, {products} + e * {apart_y}, 1, {o}, {points} + e * {apart_x}, {c}, 1, "
            f"{total} + e * {apart}, {c}, {strips});"
        )
        block = [
            f"{self._into('data')}(&tiles_of_x, {self.start(0)}, first, last, {band}, {points});",
            f"{self._into('gradients')}(&tiles_of_y, {self.start(1)}, first, last, {band}, {products});",
            *loop("e", _POINTS, [product]),
        ]
        last = f"{self._transform('weights')}({c * o}, total, {_matrices(apart)}, {self.pointer(self.instr.output)}, {_WEIGHTS});"
        return [of_x, of_y, *self._blocks(block), *self.summed("total", _POINTS * apart), last]


_WEIGHTS, _REVERSED = "(struct gg_squares){9, 3, 1}", "(struct gg_squares){9, -3, -1}"


def _matrices(apart: int) -> str:
    """Return where the 4x4 points of a square lie in matrices."""
    return f"(struct gg_squares){{1, {4 * apart}, {apart}}}"


def _apart(elements: int) -> int:
    """Return the distance between matrices: an odd number of cache lines, so that they do not fall into one set."""
    return (-(-elements // STRIP) | 1) * STRIP
