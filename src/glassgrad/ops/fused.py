"""Fused primitives: hot composites with a hand-derived backward, for speed in eager mode.

Each states its `decompose`, the same function in other ops; a generic test holds the two together.
Forwards get NumPy arrays and may work in place on what they allocated themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad import errors, provenance
from glassgrad.ops import elementwise as ew
from glassgrad.ops.core import Array, fused
from glassgrad.ops.index import take_along_axis_p
from glassgrad.ops.linalg import matmul, swap_last
from glassgrad.ops.reduce import log_softmax_p, sum_p
from glassgrad.ops.samples import S, integers, positive
from glassgrad.ops.shape import astype, reshape_p

# --- linear ---------------------------------------------------------------------------------------


def _linear(xp: Any, x: Array, weight: Array, bias: Array | None = None) -> tuple[Array, None]:
    rows = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
    y = rows @ weight.T
    if bias is not None:
        y += bias
    return (y if x.ndim == 2 else y.reshape(*x.shape[:-1], weight.shape[0])), None


def _linear_vjp(g: Array, needs: Sequence[bool], _r: None, x: Array, weight: Array, *bias: Array) -> Any:
    # y = x wT + b:  dx = g w,  dw = gT x,  db = sum of g over rows.
    rows = g if g.ndim == 2 else g.reshape(-1, g.shape[-1])
    dx = (rows @ weight).reshape(x.shape) if needs[0] else None
    dw = rows.T @ x.reshape(-1, x.shape[-1]) if needs[1] else None
    if not bias:
        return dx, dw
    return dx, dw, np.add.reduce(rows, axis=0) if needs[2] else None


def _linear_decomposed(x: Array, weight: Array, bias: Array | None = None) -> Array:
    y = matmul(x, swap_last(weight))
    return y if bias is None else y + bias


linear_p = fused(
    "linear", _linear, joint_vjp=_linear_vjp, decompose=_linear_decomposed, formula="x @ wT + b",
    derivative="g @ w, gT @ x, sum(g)",
    samples=(S((4, 3), (2, 3), (2,)), S((4, 3), (2, 3)), S((2, 4, 3), (2, 3), (2,)), S((3,), (2, 3), (2,))),
)  # fmt: skip

# --- batch normalisation --------------------------------------------------------------------------


def _channel(x: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes that are averaged (all but 1) and the shape of a channel vector beside x."""
    ndim = len(x.shape)
    return (0, *range(2, ndim)), (1, x.shape[1], *(1,) * (ndim - 2))


