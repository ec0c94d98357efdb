"""Convolutions in two dimensions, their transposes, and the transposes of pooling.

A convolution copies windows into columns, some rows of windows at a time, and multiplies them by the weight. The
transpose for the image multiplies first and adds the columns back. The transpose for the weight multiplies columns
with the gradient and sums over images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from glassgrad.compile.c.kernels.parts import indented, rounded
from glassgrad.compile.c.kernels.products import block_size, product_function
from glassgrad.compile.c.kernels.solid import PARTS, Solid, loop
from glassgrad.compile.c.words import TYPES
from glassgrad.compile.ir.graph import Instr, Var

_MOST_COLUMNS = 1 << 16  # elements of the windows that are multiplied at once
_SHARED = 10**7  # multiplications from which on images have parts, each with scratch memory of its own
_MOST_WRITTEN = 4  # elements of a window that are written out one by one

_STRUCT = """\
/* where windows lie on an image: its channels and size, the size of a window, the number of windows, the distance
   between windows and between elements of a window, the border before the image */
struct gg_windows {
    ptrdiff_t channels, high, wide, kernel_high, kernel_wide, out_high, out_wide;
    ptrdiff_t step_high, step_wide, apart_high, apart_wide, top, left;
};
"""

_COLUMNS = """\
/* WHAT: element e of window w is columns[e * windows + w]. Windows are those of rows [first, last);
   from `low` to `high` they have this element inside of the image. */
