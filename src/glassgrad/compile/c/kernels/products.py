"""Matrix products: one small blocked kernel for all sizes and layouts, or CBLAS if the user asks for it."""

from __future__ import annotations

import math

from glassgrad.compile.c.helpers import Helpers
from glassgrad.compile.c.kernels.solid import Solid, loop
from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.plan.view_chains import Strided

DEEP, WIDE = 256, 512  # rows and columns of a block of B

_PRODUCT = """\
/* C += A B for some rows: n columns, k terms. Four rows of A pass over two rows of B at a time, so that a vector of B
   serves four sums. */
static void gg_plain_rows_KIND(ptrdiff_t rows, ptrdiff_t n, ptrdiff_t k, const TYPE *restrict a, ptrdiff_t a_row,
                         ptrdiff_t a_column, const TYPE *restrict b, ptrdiff_t b_row, TYPE *restrict c, ptrdiff_t c_row)
{
    for (; rows >= 4; rows -= 4, a += 4 * a_row, c += 4 * c_row) {
        TYPE *restrict c0 = c;
        TYPE *restrict c1 = c + c_row;
        TYPE *restrict c2 = c + 2 * c_row;
        TYPE *restrict c3 = c + 3 * c_row;
        const TYPE *x = a;
        const TYPE *restrict b0 = b;
        ptrdiff_t p = k;
        for (; p >= 2; p -= 2, x += 2 * a_column, b0 += 2 * b_row) {
            const TYPE *restrict b1 = b0 + b_row;
            const TYPE x00 = x[0], x01 = x[a_column];
            const TYPE x10 = x[a_row], x11 = x[a_row + a_column];
            const TYPE x20 = x[2 * a_row], x21 = x[2 * a_row + a_column];
            const TYPE x30 = x[3 * a_row], x31 = x[3 * a_row + a_column];
            for (ptrdiff_t j = 0; j < n; j++) {
                c0[j] = c0[j] + x00 * b0[j] + x01 * b1[j];
                c1[j] = c1[j] + x10 * b0[j] + x11 * b1[j];
                c2[j] = c2[j] + x20 * b0[j] + x21 * b1[j];
                c3[j] = c3[j] + x30 * b0[j] + x31 * b1[j];
            }
        }
        if (p > 0) {
            const TYPE x0 = x[0], x1 = x[a_row], x2 = x[2 * a_row], x3 = x[3 * a_row];
            for (ptrdiff_t j = 0; j < n; j++) {
                c0[j] += x0 * b0[j];
                c1[j] += x1 * b0[j];
                c2[j] += x2 * b0[j];
                c3[j] += x3 * b0[j];
            }
        }
    }
    for (; rows > 0; rows--, a += a_row, c += c_row) {
        const TYPE *x = a;
        const TYPE *restrict y = b;
        for (ptrdiff_t p = k; p > 0; p--, x += a_column, y += b_row) {
            const TYPE factor = x[0];
            for (ptrdiff_t j = 0; j < n; j++) {
                c[j] += factor * y[j];
            }
        }
    }
}
"""

