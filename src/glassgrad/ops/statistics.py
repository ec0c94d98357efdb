"""Covariance matrices and finite differences of samples, composed of other ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.complexes import complex as complex_of
from glassgrad.ops.complexes import conj, imag, is_complex, real
from glassgrad.ops.core import Array, bad_option, canonical_axis
from glassgrad.ops.linalg import matmul
from glassgrad.ops.promotion import float_of
from glassgrad.ops.reduce import mean, sum_p
from glassgrad.ops.shape import astype, cat, reshape_p
from glassgrad.ops.strided import diagonal_p

# --- covariance -----------------------------------------------------------------------------------


def _as_floats(x: Array) -> Array:
    """Return integers and booleans as float64, like `mean` and `var` (docs/adr/005); PyTorch returns float32."""
    return astype(x, float_of(x.dtype, np.dtype(np.float64)))


def _all(x: Array) -> Array:
    return sum_p(x, axis=tuple(range(len(x.shape))), keepdims=False)


@takes_complex
def cov(x: Array, *, correction: int = 1, fweights: Array | None = None, aweights: Array | None = None) -> Array:
    """Covariances of the rows of (variables, observations), with the divisor observations - `correction`.

    `fweights` are the integer counts of the observations, `aweights` their relative weights. One variable, (n,),
    gives its variance, of shape ().

    Example:
        >>> import glassgrad as gg
        >>> gg.cov(gg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
    """
    if len(x.shape) > 2:
        raise bad_option("cov", "input", tuple(x.shape), "at most two dimensions")
    rows = reshape_p(x, shape=(1,) * (2 - len(x.shape)) + tuple(x.shape))
    rows = _as_floats(rows)
    count = rows.shape[1]
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None and tuple(weights.shape) != (count,):
            raise bad_option("cov", name, tuple(weights.shape), f"a vector of {count} weights")
    weights = _product(fweights, aweights)
    if weights is None:
        centred = rows - mean(rows, 1, keepdim=True)
        scattered, total = matmul(centred, conj(centred).T), max(count - correction, 0)
    else:
        weights = astype(weights, real(rows).dtype)
        share = _all(weights)
        centred = rows - sum_p(rows * weights, axis=(1,), keepdims=True) / share
        lost = correction if aweights is None or not correction else correction * _all(weights * aweights) / share
        scattered, total = matmul(centred, conj(centred * weights).T), ew.maximum(share - lost, 0)
    found = scattered / np.asarray(total, real(rows).dtype) if isinstance(total, int) else scattered / total
    return found if found.shape[0] > 1 else reshape_p(found, shape=())


def _product(fweights: Array | None, aweights: Array | None) -> Array | None:
    if fweights is None or aweights is None:
        return aweights if fweights is None else fweights
    return fweights * aweights


@takes_complex
def corrcoef(x: Array) -> Array:
    """Pearson's correlations of the rows of (variables, observations): `cov` divided by both standard deviations."""
    found = cov(x)
    if not found.shape:
        return found / found
    deviations = ew.sqrt(real(diagonal_p(found, offset=0, axis1=0, axis2=1)))
    size = deviations.shape[0]
    found = found / reshape_p(deviations, shape=(size, 1)) / deviations
    if is_complex(found):
        return complex_of(_clipped(real(found)), _clipped(imag(found)))
    return _clipped(found)


def _clipped(x: Array) -> Array:
    """Clip to [-1, 1], which rounding errors may exceed."""
    return ew.minimum(ew.maximum(x, -1), 1)


# --- derivatives of samples -----------------------------------------------------------------------


@takes_complex
def gradient(input: Array, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Array, ...]:
    """Derivatives of a sampled function along dimensions: central differences, one-sided at the edges.

    Args:
        input: the values.
        spacing: the distance of neighbours (one number, or one per dimension), or the coordinates as vectors.
        dim: a dimension or several; all of them by default.
        edge_order: 1 or 2, the order of the differences at the edges.

    Returns:
        One tensor per dimension.

    Example:
        >>> import glassgrad as gg
        >>> gg.gradient(gg.tensor([0.0, 1.0, 4.0, 9.0]))[0].tolist()
        [1.0, 2.0, 4.0, 5.0]
    """
    ndim = len(input.shape)
    several = [dim] if isinstance(dim, int) else range(ndim) if dim is None else dim
    axes = [canonical_axis(axis, ndim) for axis in several]
    steps = list(spacing) if isinstance(spacing, list | tuple) else [1 if spacing is None else spacing] * len(axes)
    if len(steps) != len(axes):
        raise bad_option("gradient", "spacing", spacing, f"a number, or one for each of {len(axes)} dimensions")
    if edge_order not in (1, 2):
        raise bad_option("gradient", "edge_order", edge_order, "1 or 2")
    x = _as_floats(input)
    return tuple(_slope(x, axis, step, edge_order) for axis, step in zip(axes, steps, strict=True))


def _slope(x: Array, axis: int, step: Any, order: int) -> Array:
    """The derivative along one axis."""
    size = x.shape[axis]
    if size <= order:
        raise bad_option("gradient", "input", tuple(x.shape), f"more than {order} elements along dimension {axis}")
    lead = (slice(None),) * axis

    def at(start: int, stop: int | None) -> Array:
        return x[(*lead, slice(start, stop))]

    gaps = _gaps(step, size, len(x.shape) - axis - 1, real(x).dtype)
    left, right = gaps[:-1], gaps[1:]
    before = _weights(left, right)
    inner = sum(w * at(k, size - 2 + k) for k, w in enumerate(before)) if size > 2 else None
    if order == 1:
        first, last = (at(1, 2) - at(0, 1)) / gaps[:1], (at(size - 1, None) - at(size - 2, size - 1)) / gaps[-1:]
    else:
        first = sum(w * at(k, k + 1) for k, w in enumerate(_edge_weights(gaps[:1], gaps[1:2])))
        mirrored = _edge_weights(gaps[-1:], gaps[-2:-1])
        last = sum(-w * at(size - 1 - k, size - k) for k, w in enumerate(mirrored))
    return cat([part for part in (first, inner, last) if part is not None], axis)


def _gaps(step: Any, size: int, behind: int, dtype: Any) -> Array:
    """The distances between neighbours, with trailing dimensions to broadcast."""
    if hasattr(step, "shape") and len(step.shape) == 1:
        if step.shape[0] != size:
            raise bad_option("gradient", "spacing", tuple(step.shape), f"{size} places")
        places = step if step.dtype.kind in "fV" else astype(step, dtype)
        return reshape_p(places[1:] - places[:-1], shape=(size - 1,) + (1,) * behind)
    return np.full((size - 1,) + (1,) * behind, float(step), dtype)


def _weights(left: Array, right: Array) -> Sequence[Array]:
    """Weights of both neighbours and the place itself in the derivative: exact for parabolas."""
    both = left + right
    return -right / (left * both), (right - left) / (left * right), left / (right * both)


def _edge_weights(near: Array, far: Array) -> Sequence[Array]:
    """Weights at an edge, of the place itself and the next two."""
    both = near + far
    return -(near + both) / (near * both), both / (near * far), -near / (far * both)
