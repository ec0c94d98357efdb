"""Convolutions in two dimensions, their transposes, and the transposes of pooling.

An image is first copied between borders of zeros, one image after the other. A convolution copies its windows into the
strips of a product. The transpose for the image multiplies first and adds the windows back. The transpose for the
weight multiplies windows with the gradient and sums over images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from glassgrad.compile.c.kernels.parts import indented
from glassgrad.compile.c.kernels.products import STRIP, block_size, packed_functions, product_function, strips_size
from glassgrad.compile.c.kernels.solid import Solid, loop
from glassgrad.compile.c.words import TYPES
from glassgrad.compile.ir.graph import Instr, Var

_MOST_STRIPS = 1 << 16  # elements of the windows that are multiplied at once
_PARTS, _SHARED = 4, 10**7  # of the images, each with scratch memory of its own, from this many products on
_MOST_WRITTEN = 4  # elements of a window that are written out one by one

_STRUCT = """\
/* where windows lie on an image: its channels and size, the size of a window, the number of windows, the distance
   between windows and between elements of a window, the border before the image, the size with the border */
struct gg_windows {
    ptrdiff_t channels, high, wide, kernel_high, kernel_wide, out_high, out_wide;
    ptrdiff_t step_high, step_wide, apart_high, apart_wide, top, left, all_high, all_wide;
};
"""

_BORDER = """\
/* Copy an image into its border, which keeps its zeros. */
static void gg_border_KIND(const struct gg_windows *s, const TYPE *restrict image, TYPE *restrict bordered)
{
    for (ptrdiff_t c = 0; c < s->channels; c++) {
        for (ptrdiff_t y = 0; y < s->high; y++, image += s->wide) {
            memcpy(bordered + (c * s->all_high + y + s->top) * s->all_wide + s->left, image,
                   (size_t)s->wide * sizeof *image);
        }
    }
}
"""

_WINDOWS = """\
/* Copy windows [first, first + count) into the strips of a product: a row of a strip has one element of each of its
   windows. Windows of one row of the image are copied as a run of a whole row of the strip; what the run has too much,
   the next one overwrites. */