_TILES = """\
#ifdef GG_TILES
/* several numbers as one vector, which gcc and clang keep in registers */
typedef TYPE gg_lanes_KIND __attribute__((vector_size(32), aligned(sizeof(TYPE)), may_alias));

/* C += A B for six rows and two vectors of columns. */
static void gg_tile_KIND(ptrdiff_t k, const TYPE *restrict a, ptrdiff_t a_row, ptrdiff_t a_column,
                         const TYPE *restrict b, ptrdiff_t b_row, TYPE *restrict c, ptrdiff_t c_row)
{
    enum { LANES = 32 / sizeof(TYPE) };
    gg_lanes_KIND sums[6][2];
    for (int r = 0; r < 6; r++) {
        sums[r][0] = *(const gg_lanes_KIND *)(c + r * c_row);
        sums[r][1] = *(const gg_lanes_KIND *)(c + r * c_row + LANES);
    }
    for (; k > 0; k--, a += a_column, b += b_row) {
        const gg_lanes_KIND left = *(const gg_lanes_KIND *)b, right = *(const gg_lanes_KIND *)(b + LANES);
        for (int r = 0; r < 6; r++) {
            sums[r][0] += a[r * a_row] * left;
            sums[r][1] += a[r * a_row] * right;
        }
    }
    for (int r = 0; r < 6; r++) {
        *(gg_lanes_KIND *)(c + r * c_row) = sums[r][0];
        *(gg_lanes_KIND *)(c + r * c_row + LANES) = sums[r][1];
    }
}
#endif

/* C += A B for some rows: tiles where there are vectors, plain loops for the rest. */
static void gg_rows_KIND(ptrdiff_t rows, ptrdiff_t n, ptrdiff_t k, const TYPE *restrict a, ptrdiff_t a_row,
                         ptrdiff_t a_column, const TYPE *restrict b, ptrdiff_t b_row, TYPE *restrict c, ptrdiff_t c_row)
{
#ifdef GG_TILES
    const ptrdiff_t wide = 64 / (ptrdiff_t)sizeof(TYPE);
    for (; rows >= 6; rows -= 6, a += 6 * a_row, c += 6 * c_row) {
        ptrdiff_t j = 0;
        for (; j + wide <= n; j += wide) {
            gg_tile_KIND(k, a, a_row, a_column, b + j, b_row, c + j, c_row);
        }
        if (j < n) {
            gg_plain_rows_KIND(6, n - j, k, a, a_row, a_column, b + j, b_row, c + j, c_row);
        }
    }
#endif
    gg_plain_rows_KIND(rows, n, k, a, a_row, a_column, b, b_row, c, c_row);
}
"""

_WHOLE = """\
/* C = A B, or C += A B: m rows, n columns, k terms. Elements of a row of A are `a_column` apart, those of a column
   `a_row`; likewise for B; rows of C are `c_row` apart. A block of B stays in the cache while the rows of A pass. */
static void gg_product_KIND(bool adds, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const TYPE *restrict a, ptrdiff_t a_row,
                            ptrdiff_t a_column, const TYPE *restrict b, ptrdiff_t b_row, ptrdiff_t b_column,
                            TYPE *restrict c, ptrdiff_t c_row, TYPE *restrict panel)
{
#ifdef GG_USE_CBLAS
    if ((a_column == 1 || a_row == 1) && (b_column == 1 || b_row == 1)) {
        const ptrdiff_t lda = a_column == 1 ? (a_row > k ? a_row : k) : (a_column > m ? a_column : m);
        const ptrdiff_t ldb = b_column == 1 ? (b_row > n ? b_row : n) : (b_column > k ? b_column : k);
        cblas_BLASgemm(CblasRowMajor, a_column == 1 ? CblasNoTrans : CblasTrans,
                       b_column == 1 ? CblasNoTrans : CblasTrans, (int)m, (int)n, (int)k, (TYPE)1, a, (int)lda, b,
                       (int)ldb, adds ? (TYPE)1 : (TYPE)0, c, (int)c_row);
        return;
    }
#endif
    for (ptrdiff_t i = 0; i < m && !adds; i++) {
        memset(c + i * c_row, 0, (size_t)n * sizeof *c);
    }
    for (ptrdiff_t p = 0; p < k; p += GG_DEEP) {
        const ptrdiff_t deep = k - p < GG_DEEP ? k - p : GG_DEEP;
        for (ptrdiff_t j = 0; j < n; j += GG_WIDE) {
            const ptrdiff_t wide = n - j < GG_WIDE ? n - j : GG_WIDE;
            const TYPE *block = b + p * b_row + j * b_column;
            ptrdiff_t block_row = b_row;
            if (b_column != 1) { /* the columns of B are copied into rows */
                for (ptrdiff_t x = 0; x < wide; x++) {
                    for (ptrdiff_t y = 0; y < deep; y++) {
                        panel[y * wide + x] = block[y * b_row + x * b_column];
                    }
                }
                block = panel;
                block_row = wide;
            }
            GG_PARALLEL
            for (ptrdiff_t i = 0; i < m; i += GG_ROWS) {
                gg_rows_KIND(m - i < GG_ROWS ? m - i : GG_ROWS, wide, deep, a + i * a_row + p * a_column, a_row,
                             a_column, block, block_row, c + i * c_row + j, c_row);
            }
        }
    }
}
"""

