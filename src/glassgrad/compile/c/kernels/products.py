"""Matrix products: one small blocked kernel for all sizes and layouts, or CBLAS if the user asks for it.

The kernel computes a tile of C in registers. For this the columns of B are copied into strips, each as wide as a tile:
all terms of a strip follow one another. A convolution fills the strips with the windows of an image instead.
"""

from __future__ import annotations

import math

from glassgrad.compile.c.helpers import Helpers
from glassgrad.compile.c.kernels.solid import PARTS, Solid
from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.plan.view_chains import Strided

DEEP, WIDE = 256, 512  # rows and columns of a block of B
STRIP = 16  # the most columns of a strip: those of float
ALONE = 10**6  # multiplications that are not worth a second thread

_SIZES = f"""\
/* Blocks of a product, the bytes of a row of a strip, and the most work that is left to one thread. A tile has GG_TALL
   rows; gcc and clang keep it in vectors of GG_VECTOR bytes. */
enum {{ GG_DEEP = {DEEP}, GG_WIDE = {WIDE}, GG_ROWS = 48, GG_ACROSS = 128, GG_STRIP = 64, GG_ALONE = {ALONE} }};
#if defined(__GNUC__) && (defined(__AVX__) || defined(__aarch64__))
enum {{ GG_TALL = 6 }};
#define GG_VECTOR 32
#elif defined(__GNUC__) && (defined(__SSE2__) || defined(__ARM_NEON))
enum {{ GG_TALL = 3 }};
#define GG_VECTOR 16
#else
enum {{ GG_TALL = 1 }};
#endif
#ifdef __GNUC__
#define GG_INLINE static inline __attribute__((always_inline))
#else
#define GG_INLINE static inline
#endif
"""

_CBLAS = """\
#ifdef GG_USE_CBLAS
#include <cblas.h>
#ifdef _OPENMP /* the BLAS itself should have one thread */
#include <omp.h>
#define GG_THREADS omp_get_max_threads()
#else
#define GG_THREADS 1
#endif
#ifndef GG_BLAS_LEAST /* fewer multiplications cost less than a call of the BLAS */
#define GG_BLAS_LEAST 1000000
#endif
#endif
"""

_TILE = """\
#ifdef GG_VECTOR
typedef TYPE gg_lanes_KIND __attribute__((vector_size(GG_VECTOR), aligned(sizeof(TYPE)), may_alias));
#else
typedef TYPE gg_lanes_KIND;
#endif

/* C = A B, or C += A B, for at most GG_TALL rows of A and one strip of B. */
GG_INLINE void gg_tile_KIND(const int rows, bool adds, ptrdiff_t k, const TYPE *restrict a, ptrdiff_t a_row,
                            ptrdiff_t a_column, const TYPE *restrict strip, TYPE *restrict c, ptrdiff_t c_row)
{
    enum { PARTS = GG_STRIP / sizeof(gg_lanes_KIND), LANES = sizeof(gg_lanes_KIND) / sizeof(TYPE) };
    gg_lanes_KIND sums[GG_TALL][PARTS];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < PARTS; v++) {
            sums[r][v] = adds ? *(const gg_lanes_KIND *)(c + r * c_row + v * LANES) : (gg_lanes_KIND){0};
        }
    }
    for (; k > 0; k--, a += a_column, strip += GG_STRIP / sizeof(TYPE)) {
        for (int r = 0; r < rows; r++) {
            const TYPE x = a[r * a_row];
            for (int v = 0; v < PARTS; v++) {
                sums[r][v] += x * *(const gg_lanes_KIND *)(strip + v * LANES);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < PARTS; v++) {
            *(gg_lanes_KIND *)(c + r * c_row + v * LANES) = sums[r][v];
        }
    }
}

/* The same for any number of rows up to GG_TALL, and for a strip of which only some columns belong to C. */
static void gg_strip_KIND(int rows, ptrdiff_t columns, bool adds, ptrdiff_t k, const TYPE *restrict a, ptrdiff_t a_row,
                          ptrdiff_t a_column, const TYPE *restrict strip, TYPE *restrict c, ptrdiff_t c_row)
{
    enum { WHOLE = GG_STRIP / sizeof(TYPE) };
    TYPE edge[GG_TALL * WHOLE];
    TYPE *to = columns < WHOLE ? edge : c;
    const ptrdiff_t to_row = columns < WHOLE ? WHOLE : c_row;
    for (int r = 0; r < rows && to == edge && adds; r++) {
        memcpy(edge + r * WHOLE, c + r * c_row, (size_t)columns * sizeof *c);
    }
    switch (rows) {
#if GG_VECTOR == 32
    case 6: gg_tile_KIND(6, adds, k, a, a_row, a_column, strip, to, to_row); break;
    case 5: gg_tile_KIND(5, adds, k, a, a_row, a_column, strip, to, to_row); break;
    case 4: gg_tile_KIND(4, adds, k, a, a_row, a_column, strip, to, to_row); break;
#endif
#ifdef GG_VECTOR
    case 3: gg_tile_KIND(3, adds, k, a, a_row, a_column, strip, to, to_row); break;
    case 2: gg_tile_KIND(2, adds, k, a, a_row, a_column, strip, to, to_row); break;
#endif
    default: gg_tile_KIND(1, adds, k, a, a_row, a_column, strip, to, to_row);
    }
    for (int r = 0; r < rows && to == edge; r++) {
        memcpy(c + r * c_row, edge + r * WHOLE, (size_t)columns * sizeof *c);
    }
}
"""

