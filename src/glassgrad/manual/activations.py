"""Activations. All but the two softmaxes are elementwise, so dx = dy · f'(x)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from glassgrad import errors
from glassgrad.errors.packages import needed
from glassgrad.manual.protocols import Array, Module, Parameter


class ReLU(Module):
    """y = max(x, 0).

    ∂y/∂x is 1 where x > 0 and 0 elsewhere (at 0 itself any number between is a subgradient; 0 is the convention):

        dx = dy · [x > 0]

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.ReLU()
        >>> layer.forward(np.array([[-1.0, 0.5, 2.0]])).round(4)
        array([[0. , 0.5, 2. ]])
        >>> layer.backward(np.array([[1.0, 0.0, 0.0]])).round(4)
        array([[0., 0., 0.]])
    """

    def forward(self, x: Array) -> Array:
        y = np.maximum(x, 0)
        self.saved = y
        return y

    def backward(self, dout: Array) -> Array:
        return dout * (self.saved > 0)


class LeakyReLU(Module):
    """y = x where x > 0, slope · x elsewhere.

    dx = dy where x > 0, slope · dy elsewhere.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.LeakyReLU()
        >>> layer.forward(np.array([[-1.0, 0.5, 2.0]])).round(4)
        array([[-0.01,  0.5 ,  2.  ]])
        >>> layer.backward(np.array([[1.0, 0.0, 0.0]])).round(4)
        array([[0.01, 0.  , 0.  ]])
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Array) -> Array:
        self.saved = x > 0
        return np.where(self.saved, x, self.negative_slope * x)

    def backward(self, dout: Array) -> Array:
        return np.where(self.saved, dout, self.negative_slope * dout)


class PReLU(Module):
    """y = x where x > 0, a x elsewhere; the slope a is trained: one number, or one for each channel (axis 1).

    Shapes: x (n, c, ...) or any with a single a, a (1,) or (c,), y like x.

        dx = dy where x > 0, a dy elsewhere
        da = sum of dy · x where x <= 0                      over all places that share the a: a was broadcast

    Source: He et al., "Delving Deep into Rectifiers" (2015).

        >>> layer = PReLU()
        >>> layer(np.array([-2.0, 4.0])), layer.backward(np.ones(2)), layer.weight.grad
        (array([-0.5,  4. ]), array([0.25, 1.  ]), array([-2.]))
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: DTypeLike | None = np.float32) -> None:
        self.weight = Parameter(np.full(num_parameters, init, dtype))

    def forward(self, x: Array) -> Array:
        a = self.weight.data
        if a.size > 1 and (x.ndim < 2 or x.shape[1] != a.size):
            raise errors.MANUAL_SHAPE(layer="PReLU", given=x.shape, expected=f"(n, {a.size}, ...)", weight=a.shape)
        slope = a if a.size == 1 else a.reshape(-1, *(1,) * (x.ndim - 2))
        self.saved = (x, slope)
        return np.where(x > 0, x, slope * x)

    def backward(self, dout: Array) -> Array:
        x, slope = self.saved
        below = np.where(x > 0, 0, dout * x)
        shared = tuple(axis for axis in range(x.ndim) if slope.size == 1 or axis != 1)
        self.weight.accumulate(below.sum(axis=shared).reshape(self.weight.shape))
        return np.where(x > 0, dout, slope * dout)


class ELU(Module):
    """y = x where x > 0, alpha (e^x - 1) elsewhere.

    Below 0 the derivative of alpha (e^x - 1) is alpha e^x = y + alpha:

        dx = dy where x > 0, dy · (y + alpha) elsewhere

    For alpha = 1 both sides have the slope 1 at 0. Source: Clevert, Unterthiner, Hochreiter (2016).

        >>> layer = ELU()
        >>> layer(np.array([-1.0, 2.0])).round(3), layer.backward(np.ones(2)).round(3)
        (array([-0.632,  2.   ]), array([0.368, 1.   ]))
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Array) -> Array:
        y = np.where(x > 0, x, self.alpha * np.expm1(np.minimum(x, 0)))
        self.saved = (x > 0, y)
        return y

    def backward(self, dout: Array) -> Array:
        above, y = self.saved
        return np.where(above, dout, dout * (y + self.alpha))


class Tanh(Module):
    """y = tanh(x) = (e^x - e^-x) / (e^x + e^-x).

    By the quotient rule, with s = e^x - e^-x, c = e^x + e^-x, s' = c and c' = s:

        ∂y/∂x = (c·c - s·s) / c² = 1 - y²
        dx    = dy · (1 - y²)

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.Tanh()
        >>> layer.forward(np.array([[-1.0, 0.5, 2.0]])).round(4)
        array([[-0.7616,  0.4621,  0.964 ]])
        >>> layer.backward(np.array([[1.0, 0.0, 0.0]])).round(4)
        array([[0.42, 0.  , 0.  ]])
    """

    def forward(self, x: Array) -> Array:
        self.saved = np.tanh(x)
        return self.saved

    def backward(self, dout: Array) -> Array:
        y = self.saved
        return dout * (1 - y * y)


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), from the exponential that cannot overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


