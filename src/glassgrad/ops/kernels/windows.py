"""Windows of images, gathered block by block into matrices for BLAS; shared by all convolutions.

Callers see (N, C, H, W). Inside, channels are innermost, so that a window is a few long runs of memory. A block is a
few samples: it is transposed, padded, gathered and multiplied while it is in the cache, in buffers that the next
block reuses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from glassgrad.ops.core import Array

Shape = tuple[int, ...]
Pair = tuple[int, int]
Pads = tuple[Pair, Pair]

# Window elements gathered at a time: half a MB of float32, which stays in the cache for the product.
BLOCK = 1 << 17


class Plan(NamedTuple):
    """Where windows lie on an image: of a pool, or of a convolution from x (N, C, *size) to y (N, O, *out)."""

    size: Pair
    kernel: Pair
    out: Pair
    stride: Pair
    padding: Pads
    dilation: Pair
    groups: int = 1

    @property
    def full(self) -> Pair:
        """The size that windows read: the image, its border, and any overhang at the end."""
        (height, width), (top, bottom), (left, right) = self.size, *self.padding
        rows = (self.out[0] - 1) * self.stride[0] + self.dilation[0] * (self.kernel[0] - 1) + 1
        columns = (self.out[1] - 1) * self.stride[1] + self.dilation[1] * (self.kernel[1] - 1) + 1
        return max(height + top + bottom, rows), max(width + left + right, columns)

    @property
    def tiles(self) -> bool:
        """Whether the windows tile the input without overlap or border."""
        return self.stride == self.kernel and self.dilation == (1, 1) and self.full == self.size

    @property
    def taps(self) -> list[Pair]:
        """The positions in the kernel, row by row."""
        return [(i, j) for i in range(self.kernel[0]) for j in range(self.kernel[1])]

    def reach(self, axis: int) -> int:
        """How far a window reaches along an axis."""
        return self.dilation[axis] * (self.kernel[axis] - 1) + 1

    def at(self, full: Array, tap: Pair, *behind: int | slice) -> Array:
        """The element `tap` of every window, a strided view of `full` (..., H, W); `behind` indexes trailing axes."""
        row, column = tap[0] * self.dilation[0], tap[1] * self.dilation[1]
        rows = slice(row, row + self.out[0] * self.stride[0], self.stride[0])  # the end is clipped to the array
        columns = slice(column, column + self.out[1] * self.stride[1], self.stride[1])
        return full[(..., rows, columns, *behind)]

    def inside(self, axis: int, tap: int) -> tuple[int, int]:
        """The windows along an axis whose element `tap` lies in the image, not in its border: first and end."""
        shift, step = tap * self.dilation[axis] - self.padding[axis][0], self.stride[axis]
        first = min(self.out[axis], max(0, -(shift // step)))  # shift + step * first >= 0
        return first, min(self.out[axis], max(first, -((shift - self.size[axis]) // step)))

    def inner(self, full: Array) -> Array:
        """The image inside its border."""
        (top, _), (left, _) = self.padding
        return full[..., top : top + self.size[0], left : left + self.size[1]]


ALL = slice(None)
"""For `Plan.at` where channels follow height and width."""


def out_size(size: int, kernel: int, stride: int, pad: Pair, dilation: int, ceil: bool = False) -> int:
    """Number of window positions along one axis."""
    span = size + pad[0] + pad[1] - dilation * (kernel - 1) - 1
    if not ceil:
        return span // stride + 1
    count = -(-span // stride) + 1
    # A window may hang over the end, but has to begin inside the input or its left border.
    return count - 1 if (count - 1) * stride >= size + pad[0] else count


def plan_of(size: Shape, kernel: Shape, stride: Pair, padding: Pads, dilation: Pair, groups: int) -> Plan:
    """Compute the sizes; raise `ValueError` if the kernel does not fit."""
    out = tuple(out_size(size[a], kernel[a], stride[a], padding[a], dilation[a]) for a in (0, 1))
    if min(out) < 0 or (min(out) == 0 and min(size) > 0):
        raise ValueError(
            f"the kernel {kernel[0]}x{kernel[1]} (dilation {dilation}) is larger than the input "
            f"{size[0]}x{size[1]} with its padding {padding}"
        )
    return Plan((size[0], size[1]), (kernel[0], kernel[1]), (out[0], out[1]), stride, padding, dilation, groups)


def blocks(first: int, last: int, per_sample: int) -> list[Pair]:
    """Cut the samples from `first` to `last` into blocks (start, stop) of about BLOCK elements."""
    step = max(1, BLOCK // max(1, per_sample))
    return [(start, min(start + step, last)) for start in range(first, last, step)]


class Images:
    """Blocks of (N, C, H, W) as (n, H, W, C) with the border of a plan (negative widths crop).

    A block is a view of the input if the layout matches. Otherwise it is a view of a buffer that the next block
    overwrites.
    """

    def __init__(self, xp: Any, x: Array, padding: Pads) -> None:
        (top, bottom), (left, right) = padding
        _, _, h, w = x.shape
        self.xp = xp
        self.source = x.transpose(0, 2, 3, 1)[:, max(-top, 0) : h - max(-bottom, 0), max(-left, 0) : w - max(-right, 0)]
        self.inner = (
            slice(None),
            slice(max(top, 0), max(top, 0) + self.source.shape[1]),
            slice(max(left, 0), max(left, 0) + self.source.shape[2]),
        )
        self.shape = (h + top + bottom, w + left + right, x.shape[1])
        self.direct = tuple(self.source.shape[1:]) == self.shape and bool(self.source.flags.c_contiguous)
        self.buffer: Array = None

    def __call__(self, start: int, stop: int) -> Array:
        if self.direct:
            return self.source[start:stop]
        count = stop - start
        if self.buffer is None or len(self.buffer) < count:
            # The border stays 0 from block to block.
            self.buffer = self.xp.zeros((count, *self.shape), self.source.dtype)
        image = self.buffer[:count]
        image[self.inner] = self.source[start:stop]
        return image


class Gatherer:
    """The windows of a block of images as a matrix: (rows, kh kw C), with groups (G, rows, kh kw C/G)."""

    def __init__(self, xp: Any, x: Array, plan: Plan) -> None:
        self.xp = xp
        self.plan = plan
        self.images = Images(xp, x, plan.padding)
        (_, ow), (kh, kw), c = plan.out, plan.kernel, x.shape[1]
        if plan.groups > 1:
            self.order: Shape = (5, 0, 1, 2, 3, 4, 6)
        elif kw * c < min(16, ow):
            # With few channels, runs along the rows of the image are longer than those within a window.
            self.order = (3, 4, 5, 6, 0, 1, 2)
        else:
            self.order = (0, 1, 2, 3, 4, 5, 6)
        self.in_place = kh == kw == 1 and plan.groups == 1 and plan.stride == (1, 1)
        self.buffer: Array = None

    def __call__(self, start: int, stop: int) -> Array:
        image = self.images(start, stop)
        groups, c = self.plan.groups, image.shape[3]
        rows, width = (stop - start) * self.plan.out[0] * self.plan.out[1], self._area() * (c // groups)
        if self.in_place:
            return image.reshape(rows, width)
        source = self._windows(image).transpose(self.order)
        if self.buffer is None or self.buffer.shape != source.shape:
            self.buffer = self.xp.empty(source.shape, source.dtype)
        self.buffer[...] = source
        if groups > 1:
            return self.buffer.reshape(groups, rows, width)
        return self.buffer.reshape(rows, width) if self.order[0] == 0 else self.buffer.reshape(width, rows).T

    def _area(self) -> int:
        return self.plan.kernel[0] * self.plan.kernel[1]

    def _windows(self, image: Array) -> Array:
        """All windows as a view (n, oh, ow, kh, kw, G, C/G)."""
        plan = self.plan
        n, _, _, c = image.shape
        sn, sh, sw, sc = image.strides
        each = c // plan.groups
        rows, columns = sh * plan.stride[0], sw * plan.stride[1]
        down, across = sh * plan.dilation[0], sw * plan.dilation[1]
        strides = (sn, rows, columns, down, across, sc * each, sc)
        shape = (n, *plan.out, *plan.kernel, plan.groups, each)
        return self.xp.lib.stride_tricks.as_strided(image, shape, strides)
