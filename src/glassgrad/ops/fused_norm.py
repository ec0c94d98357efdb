"""Fused normalisations over the last dimensions: layer norm and RMS norm.

Both treat the input as rows, one for each normalised position. Sums along a row are products with ones: BLAS adds a
short row several times faster than a reduction does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.core import Array
from glassgrad.ops.fused import _fused_in_single
from glassgrad.ops.kernels import products
from glassgrad.ops.kernels.parts import in_parts, pays
from glassgrad.ops.kernels.sums import ones, sum_rows
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.samples import S, positive


def _rows(x: Array, dims: int) -> Array:
    """Return `x` as a matrix whose rows hold the last `dims` dimensions."""
    split = x.ndim - dims
    return x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))


def _row_mean(x: Array) -> Array:
    width = x.shape[1]
    return products.dot(x, ones(width, x.dtype))[:, None] * x.dtype.type(1 / width if width else math.nan)


def _row_mean_of_product(a: Array, b: Array) -> Array:
    width = a.shape[1]
    return np.einsum("ij,ij->i", a, b)[:, None] * a.dtype.type(1 / width if width else math.nan)


def _affine(y: Array, parts: Sequence[Array]) -> Array:
    """y * weight + bias, if given; the vjp keeps `y` itself."""
    if not parts:
        return y.copy()
    result: Array = y * parts[0].reshape(-1)
    if len(parts) > 1:
        result += parts[1].reshape(-1)
    return result


def _affine_vjp(g: Array, normal: Array, parts: Sequence[Array], needs: Sequence[bool]) -> list[Array | None]:
    """The cotangents of weight and bias, if given."""
    found: list[Array | None] = []
    if parts:
        found.append(sum_rows(g * normal).reshape(parts[0].shape) if needs[1] else None)
    if len(parts) > 1:
        found.append(sum_rows(g).reshape(parts[1].shape) if needs[2] else None)
    return found


def _norm_vjp(centred: bool) -> Callable[..., Any]:
    """Return the vjp of n w + b, where n = (x - mean) / std if `centred`, else n = x / rms."""

    def vjp(
        g: Array, needs: Sequence[bool], residuals: Any, x: Array, *parts: Array, dims: int, eps: float
    ) -> tuple[Any, ...]:
        # With h = g w: dx = (h - mean(h) - n mean(h n)) / std; without centring, there is no mean(h).
        normal, inverse = residuals
        rows = g.reshape(normal.shape)
        if all(needs) and pays(rows):
            whole, totals = np.empty(rows.shape, rows.dtype), [np.empty(normal.shape[1], rows.dtype) for _ in parts]
            weight = [part.reshape(-1) for part in parts[:1]]
            if in_parts(_VJPS[centred, len(parts)], (rows, normal, inverse), weight, (whole,), totals):
                return whole.reshape(x.shape), *(
                    one.reshape(part.shape) for one, part in zip(totals, parts, strict=True)
                )
        dx: Array | None = None
        if needs[0]:
            inner = rows * parts[0].reshape(-1) if parts else rows
            dx = normal * -_row_mean_of_product(inner, normal)
            dx += inner
            if centred:
                dx -= _row_mean(inner)
            dx *= inverse
            dx = dx.reshape(x.shape)
        return dx, *_affine_vjp(rows, normal, parts, needs)

    return vjp


def _in_rows(centred: bool, count: int) -> Callable[..., Any]:
    """Return the formula of that vjp for matrices, with `count` of weight and bias, for native code."""

    def vjp(g: Array, normal: Array, inverse: Array, *weight: Array) -> tuple[Array, ...]:
        share = 1 / g.shape[1]
        h = g * weight[0] if count else g
        dx = h - normal * (sum_p(h * normal, axis=(1,), keepdims=True) * share)
        if centred:
            dx = dx - sum_p(h, axis=(1,), keepdims=True) * share
        terms = (g * normal, g)[:count]
        return dx * inverse, *(sum_p(one, axis=(0,), keepdims=False) for one in terms)

    return vjp


_VJPS = {(centred, count): _in_rows(centred, count) for centred in (True, False) for count in range(3)}


def _forward_in_parts(formula: Callable[..., Any], x: Array, rows: Array, parts: Sequence[Array], eps: float) -> Any:
    """Return a forward's results from native code; None if NumPy should compute them."""
    y, normal, inverse = np.empty_like(rows), np.empty_like(rows), np.empty((len(rows), 1), rows.dtype)
    vectors = [part.reshape(-1) for part in parts]
    if not in_parts(formula, (rows,), vectors, (y, normal, inverse), dims=1, eps=eps):
        return None
    return y.reshape(x.shape), (normal, inverse)


