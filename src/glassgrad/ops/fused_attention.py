"""Fused scaled dot-product attention: softmax(q kT * scale + mask) v, with its dropout (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import swap_last
from glassgrad.ops.core import Array, fused
from glassgrad.ops.kernels import attention, products
from glassgrad.ops.kernels.parts import in_parts, pays
from glassgrad.ops.kernels.sums import ones
from glassgrad.ops.linalg import matmul
from glassgrad.ops.reduce import max_p, softmax_p, sum_p
from glassgrad.ops.samples import S, flags, positive

# Scores within this bound need no shift by the row's maximum: exp neither overflows nor underflows in float32.
_SAFE = 60.0


@lru_cache(maxsize=32)
def _causal_mask(rows: int, columns: int) -> Array:
    """Booleans that let row i see the columns up to i."""
    mask = np.tri(rows, columns, dtype=np.bool_)
    mask.flags.writeable = False
    return mask


@lru_cache(maxsize=32)
def _causal_factor(rows: int, columns: int, dtype: Any) -> Array:
    return _causal_mask(rows, columns).astype(dtype)


def _extra(extra: Sequence[Array], masked: bool, dropped: bool) -> tuple[Array | None, Array | None]:
    """Return mask and dropout factor from the arguments after q, k, v."""
    parts = list(extra)
    mask = parts.pop(0) if masked else None
    return mask, parts.pop(0) if dropped else None


def _is_boolean(mask: Array) -> bool:
    return bool(mask.dtype.kind == "b")


def _softmax_in_place(scores: Array, mask: Array | None, causal: bool) -> Array:
    """Softmax along the last axis, 0 in fully masked rows."""
    shape = scores.shape[-2:]
    if mask is None and scores.size and scores.min() > -_SAFE and scores.max() < _SAFE:
        np.exp(scores, out=scores)
        if causal:
            scores *= _causal_factor(*shape, scores.dtype)
    else:
        if mask is not None:
            if _is_boolean(mask):
                scores = np.where(mask, scores, scores.dtype.type(-math.inf))
            else:
                scores += mask
        if causal:
            scores = np.where(_causal_mask(*shape), scores, scores.dtype.type(-math.inf))
        top = np.max(scores, axis=-1, keepdims=True, initial=-math.inf)
        scores -= np.where(np.isneginf(top), scores.dtype.type(0), top)
        np.exp(scores, out=scores)
    total = scores.dot(ones(shape[1], scores.dtype))[..., None]
    np.divide(1, total, out=total, where=total != 0)
    scores *= total
    return scores


def _weights_in_parts(q: Array, k: Array, scale: float, causal: bool) -> Array | None:
    """Return the attention weights, with native code for the softmax; None if NumPy should compute them."""
    if q.dtype != k.dtype or not pays(q, math.prod(q.shape[:-1]) * k.shape[-2]):
        return None
    scores = products.matmul(q, k.swapaxes(-1, -2))
    heads = scores.reshape(-1, *scores.shape[-2:])
    weights = np.empty_like(heads)
    mask = (_causal_mask(*scores.shape[-2:]),) if causal else ()
    return weights.reshape(scores.shape) if in_parts(_weights, (heads,), mask, (weights,), scale=scale) else None


def _scores_vjp_in_parts(d: Array, weights: Array, scale: float) -> Array | None:
    """Return the cotangent of the scores from that of the weights; None if NumPy should compute it."""
    if not pays(d) or d.shape != weights.shape:
        return None
    heads = [one.reshape(-1, *one.shape[-2:]) for one in (d, weights)]
    found = np.empty_like(heads[0])
    return found.reshape(d.shape) if in_parts(_scores_vjp, heads, (), (found,), scale=scale) else None


def _weights(scores: Array, *mask: Array, scale: float) -> tuple[Array]:
    """Return softmax(scores * scale) over unmasked scores, in the form that native code takes."""
    scaled = scores * scale
    return (softmax_p(ew.where(mask[0], scaled, -math.inf) if mask else scaled, axis=2),)


def _scores_vjp(d: Array, weights: Array, *, scale: float) -> tuple[Array]:
    """Return the cotangent of scores from that of the weights, in the form that native code takes."""
    inner = sum_p(d * weights, axis=(2,), keepdims=True)
    return ((d - inner) * weights * scale,)


def _for_all_of(mask: Array, scores: Array) -> Array:
    """Return scores broadcast to the examples of a mask; usually the scores already have them."""
    if mask.shape == scores.shape[-mask.ndim :]:
        return scores
    shape = np.broadcast_shapes(scores.shape, mask.shape)
    return scores if shape == scores.shape else np.array(np.broadcast_to(scores, shape))


def _attention(
    xp: ModuleType, q: Array, k: Array, v: Array, *extra: Array, scale: float, causal: bool, masked: bool, dropped: bool
) -> tuple[Array, Any]:
    if not extra and (found := attention.attend(q, k, v, scale, causal)) is not None:
        return found
    mask, factor = _extra(extra, masked, dropped)
    weights = _attention_weights(q, k, mask, scale, causal)
    return products.matmul(weights if factor is None else weights * factor, v), weights


def _attention_weights(q: Array, k: Array, mask: Array | None, scale: float, causal: bool) -> Array:
    if mask is None and (weights := _weights_in_parts(q, k, scale, causal)) is not None:
        return weights
    scores = products.matmul(q * q.dtype.type(scale), k.swapaxes(-1, -2))
    scores = scores if mask is None else _for_all_of(mask, scores)
    return _softmax_in_place(scores, mask, causal)


def _attention_vjp(
    g: Array,
    needs: Sequence[bool],
    kept: Array,
    q: Array,
    k: Array,
    v: Array,
    *extra: Array,
    scale: float,
    causal: bool,
    masked: bool,
    dropped: bool,
) -> Sequence[Array | None]:
    # With p the weights and d the cotangent of p: ds = p (d - sum(d p)), dq = ds k, dk = dsT q, dv = pT g.
    if type(kept) is attention.Statistics:
        if (found := attention.attend_back(g, kept, q, k, v, scale, causal)) is not None:
            return found
        kept = _attention_weights(q, k, None, scale, causal)  # another thread is using the pool
    weights: Array = kept
    mask, factor = _extra(extra, masked, dropped)
    seen = weights if factor is None else weights * factor
    dv = products.matmul(seen.swapaxes(-1, -2), g) if needs[2] else None
    ds = products.matmul(g, v.swapaxes(-1, -2))
    dfactor = ds * weights if dropped and needs[-1] else None
    if factor is not None:
        ds *= factor
    scaled = q.dtype.type(scale)
    slopes = None if masked else _scores_vjp_in_parts(ds, weights, scale)
    if slopes is not None:
        ds, scaled = slopes, None
    else:
        ds -= np.vecdot(ds, weights)[..., None]
        ds *= weights
    dmask = ds if masked and needs[3] and mask is not None and not _is_boolean(mask) else None
    dq = products.matmul(ds, k) if needs[0] else None
    if dq is not None and scaled is not None:
        dq *= scaled
    dk = products.matmul(ds.swapaxes(-1, -2), q) if needs[1] else None
    if dk is not None and scaled is not None:
        dk *= scaled
    return dq, dk, dv, *((dmask,) if masked else ()), *((dfactor,) if dropped else ())


def _attention_decomposed(
    q: Array, k: Array, v: Array, *extra: Array, scale: float, causal: bool, masked: bool, dropped: bool
) -> Array:
    mask, factor = _extra(extra, masked, dropped)
    scores = matmul(q * scale, swap_last(k))
    if mask is not None:
        scores = ew.where(mask, scores, -math.inf) if _is_boolean(mask) else scores + mask
    if causal:
        scores = ew.where(_causal_mask(*scores.shape[-2:]), scores, -math.inf)
    last = len(scores.shape) - 1
    if not masked:
        weights = softmax_p(scores, axis=last)
    else:
        # A fully masked row gives 0 instead of NaN.
        alive = ew.not_equal(max_p(scores, axis=(last,), keepdims=True), -math.inf)
        weights = ew.where(alive, softmax_p(ew.where(alive, scores, 0.0), axis=last), 0.0)
    return matmul(weights if factor is None else weights * factor, v)


_SCALES = {"scale": 0.5, "causal": False, "masked": False, "dropped": False}
attention_p = fused(
    "scaled_dot_product_attention", _attention, joint_vjp=_attention_vjp, decompose=_attention_decomposed
)
attention_p.describe("softmax(q @ kT * scale + mask) @ v", "dv = pT @ g, ds = p * (d - sum(d * p)), d = g @ vT")
attention_p.samples = [
    S((2, 3, 4), (2, 3, 4), (2, 3, 5), **_SCALES),
    S((4, 3), (4, 3), (4, 2), **{**_SCALES, "causal": True}),
    S((2, 3, 4), (2, 5, 4), (2, 5, 3), (3, 5), **{**_SCALES, "masked": True}),
    S((3, 4), (5, 4), (5, 3), flags(3, 5), positive(3, 5), **{**_SCALES, "masked": True, "dropped": True}),
]
