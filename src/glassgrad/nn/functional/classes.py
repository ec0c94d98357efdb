"""Losses of a choice among classes: cross-entropy and negative log-likelihood, with all their options."""

from __future__ import annotations

import math

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.autocasting import all_in_single, in_single
from glassgrad.nn.reduction import reduction_of
from glassgrad.ops import elementwise as ew
from glassgrad.ops.complex_input import guard_all, refuse_complex, refuses_complex
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.fused import _labels_to_keep, cross_entropy_p, linear_p
from glassgrad.ops.index import take_along_axis_p
from glassgrad.ops.reduce import log_softmax_p, sum, sum_p
from glassgrad.ops.shape import astype, permute_p, reshape_p


@refuses_complex
def cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """-log softmax(input)[target] for input (N, C), (N, C, ...) or (C,).

    Args:
        input: logits, classes in dimension 1 (0 without a batch).
        target: class indices (N,), (N, ...) or (); or probabilities of the shape of `input`.
        weight: C numbers that multiply the losses of each class; the mean is divided by those of the targets.
        size_average: PyTorch's older spelling of `reduction`, with `reduce`.
        ignore_index: targets that do not count (class indices only).
        reduce: see `size_average`.
        reduction: "mean", "sum" or "none".
        label_smoothing: this share of each target's probability is spread evenly over the classes.

    Raises:
        IndexRangeError: a label outside 0..C-1.
        ArgumentError: label_smoothing outside [0, 1].
        KindError: float targets that are not probabilities.

    Example:
        >>> import glassgrad as gg
        >>> logits = gg.tensor([[2.0, 0.0], [0.0, 0.0]])
        >>> round(gg.nn.functional.cross_entropy(logits, gg.tensor([0, 1])).item(), 4)
        0.41
    """
    if (
        weight is None
        and not label_smoothing
        and size_average is None
        and reduce is None
        and reduction == "mean"
        and len(shape := input.shape) == 2
        and target.shape == tuple(shape)[:1]
    ):
        # The usual case calls its primitive, which autocast knows, at once: the checks below cost a few microseconds.
        return cross_entropy_p(input, target, reduction="mean", ignore_index=ignore_index)
    reduction = reduction_of(reduction, size_average, reduce, "cross_entropy")
    return _cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def linear_cross_entropy(
    input: Array,
    linear_weight: Array,
    target: Array,
    *,
    linear_bias: Array | None = None,
    weight: Array | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: object = None,
) -> Array:
    """`cross_entropy` of linear maps of the input (N, in) or (in,).

    Args:
        input: what is mapped.
        linear_weight, linear_bias: (C, in) or (C, ..., in), and (C,) or (C, ...): the map.
        target: class indices or probabilities, as for `cross_entropy`.
        weight, reduction, label_smoothing: those of `cross_entropy`.
        ignore_index: targets that do not count, -100 by default.
        options: PyTorch's hints for its chunks, without an effect here.
    """
    between = tuple(linear_weight.shape[1:-1])
    flat = linear_weight.reshape(-1, linear_weight.shape[-1])
    logits = linear_p(input, flat) if linear_bias is None else linear_p(input, flat, linear_bias.reshape(-1))
    if between:
        logits = logits.reshape(*input.shape[:-1], linear_weight.shape[0], *between)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


@in_single
def _cross_entropy(
    input: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str, label_smoothing: float
) -> Array:
    refuse_complex("cross_entropy", (input, target, weight))
    if not 0 <= label_smoothing <= 1:
        raise bad_option("cross_entropy", "label_smoothing", label_smoothing, "a number in [0, 1]")
    if tuple(target.shape) == tuple(input.shape) and target.dtype.kind in "fV":
        return _soft(input, target, weight, reduction, label_smoothing)
    rows, labels = _as_rows("cross_entropy", input, target)
    if weight is None and label_smoothing == 0:
        y = cross_entropy_p(rows, labels, reduction=reduction, ignore_index=ignore_index)
    else:
        logp = log_softmax_p(rows, axis=1)
        y = _weighted("cross_entropy", logp, labels, weight, ignore_index, reduction, label_smoothing)
    return reshape_p(y, shape=tuple(target.shape)) if reduction == "none" else y


def nll_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """-input[target] for log-probabilities (N, C), (N, C, ...) or (C,); options as in `cross_entropy`."""
    reduction = reduction_of(reduction, size_average, reduce, "nll_loss")
    rows, labels = _as_rows("nll_loss", input, target)
    y = _weighted("nll_loss", rows, labels, weight, ignore_index, reduction, 0.0)
    return reshape_p(y, shape=tuple(target.shape)) if reduction == "none" else y


