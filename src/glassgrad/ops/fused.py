"""Fused primitives: hot composites with a hand-written backward, for speed in eager mode.

Each states its `decompose`, the same function in other ops; a generic test compares the two.
Forwards get NumPy arrays and may work in place on arrays that they allocated.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import swap_last
from glassgrad.ops.core import Array, Fused, Rule, fused
from glassgrad.ops.index import one_hot_p, take_along_axis_p
from glassgrad.ops.kernels import channels, products
from glassgrad.ops.kernels.choose import max_along, row_starts
from glassgrad.ops.kernels.sums import ones, over, sum_columns, sum_rows
from glassgrad.ops.linalg import matmul
from glassgrad.ops.places import all_classes, check_classes
from glassgrad.ops.reduce import log_softmax_p, softmax_p, sum_p
from glassgrad.ops.samples import S, integers, positive
from glassgrad.ops.shape import astype, reshape_p

FROM, SUMMED_FROM = products.FROM, products.SUMMED_FROM

# --- linear ---------------------------------------------------------------------------------------


def _linear(xp: ModuleType, x: Array, weight: Array, bias: Array | None = None) -> tuple[Array, None]:
    if x.ndim != 2:
        y, _ = _linear(xp, x.reshape(-1, x.shape[-1]), weight, bias)
        return y.reshape(*x.shape[:-1], weight.shape[0]), None
    if x.size * weight.shape[0] >= FROM or x.size >= SUMMED_FROM or weight.size >= SUMMED_FROM:
        found = products.product(x, weight.T, bias)
        if found is not None:
            return found, None
    y = x.dot(weight.T)  # the method has less overhead than the operator
    if bias is not None:
        y += bias
    return y, None


def _linear_vjp(g: Array, needs: Sequence[bool], _r: None, x: Array, weight: Array, *bias: Array) -> Any:
    # y = x wT + b:  dx = g w,  dw = gT x,  db = sum of g over rows.
    if g.ndim != 2:
        rows, flat = g.reshape(-1, g.shape[-1]), x.reshape(-1, x.shape[-1])
        dx, *rest = _linear_vjp(rows, needs, None, flat, weight, *bias)
        return None if dx is None else dx.reshape(x.shape), *rest
    if x.size * weight.shape[0] >= FROM or x.size >= SUMMED_FROM or weight.size >= SUMMED_FROM:
        dx = products.matmul(g, weight) if needs[0] else None
        dw = products.matmul(g.T, x) if needs[1] else None
    else:
        dx = g.dot(weight) if needs[0] else None
        dw = g.T.dot(x) if needs[1] else None
    if not bias:
        return dx, dw
    return dx, dw, sum_rows(g) if needs[2] else None


def _linear_decomposed(x: Array, weight: Array, bias: Array | None = None) -> Array:
    y = matmul(x, swap_last(weight))
    return y if bias is None else y + bias


def _linear_vjp_in_ops(
    g: Array, needs: Sequence[bool], x: Array, weight: Array, *bias: Array
) -> Sequence[Array | None]:
    dx = matmul(g, weight) if needs[0] else None
    if len(g.shape) != 2 and any(needs[1:]):
        rows = math.prod(g.shape[:-1])
        g, x = reshape_p(g, shape=(rows, g.shape[-1])), reshape_p(x, shape=(rows, x.shape[-1]))
    dw = matmul(swap_last(g), x) if needs[1] else None
    if not bias:
        return dx, dw
    return dx, dw, sum_p(g, axis=(0,), keepdims=False) if needs[2] else None


linear_p = fused(
    "linear",
    _linear,
    joint_vjp=_linear_vjp,
    decompose=_linear_decomposed,
    vjp_in_ops=_linear_vjp_in_ops,
    takes_complex=True,
)
linear_p.describe("x @ wT + b", "g @ w, gT @ x, sum(g)")
linear_p.samples = [S((4, 3), (2, 3), (2,)), S((4, 3), (2, 3)), S((2, 4, 3), (2, 3), (2,)), S((3,), (2, 3), (2,))]

# --- half precision in single ---------------------------------------------------------------------

_HALF = np.dtype(np.float16)


def _fused_in_single(
    name: str, forward: Rule, *, joint_vjp: Rule, decompose: Rule, companions: int = 0, **facts: Any
) -> Fused:
    """Declare a fused primitive that computes half precision in single precision and rounds only its results.

    Squares, and the 1 / std**3 in the derivative of 1 / std, soon leave the range of half precision, and a row's
    variance loses most of its digits in it.
    """

    @functools.wraps(forward)
    def in_single(xp: ModuleType, x: Array, *parts: Array, **params: Any) -> tuple[Any, Any]:
        if x.dtype.char != "e":
            return forward(xp, x, *parts, **params)  # type: ignore[no-any-return]  # as fused primitives do
        found, residuals = forward(xp, *map(_single, (x, *parts)), **params)
        return _rounded(found, x, parts), residuals

    @functools.wraps(joint_vjp)
    def vjp_in_single(g: Array, needs: Sequence[bool], residuals: Any, x: Array, *parts: Array, **params: Any) -> Any:
        if x.dtype.char != "e":
            return joint_vjp(g, needs, residuals, x, *parts, **params)
        found = joint_vjp(_single(g), needs, residuals, *map(_single, (x, *parts)), **params)
        return tuple(c if c is None else astype(c, to.dtype) for c, to in zip(found, (x, *parts), strict=True))

    @functools.wraps(decompose)
    def decomposed_in_single(x: Array, *parts: Array, **params: Any) -> Any:
        if x.dtype != _HALF:
            return decompose(x, *parts, **params)
        return _rounded(decompose(*map(_single, (x, *parts)), **params), x, parts)

    return fused(
        name, in_single, joint_vjp=vjp_in_single, decompose=decomposed_in_single, companions=companions, **facts
    )


def _single(x: Array) -> Array:
    return astype(x, np.float32) if x.dtype == _HALF else x


def _rounded(found: Array, x: Array, parts: Sequence[Array]) -> Any:
    """Return a result in the common dtype of its arguments, and its statistics in the dtype of the input."""
    dtype = np.result_type(x.dtype, *(part.dtype for part in parts))
    if type(found) is tuple:
        return astype(found[0], dtype), *(astype(one, x.dtype) for one in found[1:])
    return astype(found, dtype)


# --- batch normalisation --------------------------------------------------------------------------


def _channel(x: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the averaged axes (all but 1) and the shape in which a channel vector broadcasts against x."""
    ndim = len(x.shape)
    if ndim == 2:
        return (0,), (1, x.shape[1])
    return (0, *range(2, ndim)), (1, x.shape[1], *(1,) * (ndim - 2))


