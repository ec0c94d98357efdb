"""BatchNorm1d, LayerNorm and Dropout."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from glassgrad import errors
from glassgrad.manual.protocols import Array, Module, Parameter


class BatchNorm1d(Module):
    """y = w · (x - mean) / sqrt(var + eps) + b, mean and variance of each channel over the batch.

    Shapes: x (n, c) or (n, c, l); w, b, mean, var (c,). Below, m = n·l is the number of elements of a
    channel, and everything is for one channel. With s = (var + eps)^(-1/2) and x̂ = (x - mean) s:

        y  = w x̂ + b
        db = sum dy                                                              (b was broadcast)
        dw = sum dy x̂                                                            (so was w)
        dx̂ = dy w

        x̂ = (x - mean) s                    ds    = sum dx̂ (x - mean)
        s = (var + eps)^(-1/2)              dvar  = ds · (-1/2) (var + eps)^(-3/2) = -ds s³ / 2
        var = sum (x - mean)² / m           each x gets dvar · 2 (x - mean) / m; the mean gets
                                            -dvar · 2 sum(x - mean) / m, which is 0
        mean = sum x / m                    dmean = -s sum dx̂, and each x gets dmean / m

        dx = dx̂ s + 2 dvar (x - mean) / m + dmean / m                            three paths to y
           = s (dx̂ - x̂ · sum(dx̂ x̂) / m - sum(dx̂) / m)                            since ds s = sum(dx̂ x̂)
           = w s / m · (m dy - x̂ dw - db)                                        the whole layer in one line

    The running variance, used in evaluation, is the unbiased one (m - 1), as in PyTorch; the one inside the
    formula divides by m. In evaluation mean and var are constants, and dx = dy w s.

    Source: Ioffe, Szegedy, "Batch Normalization" (2015).

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.BatchNorm1d(3)
        >>> y = layer.forward(np.ones((4, 3), np.float32))
        >>> dx = layer.backward(np.ones_like(y))
        >>> y.shape, dx.shape
        ((4, 3), (4, 3))
    """

    buffers = ("running_mean", "running_var", "num_batches_tracked")

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, *, dtype: DTypeLike | None = np.float32
    ) -> None:
        self.eps, self.momentum = eps, momentum
        self.weight = Parameter(np.ones(num_features, dtype))
        self.bias = Parameter(np.zeros(num_features, dtype))
        self.running_mean = np.zeros(num_features, dtype)
        self.running_var = np.ones(num_features, dtype)
        self.num_batches_tracked = np.array(0)
        self.axes: tuple[int, ...] = (0,)  # the axes of the statistics; `shape` broadcasts a channel vector
        self.column: tuple[int, ...] = (1, -1)

    def forward(self, x: Array) -> Array:
        channels = self.weight.data.shape[0]
        if x.ndim not in {2, 3} or x.shape[1] != channels:
            expected = f"(n, {channels}) or (n, {channels}, l)"
            raise errors.MANUAL_SHAPE(layer="BatchNorm1d", given=x.shape, expected=expected, weight=self.weight.shape)
        self.axes, self.column = ((0,), (1, -1)) if x.ndim == 2 else ((0, 2), (1, -1, 1))
        mean, var = self._statistics(x) if self.training else (self.running_mean, self.running_var)
        inverse = 1 / np.sqrt(var.astype(x.dtype).reshape(self.column) + self.eps)
        normal = (x - mean.astype(x.dtype).reshape(self.column)) * inverse
        self.saved = (normal, inverse)
        return normal * self.weight.data.reshape(self.column) + self.bias.data.reshape(self.column)

    def _statistics(self, x: Array) -> tuple[Array, Array]:
        count = x.size // x.shape[1]
        if count < 2:
            raise errors.MANUAL_BATCH_OF_ONE(shape=x.shape)
        mean, var = x.mean(axis=self.axes), x.var(axis=self.axes)
        self.running_mean += self.momentum * (mean - self.running_mean)
        self.running_var += self.momentum * (var * (count / (count - 1)) - self.running_var)
        self.num_batches_tracked += 1
        return mean, var

    def backward(self, dout: Array) -> Array:
        normal, inverse = self.saved
        dw, db = (dout * normal).sum(axis=self.axes), dout.sum(axis=self.axes)
        self.weight.accumulate(dw)
        self.bias.accumulate(db)
        scale = self.weight.data.reshape(self.column) * inverse
        if not self.training:
            return dout * scale
        count = dout.size // dout.shape[1]
        return scale / count * (count * dout - normal * dw.reshape(self.column) - db.reshape(self.column))


class LayerNorm(Module):
    """y = w · (x - mean) / sqrt(var + eps) + b, mean and variance of each sample over the last axes.

    Shapes: x (..., d), where d may be several axes; w, b (d); mean, var (..., 1). The statistics run along other axes
    than in batch norm. The derivation is the same up to dx̂ = dy w. Here w differs within one mean, so it cannot be
    taken out of the sums:

        dw = sum over the leading axes of dy x̂
        db = sum over the leading axes of dy
        dx = s (dx̂ - x̂ · mean(dx̂ x̂) - mean(dx̂))             means over the axes of d

    Source: Ba, Kiros, Hinton, "Layer Normalization" (2016).

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.LayerNorm(3)
        >>> y = layer.forward(np.ones((4, 3), np.float32))
        >>> dx = layer.backward(np.ones_like(y))
        >>> y.shape, dx.shape
        ((4, 3), (4, 3))
    """

    def __init__(
        self, normalized_shape: int | tuple[int, ...], eps: float = 1e-5, *, dtype: DTypeLike | None = np.float32
    ) -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = Parameter(np.ones(shape, dtype))
        self.bias = Parameter(np.zeros(shape, dtype))

    def forward(self, x: Array) -> Array:
        shape = self.weight.shape
        if tuple(x.shape[-len(shape) :]) != shape:
            expected = f"(..., {', '.join(map(str, shape))})"
            raise errors.MANUAL_SHAPE(layer="LayerNorm", given=x.shape, expected=expected, weight=shape)
        self.axes = tuple(range(-len(shape), 0))
        centred = x - x.mean(axis=self.axes, keepdims=True)
        inverse = 1 / np.sqrt((centred * centred).mean(axis=self.axes, keepdims=True) + self.eps)
        normal = centred * inverse
        self.saved = (normal, inverse)
        return normal * self.weight.data + self.bias.data

    def backward(self, dout: Array) -> Array:
        normal, inverse = self.saved
        leading = tuple(range(dout.ndim - len(self.axes)))
        self.weight.accumulate((dout * normal).sum(axis=leading))
        self.bias.accumulate(dout.sum(axis=leading))
        dnormal = dout * self.weight.data
        mean = dnormal.mean(axis=self.axes, keepdims=True)
        along = (dnormal * normal).mean(axis=self.axes, keepdims=True)
        return inverse * (dnormal - normal * along - mean)


class Dropout(Module):
    """y = x · mask / (1 - p), each entry of the mask 0 with probability p and else 1; in evaluation y = x.

    The mask is a constant of the pass, so dx = dy · mask / (1 - p). The division keeps the mean of y at that
    of x, so that evaluation needs no scaling (Srivastava et al. 2014).

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.Dropout(0.5)
        >>> y = layer.forward(np.ones((2, 3)))
        >>> dx = layer.backward(np.ones_like(y))
        >>> y.shape, dx.shape
        ((2, 3), (2, 3))
    """

    def __init__(self, p: float = 0.5, *, rng: np.random.Generator | None = None) -> None:
        if not 0 <= p < 1:
            raise errors.MANUAL_OPTION(layer="Dropout", name="p", given=p, expected="0 <= p < 1")
        self.p = p
        self.rng = np.random.default_rng() if rng is None else rng

    def forward(self, x: Array) -> Array:
        if not self.training or self.p == 0:
            self.saved = None
            return x
        keep = self.rng.random(x.shape, dtype=np.float32) >= self.p
        self.saved = keep.astype(x.dtype) / x.dtype.type(1 - self.p)
        return x * self.saved

    def backward(self, dout: Array) -> Array:
        return dout if self.saved is None else dout * self.saved
