"""Norms of vectors of all orders; those of matrices are in `glassgrad.linalg`."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import Axes, restore
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.complexes import _squared_size
from glassgrad.ops.core import Array, bad_option, canonical_axes, canonical_axis, fused
from glassgrad.ops.kernels import sums
from glassgrad.ops.kernels.choose import all_over
from glassgrad.ops.reduce import REDUCTION_SAMPLES, any_p, max_p, min_p, sum_p
from glassgrad.ops.shape import astype, reshape_p

# --- the Euclidean one ----------------------------------------------------------------------------


def _norm(xp: ModuleType, x: Array, *, axis: Axes, keepdims: bool) -> tuple[Array, Array]:
    y = np.sqrt(sums.over(x * x, axis, keepdims))
    return y, y


def _norm_vjp(g: Array, needs: Any, y: Array, x: Array, *, axis: Axes, keepdims: bool) -> tuple[Array]:
    share = g / y if all_over(y, None) else g * ew._ratio(1.0, y)
    return (x * restore(share, x.shape, axis, keepdims),)


def _norm_decomposed(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return ew.root_p(sum_p(_squared_size(x), axis=axis, keepdims=keepdims))


norm_p = fused("norm", _norm, joint_vjp=_norm_vjp, decompose=_norm_decomposed)
norm_p.describe("sqrt(sum(x**2))", "x / y, 0 where y is 0")
norm_p.samples = REDUCTION_SAMPLES[:3]


# --- all of them ----------------------------------------------------------------------------------


@takes_complex
def vector_norm(x: Array, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """(sum of |x|**ord)**(1/ord) over `dim`; inf and -inf give the largest and smallest |x|, 0 counts nonzeros.

    Where the norm is 0 its gradient is 0.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.zeros(2, requires_grad=True)
        >>> gg.vector_norm(x).backward()
        >>> x.grad.tolist()
        [0.0, 0.0]
    """
    x = x if dtype is None else astype(x, dtype)
    axes = canonical_axes(dim, len(x.shape))
    if ord == 2:
        square_root = norm_p if x.dtype.kind in "fV" else _norm_decomposed
        return square_root(x, axis=axes, keepdims=keepdim)
    size = ew.abs(x)
    if ord == 1:
        return sum_p(size, axis=axes, keepdims=keepdim)
    if ord in {math.inf, -math.inf}:
        return (max_p if ord > 0 else min_p)(size, axis=axes, keepdims=keepdim)
    if ord == 0:
        return sum_p(ew.sign(size), axis=axes, keepdims=keepdim)
    if ord > 0:
        return _power_or_zero(sum_p(_power_or_zero(size, ord), axis=axes, keepdims=keepdim), 1 / ord)
    zero = any_p(ew.equal(x, 0), axis=axes, keepdims=True)
    total = sum_p(ew.where(zero, 1.0, size) ** ord, axis=axes, keepdims=keepdim) ** (1 / ord)
    return ew.where(zero if keepdim else reshape_p(zero, shape=tuple(total.shape)), 0.0, total)


def _power_or_zero(x: Array, exponent: float) -> Array:
    """x ** exponent for x >= 0 and a positive exponent, with gradient 0 at x = 0 instead of inf times 0."""
    zero = ew.equal(x, 0)
    return ew.where(zero, 0.0, ew.where(zero, 1.0, x) ** exponent)


@takes_complex
def norm(x: Array, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """PyTorch's `norm`: the vector norm of order `p` over `dim`; "fro" is 2, "nuc" the sum of singular values.

    Other norms of matrices are in `linalg`.
    """
    if p in {"fro", None}:
        p = 2
    if p == "nuc":
        from glassgrad.ops.factorise import nuclear_norm

        return nuclear_norm(x if dtype is None else astype(x, dtype), dim, keepdim)
    if isinstance(p, str):
        raise bad_option("norm", "p", p, "a number, inf, 'fro' or 'nuc'; other matrix norms are in linalg")
    return vector_norm(x, p, dim, keepdim, dtype=dtype)


@takes_complex
def dist(x: Array, other: Array, p: Any = 2) -> Array:
    """The norm of x - other."""
    return vector_norm(x - other, p)


@takes_complex
def renorm(x: Array, p: float, dim: int, maxnorm: float) -> Array:
    """`x` with each slice along `dim` whose p-norm exceeds `maxnorm` scaled down to that norm.

    As in PyTorch, the divisor is the norm plus 1e-7.

    Raises:
        ArgumentError: fewer than two dimensions, a `p` that is not positive, or a negative `maxnorm`.
    """
    ndim = len(x.shape)
    if ndim < 2:
        raise bad_option("renorm", "input", f"an array of shape {tuple(x.shape)}", "two dimensions or more")
    if not p > 0:
        raise bad_option("renorm", "p", p, "a number above 0")
    if not maxnorm >= 0:
        raise bad_option("renorm", "maxnorm", maxnorm, "0 or more")
    others = tuple(axis for axis in range(ndim) if axis != canonical_axis(dim, ndim))
    size = vector_norm(x, p, others, keepdim=True)
    return x * ew.where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)