_BLOCKS = f"""\
enum {{ GG_DEEP = {DEEP}, GG_WIDE = {WIDE}, GG_ROWS = 24 }};
#ifdef _OPENMP
#define GG_PARALLEL _Pragma("omp parallel for if (m * wide * deep > 100000)")
#else
#define GG_PARALLEL
#endif
#if defined(__GNUC__) && (defined(__AVX__) || defined(__ARM_NEON))
#define GG_TILES
#endif
"""

_CBLAS = """\
#ifdef GG_USE_CBLAS
#include <cblas.h>
#endif
"""


def product_function(helpers: Helpers, kind: str) -> str:
    """Return the name of the product for an element kind."""
    helpers.need("cblas", _CBLAS)
    helpers.need("blocks", _BLOCKS)
    helpers.templated("gg_plain_rows", _PRODUCT, kind)
    helpers.templated("gg_rows", _TILES, kind)
    return helpers.templated("gg_product", _WHOLE.replace("BLASgemm", "sgemm" if kind == "f32" else "dgemm"), kind)


def panel_size(n: int, k: int) -> int:
    """Return the elements of the copy of a block of B."""
    return min(n, WIDE) * min(k, DEEP)


class ProductCode(Solid):
    """A matrix product, or a batch of them."""

    @staticmethod
    def takes(instr: Instr) -> bool:
        operands = [operand for operand in instr.inputs if isinstance(operand, Var)]
        same = all(operand.dtype == instr.output.dtype for operand in operands)
        floats = instr.output.dtype.kind == "f" and instr.output.dtype.itemsize >= 4
        return same and floats and len(operands) == 2 and bool(operands[0].ndim and operands[0].shape[-1])

    @staticmethod
    def accepts(instr: Instr, position: int, strided: Strided) -> bool:
        last = zip(strided.strides[-2:], strided.shape[-2:], strict=True)
        return len(strided.shape) >= 2 and all(stride > 0 or extent == 1 for stride, extent in last)

    def lines(self) -> list[str]:
        a, b = self.operand(0), self.operand(1)
        out = self.instr.output
        m, n, k = out.shape[-2], out.shape[-1], a.shape[-1]
        batch = out.shape[:-2]
        one = _rows_together(a, b, batch)
        if one is not None:
            a, m, batch = one, math.prod(one.shape[:-1]), ()
        panel, across = "NULL", b.strides[-1] if n != 1 else 1
        if across != 1:
            panel = self.room("panel", self.kind, panel_size(n, k))
        size = self.sizes.text
        starts = [self.start(0), self.start(1), self.pointer(out)]
        counters = "xyzuvw"[: len(batch)]
        for axis, counter in enumerate(counters):
            for side, strided in enumerate((a, b)):
                at = axis - len(batch) + len(strided.shape) - 2
                stride = strided.strides[at] if at >= 0 and strided.shape[at] != 1 else 0
                starts[side] += f" + {counter} * {size(stride)}" if stride else ""
            step = math.prod(batch[axis + 1 :]) * m * n
            starts[2] += f" + {counter} * {size(step)}"
        function = product_function(self.helpers, self.kind)
        arguments = [
            f"false, {size(m)}, {size(n)}, {size(k)}",
            f"{starts[0]}, {size(a.strides[-2])}, {size(a.strides[-1])}",
            f"{starts[1]}, {size(b.strides[-2])}, {size(across)}",
            f"{starts[2]}, {size(n)}, {panel}",
        ]
        body = [f"{function}({', '.join(arguments)});"]
        for axis in reversed(range(len(batch))):
            body = loop(counters[axis], size(batch[axis]), body)
        return body


def _rows_together(a: Strided, b: Strided, batch: tuple[int, ...]) -> Strided | None:
    """Return A as one matrix if all matrices of a batch share B and their rows are evenly spaced."""
    if not batch or any(extent != 1 for extent in b.shape[:-2]) or a.shape[:-2] != batch:
        return None
    expected, count = a.strides[-2], a.shape[-2]
    for extent, stride in zip(reversed(batch), reversed(a.strides[:-2]), strict=True):
        if extent != 1 and stride != expected * count:
            return None
        count *= extent
    return Strided(a.root, a.offset, (count, a.shape[-1]), (expected, a.strides[-1]))