# --- layer norm -----------------------------------------------------------------------------------


def _layer_norm(xp: ModuleType, x: Array, *parts: Array, dims: int, eps: float) -> tuple[Array, tuple[Array, Array]]:
    rows = _rows(x, dims)
    if pays(rows) and (found := _forward_in_parts(_layer_norm_in_ops, x, rows, parts, eps)) is not None:
        return found  # type: ignore[no-any-return]  # the pair that the line below returns
    mean = _row_mean(rows)
    normal = rows - mean
    mean += _row_mean(normal)  # corrects its rounding error
    np.subtract(rows, mean, normal)
    inverse = 1 / np.sqrt(_row_mean_of_product(normal, normal) + rows.dtype.type(eps))
    normal *= inverse
    return _affine(normal, parts).reshape(x.shape), (normal, inverse)


def _weight_in_mean(x: Array, axes: tuple[int, ...]) -> float:
    count = math.prod(x.shape[axis] for axis in axes)
    return 1 / count if count else math.nan


def _layer_norm_in_ops(x: Array, *parts: Array, dims: int, eps: float) -> tuple[Array, Array, Array]:
    """Return the result, x in units of the deviation, and 1 / deviation."""
    ndim = len(x.shape)
    axes = tuple(range(ndim - dims, ndim))
    share = _weight_in_mean(x, axes)
    centred = x - sum_p(x, axis=axes, keepdims=True) * share
    var = sum_p(ew.square(centred), axis=axes, keepdims=True) * share
    inverse_std = ew.rsqrt(var + eps)
    normal = y = centred * inverse_std
    if parts:
        y = normal * parts[0]
    return y + parts[1] if len(parts) > 1 else y, normal, inverse_std


layer_norm_p = _fused_in_single(
    "layer_norm",
    _layer_norm,
    joint_vjp=_norm_vjp(centred=True),
    decompose=lambda x, *parts, dims, eps: _layer_norm_in_ops(x, *parts, dims=dims, eps=eps)[0],
)
layer_norm_p.describe(
    "(x - mean) / sqrt(var + eps) * w + b over the last dims",
    "(h - mean(h) - n * mean(h * n)) / std, h = g * w",
    notes="Ba et al. 2016",
)
layer_norm_p.samples = [
    S((4, 5), positive(5), (5,), dims=1, eps=1e-5),
    S((2, 3, 4), positive(3, 4), (3, 4), dims=2, eps=1e-3),
    S((3, 2, 4), positive(4), dims=1, eps=1e-5),
    S((3, 4), dims=1, eps=1e-5),
]

# --- root mean square norm ------------------------------------------------------------------------


def _rms_norm(xp: ModuleType, x: Array, *parts: Array, dims: int, eps: float) -> tuple[Array, tuple[Array, Array]]:
    rows = _rows(x, dims)
    if pays(rows) and (found := _forward_in_parts(_rms_norm_in_ops, x, rows, parts, eps)) is not None:
        return found  # type: ignore[no-any-return]  # the pair that the line below returns
    inverse = 1 / np.sqrt(_row_mean_of_product(rows, rows) + rows.dtype.type(eps))
    normal = rows * inverse
    return _affine(normal, parts).reshape(x.shape), (normal, inverse)


def _rms_norm_in_ops(x: Array, *parts: Array, dims: int, eps: float) -> tuple[Array, Array, Array]:
    """Return the result, x in units of its root mean square, and 1 / root mean square."""
    ndim = len(x.shape)
    axes = tuple(range(ndim - dims, ndim))
    inverse_rms = ew.rsqrt(sum_p(ew.square(x), axis=axes, keepdims=True) * _weight_in_mean(x, axes) + eps)
    normal = x * inverse_rms
    return normal * parts[0] if parts else normal, normal, inverse_rms


rms_norm_p = _fused_in_single(
    "rms_norm",
    _rms_norm,
    joint_vjp=_norm_vjp(centred=False),
    decompose=lambda x, *parts, dims, eps: _rms_norm_in_ops(x, *parts, dims=dims, eps=eps)[0],
)
rms_norm_p.describe(
    "x / sqrt(mean(x**2) + eps) * w over the last dims",
    "(h - n * mean(h * n)) / rms, h = g * w",
    notes="Zhang and Sennrich 2019",
)
rms_norm_p.samples = [S((4, 5), positive(5), dims=1, eps=1e-5), S((2, 3, 4), dims=2, eps=1e-3)]