def _over_batch(x: Array, share: float = 1.0) -> Array:
    """Sum over all axes but the channels, times `share`, in a shape that broadcasts against x."""
    axes, beside = _channel(x)
    total = over(x, axes).reshape(beside)
    return total if share == 1 else total * share


def _batch_norm(xp: ModuleType, x: Array, weight: Array, bias: Array, *, eps: float) -> tuple[Any, Any]:
    flat = x.ndim == 2
    if not flat:
        ready = channels.batch_norm(x, weight, bias, eps)
        if ready is not None:
            return ready
        beside = _channel(x)[1]
        weight, bias = weight.reshape(beside), bias.reshape(beside)
    y, mean, var, *kept = _normalised(x, weight, bias, eps)
    return (y, mean, var) if flat else (y, mean.reshape(-1), var.reshape(-1)), tuple(kept)


def _normalised(x: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, ...]:
    """Return the result, mean, variance and the residuals for the vjp."""
    share = x.shape[1] / max(x.size, 1)
    over_batch = sum_rows if x.ndim == 2 else _over_batch
    mean = over_batch(x, share)
    centred = x - mean
    mean = mean + over_batch(centred, share)  # corrects its rounding error
    np.subtract(x, mean, centred)
    y = centred * centred
    var = over_batch(y, share)
    inverse = var + eps
    np.reciprocal(np.sqrt(inverse, inverse), inverse)
    scale = inverse * weight
    np.multiply(centred, scale, y)
    y += bias
    return y, mean, var, centred, inverse, scale


