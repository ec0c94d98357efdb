"""Convolutions in two dimensions, their transposes, and the transposes of pooling.

A convolution copies the windows of an image side by side, one image after the other, and multiplies them with the
weight; the transpose multiplies and adds the windows back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from glassgrad.compile.c.kernels.products import product_function
from glassgrad.compile.c.kernels.solid import Solid, loop
from glassgrad.compile.ir.graph import Instr, Var

_STRUCT = """\
/* where windows lie on an image: its channels and size, the size of a window, and the number of windows; the distance
   between windows, the border before the image, and the distance between elements of a window */
struct gg_windows {
    ptrdiff_t channels, high, wide, kernel_high, kernel_wide, out_high, out_wide;
    ptrdiff_t step_high, step_wide, top, left, apart_high, apart_wide;
};
"""

_INSIDE = """\
/* The windows [first, last) of a row whose element at `across` is inside of the image, not on its border. */
static void gg_inside(const struct gg_windows *s, ptrdiff_t across, ptrdiff_t *first, ptrdiff_t *last)
{
    const ptrdiff_t left = s->wide - across;
    const ptrdiff_t before = across < 0 ? (s->step_wide - 1 - across) / s->step_wide : 0;
    const ptrdiff_t until = left > 0 ? (left + s->step_wide - 1) / s->step_wide : 0;
    *last = until < s->out_wide ? until : s->out_wide;
    *first = before < *last ? before : *last;
}
"""

_COLUMNS = """\
/* Copy all windows of an image: element e of window w goes to columns[e * element + w * window], 0 on the border. */
static void gg_columns_KIND(const struct gg_windows *s, const TYPE *restrict image, TYPE *restrict columns,
                            ptrdiff_t element, ptrdiff_t window)
{
    ptrdiff_t e = 0;
    for (ptrdiff_t c = 0; c < s->channels; c++) {
        for (ptrdiff_t p = 0; p < s->kernel_high; p++) {
            for (ptrdiff_t q = 0; q < s->kernel_wide; q++, e++) {
                const ptrdiff_t across = q * s->apart_wide - s->left;
                ptrdiff_t first, last;
                gg_inside(s, across, &first, &last);
                for (ptrdiff_t y = 0; y < s->out_high; y++) {
                    const ptrdiff_t row = y * s->step_high + p * s->apart_high - s->top;
                    const bool border = row < 0 || row >= s->high;
                    const TYPE *restrict from = image + (border ? 0 : (c * s->high + row) * s->wide);
                    TYPE *restrict to = columns + e * element + y * s->out_wide * window;
                    const ptrdiff_t begin = border ? s->out_wide : first, end = border ? s->out_wide : last;
                    for (ptrdiff_t x = 0; x < begin; x++) {
                        to[x * window] = 0;
                    }
                    for (ptrdiff_t x = begin; x < end; x++) {
                        to[x * window] = from[x * s->step_wide + across];
                    }
                    for (ptrdiff_t x = end; x < s->out_wide; x++) {
                        to[x * window] = 0;
                    }
                }
            }
        }
    }
}
"""

_BACK = """\
/* Add windows back to an image: the transpose of gg_columns. */
static void gg_add_windows_KIND(const struct gg_windows *s, const TYPE *restrict columns, TYPE *restrict image)
{
    for (ptrdiff_t c = 0; c < s->channels; c++) {
        for (ptrdiff_t p = 0; p < s->kernel_high; p++) {
            for (ptrdiff_t q = 0; q < s->kernel_wide; q++) {
                const ptrdiff_t across = q * s->apart_wide - s->left;
                ptrdiff_t first, last;
                gg_inside(s, across, &first, &last);
                for (ptrdiff_t y = 0; y < s->out_high; y++, columns += s->out_wide) {
                    const ptrdiff_t row = y * s->step_high + p * s->apart_high - s->top;
                    if (row < 0 || row >= s->high) {
                        continue;
                    }
                    TYPE *restrict to = image + (c * s->high + row) * s->wide;
                    for (ptrdiff_t x = first; x < last; x++) {
                        to[x * s->step_wide + across] += columns[x];
                    }
                }
            }
        }
    }
}
"""

_SPREAD = """\
/* Give each window's value to the elements of the window, or only to the first that is the largest. */
static void gg_spread_KIND(const struct gg_windows *s, const TYPE *restrict given, const TYPE *restrict image,
                           const TYPE *restrict largest, TYPE *restrict result)
{
    for (ptrdiff_t y = 0; y < s->out_high; y++) {
        for (ptrdiff_t x = 0; x < s->out_wide; x++) {
            const ptrdiff_t window = y * s->out_wide + x;
            bool taken = false;
            for (ptrdiff_t e = 0; e < s->kernel_high * s->kernel_wide && !taken; e++) {
                const ptrdiff_t row = y * s->step_high + e / s->kernel_wide * s->apart_high - s->top;
                const ptrdiff_t column = x * s->step_wide + e % s->kernel_wide * s->apart_wide - s->left;
                if (row < 0 || row >= s->high || column < 0 || column >= s->wide) {
                    continue;
                }
                const ptrdiff_t at = row * s->wide + column;
                if (image == NULL || image[at] == largest[window] || image[at] != image[at]) {
                    result[at] += given[window];
                    taken = image != NULL;
                }
            }
        }
    }
}
"""


def _pairs(values: Sequence[int]) -> tuple[int, int]:
    return int(values[0]), int(values[1])


def _windows(instr: Instr, channels: int, size: tuple[int, int], kernel: tuple[int, int], out: tuple[int, int]) -> str:
    p = instr.params
    step, apart = _pairs(p["stride"]), _pairs(p["dilation"])
    (top, _), (left, _) = p["padding"]
    numbers = (channels, *size, *kernel, *out, *step, int(top), int(left), *apart)
    return f"static const struct gg_windows shape = {{{', '.join(map(str, numbers))}}};"


def _fits(instr: Instr) -> bool:
    """Tell whether all operands are floats of one dtype, none is empty, and no border is negative."""
    arrays = [one for one in (*instr.inputs, *instr.outputs) if isinstance(one, Var)]
    same = len(arrays) == len(instr.inputs) + 1 and all(one.dtype == arrays[0].dtype for one in arrays)
    floats = arrays[0].dtype.kind == "f" and arrays[0].dtype.itemsize >= 4
    return (
        same and floats and all(one.size for one in arrays) and min(min(pair) for pair in instr.params["padding"]) >= 0
    )


class ConvCode(Solid):
    """conv2d and its transposes."""

    @staticmethod
    def takes(instr: Instr) -> bool:
        return _fits(instr)

    def lines(self) -> list[str]:
        x, w, y = self._shapes()
        groups, size = self.instr.params["groups"], self.sizes.text
        channels, outputs = x[1] // groups, w[0] // groups
        kernel, out = (w[2], w[3]), (y[2], y[3])
        terms, places = channels * kernel[0] * kernel[1], out[0] * out[1]
        area = x[2] * x[3]
        self.helpers.need("gg_windows", _STRUCT)
        self.helpers.need("gg_inside", _INSIDE)
        group = f" + g * {size(terms * outputs)}" if groups > 1 else ""
        image = f" + {self._at(size(channels * area), groups)}"
        result = f" + {self._at(size(outputs * places), groups)}"
        columns = self.room("columns", self.kind, terms * places)
        sizes = (outputs, terms, places)
        body = {"conv2d": self._forward, "conv2d_input": self._input, "conv2d_weight": self._weight}[self.instr.op](
            (image, group, result), sizes, columns
        )
        inner = loop("g", groups, body) if groups > 1 else body
        shape = _windows(self.instr, channels, (x[2], x[3]), kernel, out)
        return [shape, *self._cleared(), *loop("n", size(x[0]), inner)]

    @staticmethod
    def _at(step: str, groups: int) -> str:
        return f"(n * {groups} + g) * ({step})" if groups > 1 else f"n * ({step})"

    def _shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        first, second = (one.shape for one in self.instr.reads())
        out = self.instr.output.shape
        return {
            "conv2d": (first, second, out),
            "conv2d_input": (out, second, first),
            "conv2d_weight": (first, out, second),
        }[self.instr.op]

    def _cleared(self) -> list[str]:
        out = self.instr.output
        if self.instr.op == "conv2d":
            return []
        name = self.pointer(out)
        return [f"memset({name}, 0, (size_t)({self.sizes.text(out.size)}) * sizeof *{name});"]

    def _call(self, adds: bool, sizes: tuple[int, int, int], a: str, b: str, c: str) -> str:
        m, n, k = (self.sizes.text(one) for one in sizes)
        name = product_function(self.helpers, self.kind)
        return f"{name}({'true' if adds else 'false'}, {m}, {n}, {k}, {a}, {b}, {c}, {n}, NULL);"

    def _columns(self, image: str, columns: str, steps: str) -> str:
        name = self.helpers.templated("gg_columns", _COLUMNS, self.kind)
        return f"{name}(&shape, {self.start(0)}{image}, {columns}, {steps});"

    def _forward(self, at: tuple[str, str, str], sizes: tuple[int, int, int], columns: str) -> list[str]:
        outputs, terms, places = sizes
        (image, group, result), size = at, self.sizes.text
        return [
            self._columns(image, columns, f"{size(places)}, 1"),
            self._call(
                False,
                (outputs, places, terms),
                f"{self.start(1)}{group}, {size(terms)}, 1",
                f"{columns}, {size(places)}, 1",
                f"{self.pointer(self.instr.output)}{result}",
            ),
        ]

    def _input(self, at: tuple[str, str, str], sizes: tuple[int, int, int], columns: str) -> list[str]:
        outputs, terms, places = sizes
        (image, group, result), size = at, self.sizes.text
        name = self.helpers.templated("gg_add_windows", _BACK, self.kind)
        return [
            self._call(
                False,
                (terms, places, outputs),
                f"{self.start(1)}{group}, 1, {size(terms)}",
                f"{self.start(0)}{result}, {size(places)}, 1",
                columns,
            ),
            f"{name}(&shape, {columns}, {self.pointer(self.instr.output)}{image});",
        ]

    def _weight(self, at: tuple[str, str, str], sizes: tuple[int, int, int], columns: str) -> list[str]:
        outputs, terms, places = sizes
        (image, group, result), size = at, self.sizes.text
        return [
            self._columns(image, columns, f"1, {size(terms)}"),
            self._call(
                True,
                (outputs, terms, places),
                f"{self.start(1)}{result}, {size(places)}, 1",
                f"{columns}, {size(terms)}, 1",
                f"{self.pointer(self.instr.output)}{group}",
            ),
        ]


class SpreadCode(Solid):
    """max_pool2d_scatter and sum_spread2d, one plane (image and channel) at a time."""

    @staticmethod
    def takes(instr: Instr) -> bool:
        return _fits(instr)

    def lines(self) -> list[str]:
        out, given = self.instr.output, self.operand(0)
        size, kernel = (out.shape[-2], out.shape[-1]), _pairs(self.instr.params["kernel"])
        counts = (given.shape[-2], given.shape[-1])
        planes = math.prod(out.shape[:-2])
        area, places = self.sizes.text(math.prod(size)), self.sizes.text(math.prod(counts))
        self.helpers.need("gg_windows", _STRUCT)
        name = self.helpers.templated("gg_spread", _SPREAD, self.kind)
        others = "NULL, NULL"
        if self.instr.op == "max_pool2d_scatter":
            others = f"{self.start(1)} + n * ({area}), {self.start(2)} + n * ({places})"
        target = self.pointer(out)
        call = f"{name}(&shape, {self.start(0)} + n * ({places}), {others}, {target} + n * ({area}));"
        return [
            _windows(self.instr, 1, size, kernel, counts),
            f"memset({target}, 0, (size_t)({self.sizes.text(out.size)}) * sizeof *{target});",
            *loop("n", self.sizes.text(planes), [call]),
        ]