static void NAME_KIND(const struct gg_windows *s, IMAGE *restrict image, ptrdiff_t first, ptrdiff_t last,
                      COLUMNS *restrict columns)
{
    for (ptrdiff_t e = 0; e < s->channels * s->kernel_high * s->kernel_wide; e++) {
        const ptrdiff_t c = e / s->kernel_wide / s->kernel_high;
        const ptrdiff_t down = e / s->kernel_wide % s->kernel_high * s->apart_high - s->top;
        const ptrdiff_t along = e % s->kernel_wide * s->apart_wide - s->left;
        ptrdiff_t low = 0, high = s->out_wide;
        for (; low < high && along + low * s->step_wide < 0; low++) {
        }
        for (; low < high && along + (high - 1) * s->step_wide >= s->wide; high--) {
        }
        for (ptrdiff_t y = first; y < last; y++, columns += s->out_wide) {
            const ptrdiff_t row = y * s->step_high + down, at = (c * s->high + row) * s->wide + along;
CLEAR            for (ptrdiff_t x = low; x < high && row >= 0 && row < s->high; x++) {
                MOVE
            }
        }
    }
}
"""

# name -> what stands for these words of the text
_WORDS = ("WHAT", "IMAGE", "COLUMNS", "CLEAR", "MOVE")
_CLEAR = "            memset(columns, 0, (size_t)s->out_wide * sizeof *columns);\n"
_COPY, _ADD = "columns[x] = image[at + x * s->step_wide];", "image[at + x * s->step_wide] += columns[x];"
_MOVES = {
    "gg_columns": ("Copy windows", "const TYPE", "TYPE", _CLEAR, _COPY),
    "gg_add_columns": ("Add windows to an image", "TYPE", "const TYPE", "", _ADD),
}

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
        self.parts = min(PARTS, self.x[0]) if products > _SHARED else 1

    def lines(self) -> list[str]:
        """Return the body: the shape of the windows, then a loop over images and groups."""
        self.sized()
        (first, _), (left, _) = (params := self.instr.params)["padding"]
        steps = *_pairs(params["stride"]), *_pairs(params["dilation"])
        self.helpers.need("gg_windows", _STRUCT)
        shape = _shape(self.channels, *self.x[2:], *self.w[2:], *self.y[2:], *steps, first, left)
        self.rows = min(max(_MOST_COLUMNS // (self.terms * self.y[3]), 1), self.y[2])
        self.windows = f"(last - first) * {self.y[3]}"
        body = {"conv2d": self._forward, "conv2d_input": self._input, "conv2d_weight": self._weight}[self.instr.op]
        return [shape, *body(self.own("columns", self.terms * self.rows * self.y[3]))]

    # --- parts ---

    def summed(self, name: str, elements: int, to: str) -> list[str]:
        """Return the loop that adds the sums of all parts, if there are several."""
        apart = rounded(elements, self.kind)
        terms = " + ".join(f"{name}[i + {part * apart}]" for part in range(self.parts))
        return loop("i", elements, [f"{to}[i] = {terms};"]) if self.parts > 1 else []

    def _each(self, body: list[str]) -> list[str]:
        """Return the loops over images, groups and some rows of windows at a time."""
        high = self.sizes.text(self.y[2])
        head = f"for (ptrdiff_t first = 0; first < {high}; first += {self.rows}) {{"
        last = f"const ptrdiff_t last = first + {self.rows} < {high} ? first + {self.rows} : {high};"
        lines = [head, *indented([last, *body]), "}"]
        return self.shared("n", self.x[0], loop("g", self.groups, lines) if self.groups > 1 else lines)

    def _of_image(self, start: str, elements: int) -> str:
        number = f"(n * {self.groups} + g)" if self.groups > 1 else "n"
        return f"{start} + {number} * ({self.sizes.text(elements)})"

    def _image(self, start: str) -> str:
        return self._of_image(start, self.channels * self.x[2] * self.x[3])

    def _result(self, start: str) -> str:
        return f"{self._of_image(start, self.outputs * self.places)} + first * {self.sizes.text(self.y[3])}"

    def _weights(self, start: str) -> str:
        return f"{start} + g * ({self.sizes.text(self.terms * self.outputs)})" if self.groups > 1 else start

    def _move(self, name: str, image: str, columns: str) -> str:
        """Return the call that moves rows of windows between an image and columns."""
        text = _COLUMNS.replace("NAME", name)
        for word, now in zip(_WORDS, _MOVES[name], strict=True):
            text = text.replace(word, now)
        return f"{self.helpers.templated(name, text, self.kind)}(&shape, {image}, first, last, {columns});"

    def _product(self, adds: str, sizes: tuple[int | str, int | str, int | str], *operands: str) -> str:
        m, n, k = (one if isinstance(one, str) else self.sizes.text(one) for one in sizes)
        most = (self.rows * self.y[3] if isinstance(one, str) else one for one in sizes[1:])
        strips = self.own("strips", block_size(*most))
        return f"{product_function(self.helpers, self.kind)}({adds}, {m}, {n}, {k}, {', '.join(operands)}, {strips});"

    # --- bodies ---

    def _forward(self, columns: str) -> list[str]:
        """Return the product of the weight and the windows of each image."""
        weight = f"{self._weights(self.start(1))}, {self.sizes.text(self.terms)}, 1"
        windows, result = f"{columns}, {self.windows}, 1", f"{self._result(self.pointer(self.instr.output))}"
        sizes = (self.outputs, self.windows, self.terms)
        product = self._product("false", sizes, weight, windows, f"{result}, {self.sizes.text(self.places)}")
        return self._each([self._move("gg_columns", self._image(self.start(0)), columns), product])

    def _input(self, columns: str) -> list[str]:
        """Return the product for the gradients of all windows, which are then added to the image."""
        target, size = self.pointer(self.instr.output), self.sizes.text
        weight = f"{self._weights(self.start(1))}, 1, {size(self.terms)}"
        gradient = f"{self._result(self.start(0))}, {size(self.places)}, 1"
        sizes = (self.terms, self.windows, self.outputs)
        product = self._product("false", sizes, weight, gradient, f"{columns}, {self.windows}")
        clear = f"memset({target}, 0, (size_t)({size(math.prod(self.x))}) * sizeof *{target});"
        return [clear, *self._each([product, self._move("gg_add_columns", self._image(target), columns)])]

    def _weight(self, columns: str) -> list[str]:
        """Return the product of gradient and windows, summed over images."""
        out, elements = self.pointer(self.instr.output), math.prod(self.w)
        total = self.own("total", elements) if self.parts > 1 else out
        gradient = f"{self._result(self.start(1))}, {self.sizes.text(self.places)}, 1"
        windows = f"{columns}, 1, {self.windows}"
        sizes, to = (self.outputs, self.terms, self.windows), f"{self._weights(total)}, {self.sizes.text(self.terms)}"
        product = self._product(f"n >= {self.parts} || first > 0", sizes, gradient, windows, to)
        body = [self._move("gg_columns", self._image(self.start(0)), columns), product]
        return [*self._each(body), *self.summed("total", elements, out)]


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
            _shape(1, *size, *kernel, *counts, *step, *apart, top, left),
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
            body += [f"const {of} largest = ({self.start(2)})[i * {wide} + j];", f"{of} left = given;"]
        for number in range(math.prod(kernel)):
            at = f"{first} + {number // kernel[1] * wide * kernel[1] + number % kernel[1]}"
            if chosen:
                body += [
                    f"const {of} x{number} = ({self.start(1)})[{at}];",
                    f"const bool is{number} = (x{number} == largest) | (x{number} != x{number});",
                    f"{target}[{at}] = is{number} ? left : 0;",
                    f"left = is{number} ? 0 : left;",
                ]
            else:
                body.append(f"{target}[{at}] = given;")
        windows = ["GG_SIMD_LOOP", *loop("j", self.sizes.text(wide), body)]
        return ["GG_SHARED()", *loop("i", self.sizes.text(planes * high), windows)]