_PACKED = """\
/* C = A B, or C += A B, for `rows` rows and n columns, of k terms: a strip stays in the cache while the rows pass. */
static void gg_block_KIND(bool adds, ptrdiff_t rows, ptrdiff_t n, ptrdiff_t k, const TYPE *restrict a, ptrdiff_t a_row,
                          ptrdiff_t a_column, const TYPE *restrict strips, TYPE *restrict c, ptrdiff_t c_row)
{
    const ptrdiff_t wide = GG_STRIP / (ptrdiff_t)sizeof(TYPE);
    for (ptrdiff_t j = 0; j < n; j += wide) {
        ptrdiff_t tile = 0;
        for (ptrdiff_t i = 0; i < rows; i += tile) {
            const ptrdiff_t tiles = (rows - i + GG_TALL - 1) / GG_TALL;
            tile = (rows - i + tiles - 1) / tiles;
            gg_strip_KIND((int)tile, n - j < wide ? n - j : wide, adds, k, a + i * a_row, a_row, a_column,
                          strips + j * (k + 1), c + i * c_row + j, c_row);
        }
    }
}

/* The same for all rows of A, in blocks that stay in the cache while the strips pass. Threads of a team share them. */
static void gg_strips_KIND(bool adds, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const TYPE *restrict a, ptrdiff_t a_row,
                           ptrdiff_t a_column, const TYPE *restrict strips, TYPE *restrict c, ptrdiff_t c_row)
{
    const ptrdiff_t blocks = (m + GG_ROWS - 1) / GG_ROWS, block = (m + blocks - 1) / blocks;
    GG_EACH(collapse(2))
    for (ptrdiff_t i = 0; i < m; i += block) {
        for (ptrdiff_t j = 0; j < n; j += GG_ACROSS) {
            gg_block_KIND(adds, m - i < block ? m - i : block, n - j < GG_ACROSS ? n - j : GG_ACROSS, k, a + i * a_row,
                          a_row, a_column, strips + j * (k + 1), c + i * c_row + j, c_row);
        }
    }
}

/* Copy columns of B, of k terms each, into one strip. A strip has room for one more row. */
static void gg_pack_strip_KIND(ptrdiff_t columns, ptrdiff_t k, const TYPE *restrict b, ptrdiff_t b_row,
                               ptrdiff_t b_column, TYPE *restrict strip)
{
    enum { WHOLE = GG_STRIP / sizeof(TYPE) };
    for (ptrdiff_t p = 0; p < k; p++, b += b_row, strip += WHOLE) {
        if (columns < WHOLE) {
            for (ptrdiff_t x = 0; x < columns; x++) {
                strip[x] = b[x * b_column];
            }
        } else if (b_column == 1) {
            memcpy(strip, b, GG_STRIP);
        } else {
            for (int x = 0; x < WHOLE; x++) {
                strip[x] = b[x * b_column];
            }
        }
    }
}

/* Copy n columns of B into strips. Threads of a team share the strips. */
static void gg_pack_KIND(ptrdiff_t n, ptrdiff_t k, const TYPE *restrict b, ptrdiff_t b_row, ptrdiff_t b_column,
                         TYPE *restrict strips)
{
    const ptrdiff_t wide = GG_STRIP / (ptrdiff_t)sizeof(TYPE);
    GG_EACH()
    for (ptrdiff_t j = 0; j < n; j += wide) {
        gg_pack_strip_KIND(n - j, k, b + j * b_column, b_row, b_column, strips + j * (k + 1));
    }
}
"""