class Sigmoid(Module):
    """y = 1 / (1 + e^-x).

    ∂y/∂x = e^-x / (1 + e^-x)² = y · e^-x / (1 + e^-x) = y (1 - y)
    dx    = dy · y (1 - y)

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.Sigmoid()
        >>> layer.forward(np.array([[-1.0, 0.5, 2.0]])).round(4)
        array([[0.2689, 0.6225, 0.8808]])
        >>> layer.backward(np.array([[1.0, 0.0, 0.0]])).round(4)
        array([[0.1966, 0.    , 0.    ]])
    """

    def forward(self, x: Array) -> Array:
        self.saved = sigmoid(x)
        return self.saved

    def backward(self, dout: Array) -> Array:
        y = self.saved
        return dout * y * (1 - y)


def softmax(x: Array, dim: int) -> Array:
    """e^x / sum e^x along dim. Subtracting the maximum cancels in the quotient and stops overflow."""
    exp = np.exp(x - x.max(axis=dim, keepdims=True))
    return exp / exp.sum(axis=dim, keepdims=True)


class Softmax(Module):
    """y[j] = e^x[j] / sum_k e^x[k], along one axis; x and y have the same shape.

    Let S = sum_k e^x[k]. Numerator and denominator both depend on x[i]:

        ∂y[j]/∂x[i] = ([i = j] e^x[j] S - e^x[j] e^x[i]) / S² = y[j] ([i = j] - y[i])
        dx[i]       = sum_j dy[j] y[j] ([i = j] - y[i])
                    = y[i] dy[i] - y[i] sum_j dy[j] y[j]
        dx          = y · (dy - sum(dy · y))                        the sum along the axis, kept for broadcasting

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.Softmax()
        >>> layer.forward(np.array([[-1.0, 0.5, 2.0]])).round(4)
        array([[0.0391, 0.1753, 0.7856]])
        >>> layer.backward(np.array([[1.0, 0.0, 0.0]])).round(4)
        array([[ 0.0376, -0.0069, -0.0307]])
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Array) -> Array:
        self.saved = softmax(x, self.dim)
        return self.saved

    def backward(self, dout: Array) -> Array:
        y = self.saved
        return y * (dout - (dout * y).sum(axis=self.dim, keepdims=True))


def log_softmax(x: Array, dim: int) -> Array:
    """x - log sum e^x along dim, with the maximum taken out."""
    shifted = x - x.max(axis=dim, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))


class LogSoftmax(Module):
    """y[j] = x[j] - log sum_k e^x[k], along one axis; x and y have the same shape.

    ∂y[j]/∂x[i] = [i = j] - e^x[i] / sum_k e^x[k] = [i = j] - e^y[i]
    dx[i]       = sum_j dy[j] ([i = j] - e^y[i]) = dy[i] - e^y[i] sum_j dy[j]
    dx          = dy - e^y · sum(dy)                             the sum along the axis

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.LogSoftmax()
        >>> layer.forward(np.array([[-1.0, 0.5, 2.0]])).round(4)
        array([[-3.2413, -1.7413, -0.2413]])
        >>> layer.backward(np.array([[1.0, 0.0, 0.0]])).round(4)
        array([[ 0.9609, -0.1753, -0.7856]])
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Array) -> Array:
        self.saved = log_softmax(x, self.dim)
        return self.saved

    def backward(self, dout: Array) -> Array:
        return dout - np.exp(self.saved) * dout.sum(axis=self.dim, keepdims=True)


class GELU(Module):
    """y = x Φ(x), Φ the distribution function of the normal distribution (Hendrycks, Gimpel 2016).

    With Φ(x) = (1 + erf(x/√2)) / 2 and its derivative φ(x) = e^(-x²/2) / √(2π), the product rule gives

        ∂y/∂x = Φ(x) + x φ(x)
        dx    = dy · (Φ(x) + x φ(x))

    `approximate="tanh"` is y = x (1 + t) / 2 with t = tanh(u), u = √(2/π) (x + 0.044715 x³):

        ∂u/∂x = √(2/π) (1 + 3 · 0.044715 x²)
        dx    = dy · ((1 + t) / 2 + x (1 - t²) / 2 · ∂u/∂x)

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.GELU()
        >>> layer.forward(np.array([[-1.0, 0.5, 2.0]])).round(4)
        array([[-0.1587,  0.3457,  1.9545]])
        >>> layer.backward(np.array([[1.0, 0.0, 0.0]])).round(4)
        array([[-0.0833,  0.    ,  0.    ]])
    """

    ROOT, CUBE = float(np.sqrt(2 / np.pi)), 0.044715

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in {"none", "tanh"}:
            raise errors.MANUAL_OPTION(layer="GELU", name="approximate", given=approximate, expected="'none' or 'tanh'")
        self.approximate = approximate

    def forward(self, x: Array) -> Array:
        if self.approximate == "tanh":
            inner = np.tanh(self.ROOT * (x + self.CUBE * x * x * x))
            half = 0.5 * (1 + inner)
        else:
            with needed("scipy", "the exact GELU, other than approximate='tanh',"):
                from scipy.special import erf

            inner = None
            half = 0.5 * (1 + erf(x * float(np.sqrt(0.5))))
        self.saved = (x, half, inner)
        return x * half

    def backward(self, dout: Array) -> Array:
        x, half, inner = self.saved
        if inner is None:
            slope: Any = np.exp(-0.5 * x * x) * float(1 / np.sqrt(2 * np.pi))
        else:
            slope = 0.5 * (1 - inner * inner) * self.ROOT * (1 + 3 * self.CUBE * x * x)
        return dout * (half + x * slope)
