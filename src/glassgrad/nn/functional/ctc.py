"""The loss of sequences without alignment (connectionist temporal classification), as users call it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.nn.reduction import reduce_loss, reduction_of
from glassgrad.ops import elementwise as ew
from glassgrad.ops.complex_input import guard_all
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.ctc import ctc_loss_p
from glassgrad.ops.places import check_classes
from glassgrad.ops.reduce import mean
from glassgrad.ops.shape import unsqueeze


def _lengths(given: Array) -> Array:
    return np.asarray(getattr(given, "array", given)).reshape(-1).astype(np.int64)


def ctc_loss(
    log_probs: Array,
    targets: Array,
    input_lengths: Array | Sequence[int],
    target_lengths: Array | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Array:
    """-log of the probability of label sequences under every alignment (Graves et al. 2006).

    Args:
        log_probs: (T, N, C) or (T, C), log-probabilities over time.
        targets: (N, S) labels, or all sequences one after the other in one dimension.
        input_lengths: N numbers (or one): how much of T belongs to each example.
        target_lengths: N numbers (or one).
        blank: the class that stands for no label.
        reduction: "mean" divides each loss by its target's length first, as PyTorch does.
        zero_infinity: replace infinite losses (an impossible sequence) and their gradients by 0.

    Raises:
        ArgumentError: lengths that do not fit.
        IndexRangeError: a label that is not a class.
    """
    reduction_of(reduction, None, None, "ctc_loss")
    alone = len(log_probs.shape) == 2
    x = unsqueeze(log_probs, 1) if alone else log_probs
    lengths, label_lengths = _lengths(input_lengths), _lengths(target_lengths)
    labels = np.asarray(getattr(targets, "array", targets))
    if labels.ndim == 1:
        labels = _separated(labels, label_lengths)
    _check_ctc(x, labels, lengths, label_lengths)
    # Entries after a target's end may be anything.
    filled = np.where(np.arange(labels.shape[1]) < label_lengths[:, None], labels, blank).astype(np.int64)
    check_classes("ctc_loss", filled, x.shape[2])
    losses = ctc_loss_p(x, filled, lengths, label_lengths, blank=blank)
    if zero_infinity:
        losses = ew.where(ew.isinf(losses), 0, losses)
    if reduction == "mean":
        return mean(losses / np.maximum(label_lengths, 1).astype(log_probs.dtype))
    y = reduce_loss(losses, reduction)
    return y[0] if alone and reduction == "none" else y


def _separated(labels: Array, lengths: Array) -> Array:
    """Labels one after the other as rows of a matrix, filled up with 0."""
    rows = np.zeros((len(lengths), int(lengths.max(initial=0))), np.int64)
    stops = np.cumsum(lengths)
    for row, stop, length in zip(rows, stops, lengths, strict=True):
        row[:length] = labels[stop - length : stop]
    return rows


def _check_ctc(x: Array, labels: Array, lengths: Array, label_lengths: Array) -> None:
    times, examples = x.shape[:2]
    if len(lengths) != examples or len(label_lengths) != examples or len(labels) != examples:
        raise errors.CTC_SIZES(
            examples=examples,
            targets=len(labels),
            inputs=len(lengths),
            lengths=len(label_lengths),
            where=provenance.here(),
        )
    if not times:
        raise bad_option("ctc_loss", "log_probs", f"an array of shape {tuple(x.shape)}", "at least one step")
    if lengths.max(initial=0) > times:
        raise bad_option("ctc_loss", "input_lengths", int(lengths.max()), f"at most the {times} steps of log_probs")
    if label_lengths.max(initial=0) > labels.shape[1]:
        raise bad_option("ctc_loss", "target_lengths", int(label_lengths.max()), f"at most {labels.shape[1]}")


__all__ = ["ctc_loss"]

guard_all(globals(), __all__)