def _batch_norm_vjp(
    g: Array, needs: Sequence[bool], residuals: Any, x: Array, *_rest: Array, eps: float
) -> Sequence[Array | None]:
    if type(residuals) is channels.Statistics:
        return channels.batch_norm_vjp(g, x, residuals)
    found = _normalised_back(g, *residuals) if needs[0] else _scale_back(g, *residuals)
    if x.ndim == 2:
        return found
    dx, dw, db = found
    return dx, dw.reshape(-1), db.reshape(-1)


def _normalised_back(g: Array, centred: Array, inverse: Array, scale: Array) -> tuple[Array, Array, Array]:
    # With c = x - mean, r = 1 / std: dw = r sum(g c), db = sum(g), dx = w r (g - mean(g) - c r r mean(g c)).
    share = 1 / max(g.size // g.shape[1], 1)
    over_batch = sum_rows if g.ndim == 2 else _over_batch
    db = over_batch(g)
    dx = g * centred
    dw = over_batch(dx)
    dw *= inverse
    np.multiply(centred, dw * inverse * -share, dx)
    dx += g
    dx -= db * share
    dx *= scale
    return dx, dw, db


def _scale_back(g: Array, centred: Array, inverse: Array, _scale: Array) -> tuple[None, Array, Array]:
    """Return the cotangents of weight and bias only."""
    over_batch = sum_rows if g.ndim == 2 else _over_batch
    dw = over_batch(g * centred)
    dw *= inverse
    return None, dw, over_batch(g)


def _batch_norm_decomposed(x: Array, weight: Array, bias: Array, *, eps: float) -> tuple[Array, Array, Array]:
    axes, beside = _channel(x)
    share = x.shape[1] / max(math.prod(x.shape), 1)
    mean = sum_p(x, axis=axes, keepdims=True) * share
    centred = x - mean
    var = sum_p(ew.square(centred), axis=axes, keepdims=True) * share
    inverse_std = ew.rsqrt(var + eps)
    normal = centred * inverse_std
    scale = reshape_p(weight, shape=beside)
    y = normal * scale + reshape_p(bias, shape=beside)
    flat = (x.shape[1],)
    return y, reshape_p(mean, shape=flat), reshape_p(var, shape=flat)


batch_norm_p = _fused_in_single(
    "batch_norm", _batch_norm, joint_vjp=_batch_norm_vjp, decompose=_batch_norm_decomposed, companions=2
)
batch_norm_p.describe(
    "(x - mean) / sqrt(var + eps) * w + b",
    "w / std * (g - mean(g) - n * mean(g * n))",
    notes="Ioffe and Szegedy 2015. Beside y it returns the mean and the biased variance of each channel",
)
batch_norm_p.samples = [S((5, 3), positive(3), (3,), eps=1e-5), S((4, 2, 3, 2), positive(2), (2,), eps=1e-3)]

# --- cross entropy --------------------------------------------------------------------------------


def _labels_to_keep(target: Array, classes: int, ignore_index: int, op: str) -> Any:
    """Check that labels are class indices; return the mask of those to keep, None for all.

    Raises:
        KindError: the labels are not integers.
        IndexRangeError: a label is outside 0..classes-1 and is not `ignore_index`.
    """
    if target.dtype.kind not in "iu":
        raise errors.EXPECTED_CLASSES(op=op, dtype=target.dtype, where=provenance.here())
    if all_classes(target, classes) and not 0 <= ignore_index < classes:
        return None
    keep = target != ignore_index
    check_classes(op, target[keep], classes)
    return None if keep.all() else keep


def _cross_entropy(
    xp: ModuleType, logits: Array, target: Array, *, reduction: str, ignore_index: int
) -> tuple[Array, tuple[Array, Array, Any, Any, float]]:
    rows, classes = logits.shape
    keep = _labels_to_keep(target, classes, ignore_index, "cross_entropy")
    scale = _weight_of_each(reduction, rows if keep is None else int(keep.sum()))
    loss, *kept = _losses(logits, target, reduction, keep, scale)
    return loss, (*kept, keep, scale)


def _weight_of_each(reduction: str, count: int) -> float:
    """Return the weight of each loss in the result."""
    if reduction == "mean":
        return 1 / count if count else math.nan
    return 1.0


def _losses(logits: Array, target: Array, reduction: str, keep: Array | None, scale: float) -> tuple[Array, ...]:
    """Return the loss, exponentials and their total for each row, and the positions of the targets' logits."""
    rows, classes = logits.shape
    picked_at = row_starts(rows, classes) + (target if keep is None else np.where(keep, target, 0))
    exponentials = np.subtract(logits, max_along(logits, 1), order="C")
    picked = exponentials.take(picked_at)
    np.exp(exponentials, exponentials)
    total = sum_columns(exponentials)
    losses = np.log(total)
    losses -= picked
    if keep is not None:
        losses = np.where(keep, losses, losses.dtype.type(0))
    if reduction == "none":
        return losses, exponentials, total, picked_at
    few = 0 < rows <= 512
    loss = losses.dot(ones(rows, losses.dtype, scale)) if few else over(losses, 0) * scale
    return np.asarray(loss), exponentials, total, picked_at


def _cross_entropy_vjp(
    g: Array, needs: Sequence[bool], residuals: Any, logits: Array, target: Array, **_p: Any
) -> Sequence[Array | None]:
    # d loss / d logits = softmax - one_hot, times the cotangent of the row.
    exponentials, total, picked_at, keep, scale = residuals
    weight = g * scale
    if keep is not None:
        weight = np.where(keep, weight, 0)  # the weight is NaN if all labels are ignored
    d = np.multiply(exponentials, (weight / total)[:, None], order="C")
    d.reshape(-1)[picked_at] -= weight
    return d, None


def _cross_entropy_decomposed(logits: Array, target: Array, *, reduction: str, ignore_index: int) -> Array:
    if target.dtype.kind not in "iu":
        raise errors.EXPECTED_CLASSES(op="cross_entropy", dtype=target.dtype, where=provenance.here())
    column = (target.shape[0], 1)
    keep = ew.not_equal(target, ignore_index)
    safe = ew.where(keep, target, 0)
    log_probs = log_softmax_p(logits, axis=1)
    classes = reshape_p(safe, shape=column)
    picked = take_along_axis_p(log_probs, classes, axis=1)
    losses = ew.where(keep, -reshape_p(picked, shape=(target.shape[0],)), 0)
    if reduction == "none":
        return losses
    loss = sum_p(losses, axis=(0,), keepdims=False)
    if reduction == "sum":
        return loss
    count = sum_p(astype(keep, logits.dtype), axis=(0,), keepdims=False)
    return loss / count


def _cross_entropy_vjp_in_ops(
    g: Array, needs: Sequence[bool], logits: Array, target: Array, *, reduction: str, ignore_index: int
) -> Sequence[Array | None]:
    rows, classes = logits.shape
    keep = ew.not_equal(target, ignore_index)
    if reduction == "mean":
        g = g / sum_p(astype(keep, logits.dtype), axis=(0,), keepdims=False)
    weight = reshape_p(ew.where(keep, g, 0), shape=(rows, 1))
    hot = astype(one_hot_p(ew.where(keep, target, 0), count=classes), logits.dtype)
    return (softmax_p(logits, axis=1) - hot) * weight, None


cross_entropy_p = fused(
    "cross_entropy",
    _cross_entropy,
    joint_vjp=_cross_entropy_vjp,
    decompose=_cross_entropy_decomposed,
    vjp_in_ops=_cross_entropy_vjp_in_ops,
)
cross_entropy_p.describe("-log softmax(x)[target]", "softmax(x) - one_hot(target)")
cross_entropy_p.samples = [
    S((4, 3), integers(0, 3, 4), reduction="mean", ignore_index=-100),
    S((4, 3), integers(0, 3, 4), reduction="sum", ignore_index=1),
    S((4, 3), integers(0, 3, 4), reduction="none", ignore_index=-100),
]
