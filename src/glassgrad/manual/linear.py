"""Linear, Embedding, Flatten: layers that are linear in their input or their weight."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from glassgrad import errors
from glassgrad.manual.protocols import Array, Module, Parameter, check_range, uniform


class Linear(Module):
    """y = x Wᵀ + b.

    Shapes: x (..., in), W (out, in), b (out,), y (..., out). Below, the leading axes are one axis n.

        y[n, o]  = sum_i x[n, i] W[o, i] + b[o]
        dx[n, i] = sum_o dy[n, o] ∂y[n, o]/∂x[n, i] = sum_o dy[n, o] W[o, i]   so  dx = dy W      (n, in)
        dW[o, i] = sum_n dy[n, o] ∂y[n, o]/∂W[o, i] = sum_n dy[n, o] x[n, i]   so  dW = dyᵀ x     (out, in)
        db[o]    = sum_n dy[n, o]                    (b was broadcast over n)   so  db = sum dy    (out,)

    The shapes determine the products: only dy W gives (n, in), only dyᵀ x gives (out, in).

        >>> layer = Linear(3, 2)
        >>> y = layer(np.ones((4, 3), np.float32))
        >>> layer.backward(np.ones_like(y)).shape, layer.weight.grad.shape
        ((4, 3), (2, 3))
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        dtype: DTypeLike | None = np.float32,
        rng: np.random.Generator | None = None,
    ) -> None:
        bound = 1 / np.sqrt(in_features)
        self.weight = uniform(rng, bound, (out_features, in_features), dtype)
        self.bias = uniform(rng, bound, (out_features,), dtype) if bias else None

    def forward(self, x: Array) -> Array:
        if x.shape[-1] != self.weight.data.shape[1]:
            raise errors.MANUAL_SHAPE(
                layer="Linear", given=x.shape, expected=f"(..., {self.weight.data.shape[1]})", weight=self.weight.shape
            )
        self.saved = x
        y = x @ self.weight.data.T
        return y if self.bias is None else y + self.bias.data

    def backward(self, dout: Array) -> Array:
        x = self.saved.reshape(-1, self.saved.shape[-1])
        dy = dout.reshape(-1, dout.shape[-1])
        self.weight.accumulate(dy.T @ x)
        if self.bias is not None:
            self.bias.accumulate(dy.sum(axis=0))
        return dout @ self.weight.data


class Embedding(Module):
    """y = W[indices]: row number `indices[n]` of a table.

    Shapes: indices (...) of integers, W (count, dim), y (..., dim). Below, the axes of indices are one axis n.

        y[n, d]  = W[indices[n], d] = sum_r [indices[n] = r] W[r, d]      (a product with a one-hot matrix)
        dW[r, d] = sum_n [indices[n] = r] dy[n, d]                         each row adds up the cotangents
                                                                           of every place that looked it up

    Integers have no gradient, so `backward` returns None.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.Embedding(5, 3)
        >>> layer.forward(np.array([0, 2])).shape
        (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        dtype: DTypeLike | None = np.float32,
        rng: np.random.Generator | None = None,
    ) -> None:
        generator = np.random.default_rng() if rng is None else rng
        self.weight = Parameter(generator.standard_normal((num_embeddings, embedding_dim)).astype(dtype))

    def forward(self, indices: Array) -> Array:
        self.saved = np.asarray(indices)
        check_range("Embedding", "index", self.saved, len(self.weight.data))
        return self.weight.data[self.saved]

    def backward(self, dout: Array) -> None:
        rows = self.saved.reshape(-1)
        dy = dout.reshape(rows.size, dout.shape[-1])
        # Sorted by row, the places of each row are adjacent, and one reduceat adds them up: np.add.at
        # would go through them one by one.
        order = np.argsort(rows, kind="stable")
        present, first = np.unique(rows[order], return_index=True)
        grad = np.zeros_like(self.weight.data)
        if present.size:
            grad[present] = np.add.reduceat(dy[order], first, axis=0)
        self.weight.accumulate(grad)


class Flatten(Module):
    """y = x with all axes but the first merged into one.

    Shapes: x (n, a, b, ...), y (n, a·b·...). Elements only change place, and so does the cotangent:
    dx = dy in the shape of x.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> layer = manual.Flatten()
        >>> y = layer.forward(np.ones((2, 3, 4)))
        >>> dx = layer.backward(np.ones_like(y))
        >>> y.shape, dx.shape
        ((2, 12), (2, 3, 4))
    """

    def forward(self, x: Array) -> Array:
        self.saved = x.shape
        return x.reshape(x.shape[0], -1)

    def backward(self, dout: Array) -> Array:
        return dout.reshape(self.saved)