def _as_rows(op: str, input: Array, target: Array) -> tuple[Array, Array]:
    """Return logits (rows, C) and labels (rows,)."""
    ndim = len(input.shape)
    expected = tuple(input.shape[:1]) + tuple(input.shape[2:]) if ndim > 1 else ()
    if tuple(target.shape) != expected or ndim == 0:
        raise errors.LOSS_SHAPES(
            op=op, input=tuple(input.shape), target=tuple(target.shape), expected=expected, where=provenance.here()
        )
    if ndim == 1:
        return reshape_p(input, shape=(1, *input.shape)), reshape_p(target, shape=(1,))
    if ndim == 2:
        return input, target
    moved = permute_p(input, axes=(0, *range(2, ndim), 1))
    count = math.prod(expected)
    return reshape_p(moved, shape=(count, input.shape[1])), reshape_p(target, shape=(count,))


def _weighted(
    op: str, logp: Array, labels: Array, weight: Array | None, ignore_index: int, reduction: str, smoothing: float
) -> Array:
    """The general case of class indices: (1 - s) w[t] nll + s / C sum of w nll, over targets that are not ignored."""
    classes = logp.shape[1]
    known = getattr(labels, "array", labels)
    ignored = None
    if type(known) is np.ndarray:
        ignored = _labels_to_keep(known, classes, ignore_index, op)
    elif labels.dtype.kind not in "iu":
        raise errors.EXPECTED_CLASSES(op=op, dtype=labels.dtype, where=provenance.here())
    _check_weight(op, weight, classes)
    numbers = type(known) is np.ndarray and type(getattr(logp, "array", logp)) is np.ndarray
    if numbers and weight is None and smoothing == 0:
        held = np.asarray(known)
        if held.size and ignored is None:
            return _picked(logp, held.reshape(-1, 1), reduction)
    keep = ew.not_equal(labels, ignore_index)
    safe = ew.where(keep, labels, 0)
    counts = astype(keep, logp.dtype)
    share = counts if weight is None else counts * weight[safe]
    picked = reshape_p(logp.gather(1, reshape_p(safe, shape=(labels.shape[0], 1))), shape=tuple(labels.shape))
    losses = _masked(keep, -picked) * share
    if smoothing > 0:
        spread = -sum(logp if weight is None else logp * weight, 1)
        losses = losses * (1 - smoothing) + _masked(keep, spread) * (smoothing / classes)
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum(losses)
    with np.errstate(invalid="ignore"):  # the mean over nothing is NaN, as elsewhere
        return sum(losses) / sum(share)


def _picked(logp: Array, labels: Array, reduction: str) -> Array:
    """Return the loss of labels (N, 1) that all count, in few ops: a small batch waits mostly for their calls."""
    picked = take_along_axis_p(logp, labels, axis=1)
    if reduction == "none":
        return -reshape_p(picked, shape=(len(labels),))
    total = sum_p(picked, axis=(0, 1), keepdims=False)
    return -(total / len(labels) if reduction == "mean" else total)


def _check_weight(op: str, weight: Array | None, classes: int) -> None:
    if weight is not None and tuple(weight.shape) != (classes,):
        expected = f"({classes},), a number for each class"
        raise bad_option(op, "weight.shape", tuple(weight.shape), expected)


def _masked(keep: Array, losses: Array) -> Array:
    """Return the losses with 0 for ignored targets, even where the loss is infinite."""
    return ew.where(keep, losses, 0)


def _soft(input: Array, target: Array, weight: Array | None, reduction: str, smoothing: float) -> Array:
    """The loss for targets that are probabilities: -sum w t log softmax(x), the mean over examples (not classes)."""
    axis = 1 if len(input.shape) > 1 else 0
    classes = input.shape[axis]
    _check_weight("cross_entropy", weight, classes)
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    logp = log_softmax_p(input, axis=axis)
    if weight is not None:
        logp = logp * reshape_p(weight, shape=(classes, *(1,) * (len(input.shape) - axis - 1)))
    losses = -sum(logp * target, axis)
    if reduction == "none":
        return losses
    count = math.prod(losses.shape)
    whole = sum(losses)
    return whole / (count or math.nan) if reduction == "mean" else whole


__all__ = ["cross_entropy", "linear_cross_entropy", "nll_loss"]

guard_all(globals(), __all__)
all_in_single(globals(), ["nll_loss"])
