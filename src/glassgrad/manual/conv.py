"""Conv2d and MaxPool2d: windows of an image, gathered and added back without a loop over pixels."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import DTypeLike

from glassgrad import errors
from glassgrad.manual.protocols import Array, Module, uniform

Pair = tuple[int, int]


def _pair(size: int | Pair) -> Pair:
    return (size, size) if isinstance(size, int) else size


def _pad(x: Array, padding: Pair, fill: float = 0.0) -> Array:
    high, wide = padding
    if not high and not wide:
        return x
    return np.pad(x, ((0, 0), (0, 0), (high, high), (wide, wide)), constant_values=fill)


def _crop(x: Array, padding: Pair) -> Array:
    (high, wide), (rows, columns) = padding, x.shape[-2:]
    return x[:, :, high : rows - high, wide : columns - wide]


def places(offset: Pair, stride: Pair, out: Pair) -> tuple[Any, ...]:
    """Index of the pixels under position `offset` of the kernel, one for each output pixel."""
    rows, columns = (slice(o, o + s * n, s) for o, s, n in zip(offset, stride, out, strict=True))
    return (slice(None), slice(None), rows, columns)


class Conv2d(Module):
    """y[n, o, i, j] = b[o] + sum over c, p, q of W[o, c, p, q] · x[n, c, i·s + p, j·s + q], s the stride.

    Shapes: x (n, c, h, w), W (o, c, k, k), b (o,), y (n, o, h', w') with h' = (h + 2·padding - k) // s + 1.
    Write the windows as rows of a matrix X, one per output pixel (n, i, j), one column per (c, p, q)
    ("im2col"), and W as a matrix of shape (o, c·k·k). Then convolution is a linear layer:

        Y  = X Wᵀ + b          (n·h'·w', o)
        dW = dYᵀ X             (o, c·k·k)
        db = sum of dY over its rows
        dX = dY W              (n·h'·w', c·k·k)

    A pixel is part of several windows, and its gradient is the sum over them ("col2im"): for each of the k·k
    positions in the kernel, column (c, p, q) of dX is added to the pixels x[n, c, i·s + p, j·s + q].

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.Conv2d(1, 2, 3)
        >>> y = layer.forward(np.ones((1, 1, 5, 5), np.float32))
        >>> dx = layer.backward(np.ones_like(y))
        >>> y.shape, dx.shape
        ((1, 2, 3, 3), (1, 1, 5, 5))
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Pair,
        stride: int | Pair = 1,
        padding: int | Pair = 0,
        bias: bool = True,
        *,
        dtype: DTypeLike | None = np.float32,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.kernel, self.stride, self.padding = _pair(kernel_size), _pair(stride), _pair(padding)
        bound = 1 / np.sqrt(in_channels * self.kernel[0] * self.kernel[1])
        self.weight = uniform(rng, bound, (out_channels, in_channels, *self.kernel), dtype)
        self.bias = uniform(rng, bound, (out_channels,), dtype) if bias else None

    def forward(self, x: Array) -> Array:
        weight = self.weight.data
        if x.ndim != 4 or x.shape[1] != weight.shape[1]:
            expected = f"(n, {weight.shape[1]}, h, w)"
            raise errors.MANUAL_SHAPE(layer="Conv2d", given=x.shape, expected=expected, weight=weight.shape)
        padded = _pad(x, self.padding)
        windows = sliding_window_view(padded, self.kernel, axis=(2, 3))[:, :, :: self.stride[0], :: self.stride[1]]
        n, _, high, wide = windows.shape[:4]
        rows = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * high * wide, -1)
        y = rows @ weight.reshape(weight.shape[0], -1).T
        if self.bias is not None:
            y += self.bias.data
        self.saved = (rows, padded.shape)
        return y.reshape(n, high, wide, -1).transpose(0, 3, 1, 2)

    def backward(self, dout: Array) -> Array:
        rows, padded_shape = self.saved
        weight = self.weight.data
        n, out_channels, high, wide = dout.shape
        dy = dout.transpose(0, 2, 3, 1).reshape(-1, out_channels)
        self.weight.accumulate((dy.T @ rows).reshape(weight.shape))
        if self.bias is not None:
            self.bias.accumulate(dy.sum(axis=0))
        dpadded = np.zeros(padded_shape, dout.dtype)
        for p, q in np.ndindex(*self.kernel):  # the columns of dX for one position: dY W[:, :, p, q]
            columns = dy @ weight[:, :, p, q]
            dpadded[places((p, q), self.stride, (high, wide))] += columns.reshape(n, high, wide, -1).transpose(
                0, 3, 1, 2
            )
        return _crop(dpadded, self.padding)


class MaxPool2d(Module):
    """y[n, c, i, j] = the largest of x[n, c, i·s + p, j·s + q] over the positions (p, q) of the window.

    Shapes: x (n, c, h, w), y (n, c, h', w') as in Conv2d; padding counts as -inf. Only the maximum affects y,
    so it gets the whole cotangent; on ties the first one does, as in PyTorch. Where windows overlap, a pixel
    sums the cotangents of the windows in which it is the maximum:

        dx[n, c, i·s + p, j·s + q] += dy[n, c, i, j]   where (p, q) is the maximum of window (i, j)

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.MaxPool2d(2)
        >>> y = layer.forward(np.ones((1, 1, 4, 4)))
        >>> dx = layer.backward(np.ones_like(y))
        >>> y.shape, dx.shape
        ((1, 1, 2, 2), (1, 1, 4, 4))
    """

    def __init__(self, kernel_size: int | Pair, stride: int | Pair | None = None, padding: int | Pair = 0) -> None:
        self.kernel, self.padding = _pair(kernel_size), _pair(padding)
        self.stride = self.kernel if stride is None else _pair(stride)

    def forward(self, x: Array) -> Array:
        padded = _pad(x, self.padding, fill=-np.inf)
        out: Any = tuple(
            (size - k) // s + 1 for size, k, s in zip(padded.shape[2:], self.kernel, self.stride, strict=True)
        )
        rivals = [padded[places(offset, self.stride, out)] for offset in np.ndindex(*self.kernel)]
        best = functools.reduce(np.maximum, rivals)
        broken = np.isnan(best).any()
        winner = np.zeros(best.shape, np.int16)
        for number, rival in reversed(list(enumerate(rivals))):  # so that on ties the first one stays
            wins = (rival == best) | np.isnan(rival) if broken else rival == best
            np.copyto(winner, number, where=wins)
        self.saved = (winner, padded.shape)
        return best

    def backward(self, dout: Array) -> Array:
        winner, padded_shape = self.saved
        dpadded = np.zeros(padded_shape, dout.dtype)
        for number, offset in enumerate(np.ndindex(*self.kernel)):
            dpadded[places(offset, self.stride, dout.shape[2:])] += dout * (winner == number)
        return _crop(dpadded, self.padding)