static void gg_windows_KIND(const struct gg_windows *s, const TYPE *restrict image, ptrdiff_t first, ptrdiff_t count,
                            TYPE *restrict strips)
{
    enum { WHOLE = GG_STRIP / sizeof(TYPE) };
    const ptrdiff_t terms = s->channels * s->kernel_high * s->kernel_wide;
    GG_SHARED(if (count * terms > 100000))
    for (ptrdiff_t w = 0; w < count; w += WHOLE) {
        ptrdiff_t from[WHOLE], at[WHOLE], runs = 0;
        for (ptrdiff_t x = w; x < count && x < w + WHOLE; runs++) {
            const ptrdiff_t y = (first + x) / s->out_wide, across = (first + x) % s->out_wide;
            from[runs] = y * s->step_high * s->all_wide + across * s->step_wide;
            at[runs] = x - w;
            x += s->out_wide - across;
        }
        TYPE *restrict to = strips + w * (terms + 1);
        for (ptrdiff_t c = 0; c < s->channels; c++) {
            for (ptrdiff_t p = 0; p < s->kernel_high; p++) {
                for (ptrdiff_t q = 0; q < s->kernel_wide; q++, to += WHOLE) {
                    const ptrdiff_t row = (c * s->all_high + p * s->apart_high) * s->all_wide;
                    const TYPE *element = image + row + q * s->apart_wide;
                    for (ptrdiff_t r = 0; r < runs; r++) {
                        const TYPE *run = element + from[r];
                        if (s->step_wide == 1) {
                            memcpy(to + at[r], run, GG_STRIP);
                        } else {
                            for (int x = 0; x < WHOLE; x++) {
                                to[at[r] + x] = run[x * s->step_wide];
                            }
                        }
                    }
                }
            }
        }
    }
}
"""

_COLUMNS = """\
/* Copy all windows of an image, or add them back to it: element e of window w is columns[e * windows + w]. */
static void gg_columns_KIND(const struct gg_windows *s, TYPE *restrict bordered, TYPE *restrict columns, bool back)
{
    for (ptrdiff_t e = 0; e < s->channels * s->kernel_high * s->kernel_wide; e++) {
        const ptrdiff_t c = e / s->kernel_wide / s->kernel_high, p = e / s->kernel_wide % s->kernel_high;
        for (ptrdiff_t y = 0; y < s->out_high; y++, columns += s->out_wide) {
            const ptrdiff_t row = c * s->all_high + y * s->step_high + p * s->apart_high;
            TYPE *restrict first = bordered + row * s->all_wide + e % s->kernel_wide * s->apart_wide;
            for (ptrdiff_t x = 0; x < s->out_wide && back; x++) {
                first[x * s->step_wide] += columns[x];
            }
            for (ptrdiff_t x = 0; x < s->out_wide && !back; x++) {
                columns[x] = first[x * s->step_wide];
            }
        }
    }
}
"""

_INSIDE = """\
/* Copy an image out of its border, and clear all. */
static void gg_from_border_KIND(const struct gg_windows *s, TYPE *restrict bordered, TYPE *restrict image)
{
    for (ptrdiff_t c = 0; c < s->channels; c++) {
        for (ptrdiff_t y = 0; y < s->high; y++, image += s->wide) {
            memcpy(image, bordered + (c * s->all_high + y + s->top) * s->all_wide + s->left,
                   (size_t)s->wide * sizeof *image);
        }
    }
    memset(bordered, 0, (size_t)(s->channels * s->all_high * s->all_wide) * sizeof *bordered);
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


def _shape(*numbers: int) -> str:
    return f"static const struct gg_windows shape = {{{', '.join(map(str, numbers))}}};"


def _fits(instr: Instr) -> bool:
    """Tell whether all operands are floats of one dtype, none is empty, and no border is negative."""
    arrays = [one for one in (*instr.inputs, *instr.outputs) if isinstance(one, Var)]
    same = len(arrays) == len(instr.inputs) + 1 and all(one.dtype == arrays[0].dtype for one in arrays)
    floats = arrays[0].dtype.kind == "f" and arrays[0].dtype.itemsize >= 4
    return same and floats and all(one.size for one in arrays) and min(map(min, instr.params["padding"])) >= 0


class ConvCode(Solid):
    """conv2d and its transposes: x is the image, w the weight and y the result, or their gradients."""

    @staticmethod
    def takes(instr: Instr) -> bool:
        return _fits(instr)

    def sized(self) -> None:
        """Note the sizes, and how many parts of the images threads may take."""
        (first, second), out = (one.shape for one in self.instr.reads()), self.instr.output.shape
        self.x, self.w, self.y = {
            "conv2d": (first, second, out),
            "conv2d_input": (out, second, first),
            "conv2d_weight": (first, out, second),
        }[self.instr.op]
        self.groups = self.instr.params["groups"]
        self.channels, self.outputs = self.x[1] // self.groups, self.w[0] // self.groups
        self.terms, self.places = self.channels * self.w[2] * self.w[3], self.y[2] * self.y[3]
        products = self.x[0] * self.groups * self.outputs * self.terms * self.places
        self.parts = min(_PARTS, self.x[0]) if products > _SHARED else 1

    def lines(self) -> list[str]:
        """Return the body: the shape of the windows, then a loop over images and groups."""
        self.sized()
        body = {"conv2d": self._forward, "conv2d_input": self._input, "conv2d_weight": self._weight}[self.instr.op]
        return [*self._bordered(), *body()]

    # --- parts ---

    def _bordered(self) -> list[str]:
        """Return the lines that name the shape of an image with its border, and clear room for it."""
        p = self.instr.params
        step, apart, before = _pairs(p["stride"]), _pairs(p["dilation"]), [first for first, _ in p["padding"]]
        sides = zip(self.x[2:], self.y[2:], self.w[2:], before, step, apart, strict=True)
        high, wide = (
            max(first + size, (count - 1) * far + (taps - 1) * gap + 1) for size, count, taps, first, far, gap in sides
        )
        self.helpers.need("gg_windows", _STRUCT)
        elements = self.channels * high * wide
        self.bordered = self.own("bordered", elements + STRIP * step[1])
        shape = _shape(self.channels, *self.x[2:], *self.w[2:], *self.y[2:], *step, *apart, *before, high, wide)
        return [shape, f"memset(bordered, 0, {self.rooms[-1].elements} * sizeof *bordered);"]

    def own(self, name: str, elements: int) -> str:
        """Ask for scratch memory for each part; return its address in a part."""
        apart = -(-elements // STRIP) * STRIP
        self.room(name, self.kind, self.parts * apart)
        return f"{name} + part * {apart}" if self.parts > 1 else name

    def shared(self, counter: str, count: int, step: int, body: list[str]) -> list[str]:
        """Return a loop in steps. Threads share its parts: the same whatever the number of threads."""
        first, each = (f"part * {step}" if step > 1 else "part", self.parts * step) if self.parts > 1 else ("0", step)
        head = f"for (ptrdiff_t {counter} = {first}; {counter} < {self.sizes.text(count)}; {counter} += {each}) {{"
        lines = [head, *indented(body), "}"]
        return ["GG_SHARED()", *loop("part", self.parts, lines)] if self.parts > 1 else lines

    def summed(self, name: str, elements: int) -> list[str]:
        """Return the loop that adds the sums of all parts to the first."""
        apart = -(-elements // STRIP) * STRIP
        terms = " + ".join(f"{name}[i + {part * apart}]" for part in range(1, self.parts))
        return loop("i", elements, [f"{name}[i] += {terms};"]) if terms else []

    def _each(self, body: list[str]) -> list[str]:
        return self.shared("n", self.x[0], 1, loop("g", self.groups, body) if self.groups > 1 else body)

    def _of_image(self, start: str, elements: int) -> str:
        number = f"(n * {self.groups} + g)" if self.groups > 1 else "n"
        return f"{start} + {number} * ({self.sizes.text(elements)})"

    def _of_group(self, start: str) -> str:
        return f"{start} + g * {self.sizes.text(self.terms * self.outputs)}" if self.groups > 1 else start

    def _call(self, name: str, text: str, *arguments: str) -> str:
        return f"{self.helpers.templated(name, text, self.kind)}(&shape, {', '.join(arguments)});"

    def _image(self, start: str) -> str:
        return self._of_image(start, self.channels * self.x[2] * self.x[3])

    def _product(self, adds: str, sizes: tuple[int, int, int], a: str, b: str, c: str) -> str:
        m, n, k = (self.sizes.text(one) for one in sizes)
        strips = self.own("strips", block_size(*sizes[1:]))
        name = product_function(self.helpers, self.kind)
        return f"{name}({adds}, {m}, {n}, {k}, {a}, {b}, {c}, {n}, {strips});"

    # --- bodies ---

    def _forward(self) -> list[str]:
        """Return the product of the weight and the windows of each image, some windows at a time."""
        size = self.sizes.text
        count = min(max(_MOST_STRIPS // self.terms // STRIP, 1) * STRIP, self.places)
        strips = self.own("strips", strips_size(count, self.terms) + STRIP)
        product, _ = packed_functions(self.helpers, self.kind)
        result = f"{self._of_image(self.pointer(self.instr.output), self.outputs * self.places)} + first"
        rows, width = size(self.outputs), size(self.places)
        weight = f"{self._of_group(self.start(1))}, {size(self.terms)}, 1"
        body = [
            f"const ptrdiff_t left = {width} - first, count = left < {count} ? left : {count};",
            self._call("gg_windows", _WINDOWS, self.bordered, "first", "count", strips),
            f"{product}(false, {rows}, count, {size(self.terms)}, {weight}, {strips}, {result}, {width});",
        ]
        head = f"for (ptrdiff_t first = 0; first < {width}; first += {count}) {{"
        copy = self._call("gg_border", _BORDER, self._image(self.start(0)), self.bordered)
        return self._each([copy, head, *indented(body), "}"])

    def _input(self) -> list[str]:
        """Return the product for the gradients of all windows, which are then added to the image."""
        size, target = self.sizes.text, self._image(self.pointer(self.instr.output))
        columns = self.own("columns", self.terms * self.places)
        weight = f"{self._of_group(self.start(1))}, 1, {size(self.terms)}"
        gradient = f"{self._of_image(self.start(0), self.outputs * self.places)}, {size(self.places)}, 1"
        return self._each(
            [
                self._product("false", (self.terms, self.places, self.outputs), weight, gradient, columns),
                self._call("gg_columns", _COLUMNS, self.bordered, columns, "true"),
                self._call("gg_from_border", _INSIDE, self.bordered, target),
            ]
        )

    def _weight(self) -> list[str]:
        """Return the product of windows and gradient, summed over images, and its transpose."""
        size = self.sizes.text
        columns = self.own("columns", self.terms * self.places)
        total = self.own("total", self.groups * self.terms * self.outputs)
        gradient = f"{self._of_image(self.start(1), self.outputs * self.places)}, 1, {size(self.places)}"
        sizes = (self.terms, self.outputs, self.places)
        body = [
            self._call("gg_border", _BORDER, self._image(self.start(0)), self.bordered),
            self._call("gg_columns", _COLUMNS, self.bordered, columns, "false"),
            self._product(f"n >= {self.parts}", sizes, f"{columns}, {size(self.places)}, 1", gradient, self._of_group(total)),
        ]
        to = self._of_group(self.pointer(self.instr.output))
        turn = [f"({to})[o * {size(self.terms)} + e] = ({self._of_group('total')})[e * {size(self.outputs)} + o];"]
        turned = loop("o", size(self.outputs), loop("e", size(self.terms), turn))
        sums = self.summed("total", self.groups * self.terms * self.outputs)
        return [*self._each(body), *sums, *(loop("g", self.groups, turned) if self.groups > 1 else turned)]


class SpreadCode(Solid):
    """max_pool2d_scatter and sum_spread2d, one plane (image and channel) at a time."""

    @staticmethod
    def takes(instr: Instr) -> bool:
        return _fits(instr)

    def lines(self) -> list[str]:
        """Return the body; windows side by side, which cover the image, need no sums."""
        out, params = self.instr.output, self.instr.params
        size, counts = (out.shape[-2], out.shape[-1]), self.operand(0).shape[-2:]
        kernel, step, apart = (_pairs(params[name]) for name in ("kernel", "stride", "dilation"))
        (top, _), (left, _) = params["padding"]
        side_by_side = step == kernel and apart == (1, 1) and (top, left) == (0, 0)
        covered = all(one == count * tap for one, count, tap in zip(size, counts, kernel, strict=True))
        planes = math.prod(out.shape[:-2])
        if side_by_side and covered and math.prod(kernel) <= _MOST_WRITTEN:
            return self._side_by_side(planes, counts, kernel)
        area, places = self.sizes.text(math.prod(size)), self.sizes.text(math.prod(counts))
        self.helpers.need("gg_windows", _STRUCT)
        name = self.helpers.templated("gg_spread", _SPREAD, self.kind)
        others = "NULL, NULL"
        if self.instr.op == "max_pool2d_scatter":
            others = f"{self.start(1)} + n * ({area}), {self.start(2)} + n * ({places})"
        target = self.pointer(out)
        given = f"{self.start(0)} + n * ({places})"
        clear = f"memset({target}, 0, (size_t)({self.sizes.text(out.size)}) * sizeof *{target});"
        body = [f"{name}(&shape, {given}, {others}, {target} + n * ({area}));"]
        return [
            _shape(1, *size, *kernel, *counts, *step, *apart, top, left, 0, 0),
            clear,
            *loop("n", self.sizes.text(planes), body),
        ]

    def _side_by_side(self, planes: int, counts: tuple[int, ...], kernel: tuple[int, int]) -> list[str]:
        """Return loops over windows, each of which writes all of its elements."""
        (high, wide), of = counts, TYPES[self.kind]
        first = f"i * {kernel[0] * wide * kernel[1]} + j * {kernel[1]}"
        body, target = [f"const {of} given = ({self.start(0)})[i * {wide} + j];"], self.pointer(self.instr.output)
        chosen = self.instr.op == "max_pool2d_scatter"
        if chosen:
            body += [f"const {of} largest = ({self.start(2)})[i * {wide} + j];", "bool left = true;"]
        for number in range(math.prod(kernel)):
            at = f"{first} + {number // kernel[1] * wide * kernel[1] + number % kernel[1]}"
            if chosen:
                body += [
                    f"const {of} x{number} = ({self.start(1)})[{at}];",
                    f"const bool is{number} = left & ((x{number} == largest) | (x{number} != x{number}));",
                    f"left = left & !is{number};",
                ]
            body.append(f"{target}[{at}] = {f'is{number} ? given : 0' if chosen else 'given'};")
        return ["GG_SHARED()", *loop("i", self.sizes.text(planes * high), loop("j", self.sizes.text(wide), body))]