_PRODUCT = """\
/* C = A B, or C += A B: m rows, n columns, k terms. Elements of a row of A are `a_column` apart, those of a column
   `a_row`; likewise for B; rows of C are `c_row` apart. `strips` is room for a block of B. Little work takes neither a
   team, since it may belong to one thread of a team, nor the BLAS, whose calls cost more. */
static void gg_product_KIND(bool adds, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const TYPE *restrict a, ptrdiff_t a_row,
                            ptrdiff_t a_column, const TYPE *restrict b, ptrdiff_t b_row, ptrdiff_t b_column,
                            TYPE *restrict c, ptrdiff_t c_row, TYPE *restrict strips)
{
#ifdef GG_USE_CBLAS
    if (m * n * k >= GG_BLAS_LEAST && (a_column == 1 || a_row == 1) && (b_column == 1 || b_row == 1)) {
        const ptrdiff_t lda = a_column == 1 ? (a_row > k ? a_row : k) : (a_column > m ? a_column : m);
        const ptrdiff_t ldb = b_column == 1 ? (b_row > n ? b_row : n) : (b_column > k ? b_column : k);
        const ptrdiff_t count = m > n ? m : n, each = (count - 1) / GG_THREADS + 1;
        GG_SHARED()
        for (ptrdiff_t first = 0; first < count; first += each) {
            const ptrdiff_t part = count - first < each ? count - first : each, row = m > n ? first : 0;
            cblas_BLASgemm(CblasRowMajor, a_column == 1 ? CblasNoTrans : CblasTrans,
                           b_column == 1 ? CblasNoTrans : CblasTrans, (int)(m > n ? part : m), (int)(m > n ? n : part),
                           (int)k, (TYPE)1, a + row * a_row, (int)lda, b + (first - row) * b_column, (int)ldb,
                           adds ? (TYPE)1 : (TYPE)0, c + row * c_row + (first - row), (int)c_row);
        }
        return;
    }
#endif
    const ptrdiff_t strip = GG_STRIP / (ptrdiff_t)sizeof(TYPE);
    if (m * n * k <= GG_ALONE) {
        for (ptrdiff_t p = 0; p < k; p += GG_DEEP) {
            const ptrdiff_t deep = k - p < GG_DEEP ? k - p : GG_DEEP;
            for (ptrdiff_t j = 0; j < n; j += strip) {
                const ptrdiff_t wide = n - j < strip ? n - j : strip;
                gg_pack_strip_KIND(wide, deep, b + p * b_row + j * b_column, b_row, b_column, strips);
                gg_block_KIND(adds || p > 0, m, wide, deep, a + p * a_column, a_row, a_column, strips, c + j, c_row);
            }
        }
        return;
    }
    GG_TEAM()
    for (ptrdiff_t p = 0; p < k; p += GG_DEEP) {
        const ptrdiff_t deep = k - p < GG_DEEP ? k - p : GG_DEEP;
        for (ptrdiff_t j = 0; j < n; j += GG_WIDE) {
            const ptrdiff_t wide = n - j < GG_WIDE ? n - j : GG_WIDE;
            gg_pack_KIND(wide, deep, b + p * b_row + j * b_column, b_row, b_column, strips);
            gg_strips_KIND(adds || p > 0, m, wide, deep, a + p * a_column, a_row, a_column, strips, c + j, c_row);
        }
    }
}
"""


def packed_functions(helpers: Helpers, kind: str) -> tuple[str, str]:
    """Return the names of the product with B in strips, and of the function that copies B into strips."""
    helpers.need("blocks", _SIZES)
    helpers.templated("gg_tile", _TILE, kind)
    helpers.templated("gg_strips", _PACKED, kind)
    return f"gg_strips_{kind}", f"gg_pack_{kind}"


def product_function(helpers: Helpers, kind: str) -> str:
    """Return the name of the product for an element kind."""
    helpers.need("cblas", _CBLAS)
    packed_functions(helpers, kind)
    return helpers.templated("gg_product", _PRODUCT.replace("BLASgemm", "sgemm" if kind == "f32" else "dgemm"), kind)


def strips_size(n: int, k: int) -> int:
    """Return the elements of n columns of k terms in strips."""
    return (k + 1) * -(-n // STRIP) * STRIP


def block_size(n: int, k: int) -> int:
    """Return the elements of the copy of a block of B."""
    return strips_size(min(n, WIDE), min(k, DEEP))


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
        across = b.strides[-1] if n != 1 else 1
        size = self.sizes.text
        outermost = next((axis for axis, extent in enumerate(batch) if extent > 1), 0)
        if batch and batch[outermost] >= PARTS and out.size * k > ALONE:
            self.parts = PARTS
        strips = self.own("strips", block_size(n, k))
        starts = [self.start(0), self.start(1), self.pointer(out)]
        counters = "ijklmn"[: len(batch)]
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
            f"{starts[2]}, {size(n)}, {strips}",
        ]
        body = [f"{function}({', '.join(arguments)});"]
        for axis in reversed(range(len(batch))):
            shares = self.shared if axis == outermost else self.each
            body = shares(counters[axis], batch[axis], body)
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
