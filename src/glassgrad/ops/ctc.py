"""Connectionist temporal classification (Graves et al. 2006): -log of the probability of a label sequence.

Labels are interleaved with blanks; in each time step a path stays at its place in this row, moves to the next, or skips
a blank between two different labels. `alpha[t, n, s]` is the log-probability of all path prefixes of example n that are
on place s at time t, `beta` that of the suffixes. All examples advance together, one time step after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.core import Array, fused
from glassgrad.ops.index import take_along_axis_p
from glassgrad.ops.reduce import logsumexp_p
from glassgrad.ops.samples import S
from glassgrad.ops.shape import broadcast_to_p, concatenate_p, reshape_p, stack

_NEVER = -math.inf


def _extended(targets: Array, blank: int) -> Array:
    """(N, L) labels to (N, 2 L + 1) with a blank before, between and after them."""
    n, length = targets.shape
    places = np.full((n, 2 * length + 1), blank, np.int64)
    places[:, 1::2] = targets
    return places


def _may_skip(places: Array, blank: int) -> Array:
    """A mask of the places that a path may reach from two places before."""
    allowed = np.zeros(places.shape, bool)
    allowed[:, 2:] = (places[:, 2:] != blank) & (places[:, 2:] != places[:, :-2])
    return allowed


def _logaddexp3(a: Array, b: Array, c: Array) -> Array:
    top = np.maximum(np.maximum(a, b), c)
    shift = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(a - shift) + np.exp(b - shift) + np.exp(c - shift)) + shift


def _shifted(row: Array, steps: int) -> Array:
    """The row shifted to the right and filled with -inf, the log of probability 0."""
    moved = np.full_like(row, _NEVER)
    moved[:, steps:] = row[:, : row.shape[1] - steps]
    return moved


def _alphas(emitted: Array, skip: Array) -> Array:
    alpha = np.full_like(emitted, _NEVER)
    alpha[0, :, :2] = emitted[0, :, :2]
    for time in range(1, len(emitted)):
        before = alpha[time - 1]
        skipped = np.where(skip, _shifted(before, 2), _NEVER)
        alpha[time] = _logaddexp3(before, _shifted(before, 1), skipped) + emitted[time]
    return alpha


def _forward(
    xp: ModuleType, x: Array, targets: Array, lengths: Array, target_lengths: Array, *, blank: int
) -> tuple[Array, tuple[Array, ...]]:
    places = _extended(targets, blank)  # places after a target's end do not matter: paths only move forward
    n = len(places)
    emitted = x[:, np.arange(n)[:, None], places]
    skip = _may_skip(places, blank)
    alpha = _alphas(emitted, skip)
    last = alpha[lengths - 1, np.arange(n)]
    # With zero time steps, only the empty sequence is possible.
    last = np.where((lengths == 0)[:, None], np.where(np.arange(places.shape[1]) == 0, 0.0, _NEVER), last)
    ends = _ends(last, target_lengths)
    losses = -_logaddexp3(ends[:, 0], ends[:, 1], np.full(n, _NEVER))
    return losses.astype(x.dtype, copy=False), (alpha, emitted, places, skip, losses)


def _ends(last: Array, target_lengths: Array) -> Array:
    """The two places where a path may end: the last label and the blank after it."""
    rows = np.arange(len(last))
    behind = last[rows, 2 * target_lengths]
    label = np.where(target_lengths > 0, last[rows, np.maximum(2 * target_lengths - 1, 0)], _NEVER)
    return np.stack([label, behind], axis=1)


def _betas(emitted: Array, skip: Array, lengths: Array, target_lengths: Array) -> Array:
    """Log-probabilities of the suffixes of paths, without the emission at their first time."""
    times, n, width = emitted.shape
    place = np.arange(width)
    final = (place == 2 * target_lengths[:, None]) | (place == 2 * target_lengths[:, None] - 1)
    beta = np.full_like(emitted, _NEVER)
    after = np.full((n, width), _NEVER)
    skip_from = np.zeros_like(skip)
    skip_from[:, : width - 2] = skip[:, 2:]
    for time in range(times - 1, -1, -1):
        one, two = np.full_like(after, _NEVER), np.full_like(after, _NEVER)
        one[:, : width - 1], two[:, : width - 2] = after[:, 1:], after[:, 2:]
        inner = _logaddexp3(after, one, np.where(skip_from, two, _NEVER))
        beta[time] = np.where((lengths - 1 == time)[:, None], np.where(final, 0.0, _NEVER), inner)
        after = beta[time] + emitted[time]
    return beta


def _vjp(
    g: Array,
    needs: Sequence[bool],
    residuals: Any,
    x: Array,
    targets: Array,
    lengths: Array,
    target_lengths: Array,
    *,
    blank: int,
) -> Any:
    # d loss / d x[t, n, c] = -P(the path is on label c at time t | the labels), the sum over places with label c.
    alpha, emitted, places, skip, losses = residuals
    beta = _betas(emitted, skip, lengths, target_lengths)
    n = x.shape[1]
    possible = np.isfinite(losses)
    with np.errstate(invalid="ignore"):
        weights = np.where(possible[:, None], np.exp(alpha + beta + losses[:, None]), 0)
    d = np.zeros(x.shape, weights.dtype)
    for place in range(places.shape[1]):
        d[:, np.arange(n), places[:, place]] -= weights[:, :, place]
    # The gradient of an impossible sequence is NaN, unless its loss was dropped.
    d *= np.where(possible | (g == 0), g, math.nan)[:, None]
    return d.astype(x.dtype, copy=False), None, None, None


def _decomposed(x: Array, targets: Array, lengths: Array, target_lengths: Array, *, blank: int) -> Array:
    times, n = x.shape[:2]
    length = targets.shape[1]
    ends_at = reshape_p(target_lengths, shape=(n, 1))
    blanks = np.full((n, length), blank, np.int64)
    interleaved = reshape_p(stack([blanks, targets], 2), shape=(n, 2 * length))
    places = concatenate_p(interleaved, np.full((n, 1), blank, np.int64), axis=1)
    width = 2 * length + 1
    two_before = concatenate_p(np.full((n, min(2, width)), blank, np.int64), places[:, : width - 2], axis=1)
    skip = ew.logical_and(ew.not_equal(places, blank), ew.not_equal(places, two_before))
    rows = broadcast_to_p(reshape_p(places, shape=(1, n, width)), shape=(times, n, width))
    emitted = take_along_axis_p(x, rows, axis=2)
    alpha = ew.where(np.arange(width) < 2, emitted[0], _NEVER)
    never = np.full((n, 2), _NEVER, x.dtype)
    start = np.where(np.arange(width) == 0, 0.0, _NEVER).astype(x.dtype)
    found = ew.where(ew.equal(reshape_p(lengths, shape=(n, 1)), 0), start, alpha)
    for time in range(1, times):
        one = concatenate_p(never[:, :1], alpha[:, : width - 1], axis=1)
        two = concatenate_p(never, alpha[:, : width - 2], axis=1) if width > 2 else np.full((n, width), _NEVER)
        moves = stack([alpha, one, ew.where(skip, two, _NEVER)], 0)
        alpha = logsumexp_p(moves, axis=(0,), keepdims=False) + emitted[time]
        found = ew.where(ew.equal(reshape_p(lengths, shape=(n, 1)), time + 1), alpha, found)
    behind = take_along_axis_p(found, 2 * ends_at, axis=1)
    label = take_along_axis_p(found, ew.maximum(2 * ends_at - 1, 0), axis=1)
    ends = concatenate_p(ew.where(ew.greater(ends_at, 0), label, _NEVER), behind, axis=1)
    return -logsumexp_p(ends, axis=(1,), keepdims=False)


def _log_probabilities(*shape: int) -> Any:
    def draw(rng: np.random.Generator) -> Array:
        x = rng.normal(size=shape)
        return x - np.log(np.exp(x).sum(-1, keepdims=True))

    return draw


def _fixed(*values: Array) -> Any:
    return lambda rng: np.array(values)


ctc_loss_p = fused("ctc_loss", _forward, joint_vjp=_vjp, decompose=_decomposed)
ctc_loss_p.describe(
    "-log sum over paths of exp(sum of x along the path)",
    "-P(label c at time t | the labels)",
    notes="Graves et al. 2006; x are log-probabilities (time, examples, classes)",
)
ctc_loss_p.samples = [
    S(_log_probabilities(4, 2, 3), _fixed([1, 2], [2, 2]), _fixed(4, 4), _fixed(2, 2), blank=0),
    S(_log_probabilities(5, 3, 4), _fixed([1, 2], [3, 0], [0, 0]), _fixed(5, 3, 4), _fixed(2, 1, 0), blank=2),
]