def _batch_norm(xp: Any, x: Array, weight: Array, bias: Array, *, eps: float) -> tuple[Any, Any]:
    axes, beside = _channel(x)
    per_channel = 1 / (x.size // x.shape[1])
    mean = np.add.reduce(x, axis=axes, keepdims=True)
    mean *= per_channel
    normal = x - mean
    var = np.add.reduce(normal * normal, axis=axes, keepdims=True)
    var *= per_channel
    inverse = 1 / np.sqrt(var + eps)
    normal *= inverse
    y = normal * weight.reshape(beside)
    y += bias.reshape(beside)
    return (y, mean.reshape(-1), var.reshape(-1)), (normal, inverse)


def _batch_norm_vjp(
    gs: Sequence[Array | None], needs: Sequence[bool], residuals: Any, x: Array, weight: Array, bias: Array, *, eps: float
) -> Any:
    # With n = (x - mean) / std: dw = sum(g n), db = sum(g), dx = w / std (g - mean(g) - n mean(g n)).
    normal, inverse = residuals
    axes, beside = _channel(x)
    count = x.size // x.shape[1]
    g, g_mean, g_var = gs
    dx = dw = db = None
    if g is not None:
        db = np.add.reduce(g, axis=axes, keepdims=True)
        dw = np.add.reduce(g * normal, axis=axes, keepdims=True)
        if needs[0]:
            dx = normal * (dw * (-1 / count))
            dx += g
            dx -= db * (1 / count)
            dx *= inverse * weight.reshape(beside)
        dw, db = dw.reshape(-1), db.reshape(-1)
    if g_mean is not None:
        part = np.broadcast_to(g_mean.reshape(beside) / count, x.shape)
        dx = part if dx is None else dx + part
    if g_var is not None:
        part = normal * (g_var.reshape(beside) * (2 / count) / inverse)
        dx = part if dx is None else dx + part
    return dx, dw, db


def _batch_norm_decomposed(x: Array, weight: Array, bias: Array, *, eps: float) -> tuple[Array, Array, Array]:
    axes, beside = _channel(x)
    per_channel = x.shape[1] / math.prod(x.shape)
    mean = sum_p(x, axis=axes, keepdims=True) * per_channel
    centred = x - mean
    var = sum_p(ew.square(centred), axis=axes, keepdims=True) * per_channel
    y = centred * ew.rsqrt(var + eps) * reshape_p(weight, shape=beside) + reshape_p(bias, shape=beside)
    flat = (x.shape[1],)
    return y, reshape_p(mean, shape=flat), reshape_p(var, shape=flat)


batch_norm_p = fused(
    "batch_norm", _batch_norm, joint_vjp=_batch_norm_vjp, decompose=_batch_norm_decomposed, multiple=True,
    formula="(x - mean) / sqrt(var + eps) * w + b, mean, var", derivative="w / std * (g - mean(g) - n * mean(g * n))",
    samples=(S((5, 3), positive(3), (3,), eps=1e-5), S((4, 2, 3, 2), positive(2), (2,), eps=1e-3)),
    notes="Ioffe and Szegedy 2015; statistics of the batch, the biased variance",
)  # fmt: skip

# --- cross entropy --------------------------------------------------------------------------------


def check_labels(target: np.ndarray[Any, Any], classes: int, ignore_index: int, op: str) -> None:
    """Raise unless every label is a class index (or `ignore_index`)."""
    if target.dtype.kind not in "iu":
        raise errors.EXPECTED_CLASSES(op=op, dtype=target.dtype, where=provenance.here())
    # Seen as unsigned, negative labels are huge: one pass finds both ends.
    unsigned = target.view(f"u{target.dtype.itemsize}")
    if target.size and unsigned.max() >= classes:
        wrong = target[(target != ignore_index) & ((target < 0) | (target >= classes))]
        if wrong.size:
            where = provenance.here()
            raise errors.CLASS_OUT_OF_RANGE(op=op, label=wrong.flat[0], classes=classes, last=classes - 1, where=where)


def _cross_entropy(
    xp: Any, logits: Array, target: Array, *, reduction: str, ignore_index: int
) -> tuple[Array, tuple[Array, Any, Any, float]]:
    rows, classes = logits.shape
    check_labels(target, classes, ignore_index, "cross_entropy")
    shifted = logits - np.maximum.reduce(logits, axis=1, keepdims=True)
    picked_at = np.arange(rows), target
    keep = None
    if target.size and (ignore_index < 0 or ignore_index < classes):
        keep = target != ignore_index
        if keep.all():
            keep = None
        else:
            picked_at = picked_at[0], np.where(keep, target, 0)
    picked = shifted[picked_at]
    probabilities = np.exp(shifted, out=shifted)
    total = np.add.reduce(probabilities, axis=1, keepdims=True)
    losses = np.log(total[:, 0]) - picked
    probabilities /= total
    count = float(rows)
    if keep is not None:
        losses = np.where(keep, losses, 0)
        count = float(keep.sum())
    if reduction == "none":
        return losses, (probabilities, picked_at, keep, 1.0)
    loss = np.add.reduce(losses)
    if reduction == "mean":
        loss = loss * (1 / count if count else math.nan)
        return np.asarray(loss, dtype=logits.dtype), (probabilities, picked_at, keep, 1 / count if count else math.nan)
    return np.asarray(loss), (probabilities, picked_at, keep, 1.0)


def _cross_entropy_vjp(g: Array, needs: Sequence[bool], residuals: Any, logits: Array, target: Array, **_p: Any) -> Any:
    # d loss / d logits = softmax - one_hot, times the cotangent of the row.
    probabilities, picked_at, keep, scale = residuals
    d = probabilities.copy()
    d[picked_at] -= 1
    weight = g * scale
    if keep is not None:
        weight = weight * keep.astype(d.dtype)
    d *= weight if weight.ndim == 0 else weight[:, None]
    return d, None


def _cross_entropy_decomposed(logits: Array, target: Array, *, reduction: str, ignore_index: int) -> Array:
    column = (target.shape[0], 1)
    keep = ew.not_equal(target, ignore_index)
    safe = ew.where(keep, target, 0)
    picked = take_along_axis_p(log_softmax_p(logits, axis=1), reshape_p(safe, shape=column), axis=1)
    losses = ew.where(keep, -reshape_p(picked, shape=(target.shape[0],)), 0)
    if reduction == "none":
        return losses
    loss = sum_p(losses, axis=(0,), keepdims=False)
    if reduction == "sum":
        return loss
    return loss / sum_p(astype(keep, logits.dtype), axis=(0,), keepdims=False)


cross_entropy_p = fused(
    "cross_entropy", _cross_entropy, joint_vjp=_cross_entropy_vjp, decompose=_cross_entropy_decomposed,
    formula="-log softmax(x)[target]", derivative="softmax(x) - one_hot(target)",
    samples=(S((4, 3), integers(0, 3, 4), reduction="mean", ignore_index=-100),
             S((4, 3), integers(0, 3, 4), reduction="sum", ignore_index=1),
             S((4, 3), integers(0, 3, 4), reduction="none", ignore_index=-100)),
)  # fmt: skip
