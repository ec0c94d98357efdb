"""Losses, with PyTorch's names, signatures and conventions.

Every loss takes `reduction`: "mean" (the default), "sum" or "none"; `size_average` and `reduce` are
PyTorch's older spelling of it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.autocasting import all_in_single
from glassgrad.nn.functional.distance import pairwise_distance
from glassgrad.nn.reduction import reduce_loss, reduction_of
from glassgrad.ops import elementwise as ew
from glassgrad.ops.activation import log_sigmoid, relu, softplus_p
from glassgrad.ops.complex_input import guard_all, takes_complex
from glassgrad.ops.compound import clip
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.fused_loss import binary_cross_entropy_p, binary_cross_entropy_with_logits_p, mse_loss_p
from glassgrad.ops.places import check_classes
from glassgrad.ops.reduce import amax, mean, sum
from glassgrad.ops.shape import reshape_p, unsqueeze

# --- shapes ---------------------------------------------------------------------------------------


def _same_shapes(op: str, input: Array, target: Array) -> None:
    """Warn of the classic mistake: (N, 1) against (N,) broadcasts to (N, N)."""
    if tuple(input.shape) != tuple(target.shape):
        text = errors.LOSS_BROADCASTS.text(
            op=op, input=tuple(input.shape), target=tuple(target.shape), where=provenance.caller()
        )
        warnings.warn(text, errors.LossBroadcastWarning, stacklevel=provenance.stack_level())


def _equal_shapes(op: str, input: Array, target: Array) -> None:
    if tuple(input.shape) != tuple(target.shape):
        raise errors.LOSS_SHAPES(
            op=op,
            input=tuple(input.shape),
            target=tuple(target.shape),
            expected=tuple(input.shape),
            where=provenance.here(),
        )


# --- differences ----------------------------------------------------------------------------------


def mse_loss(
    input: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Array | None = None,
) -> Array:
    """(input - target)**2, averaged; `weight` multiplies each and then divides the mean."""
    reduction = reduction_of(reduction, size_average, reduce, "mse_loss")
    _same_shapes("mse_loss", input, target)
    if weight is None:
        return mse_loss_p(input, target, reduction=reduction)
    losses = ew.square(input - target) * weight
    return sum(losses) / sum(weight) if reduction == "mean" else reduce_loss(losses, reduction)


@takes_complex
def l1_loss(
    input: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Array | None = None,
) -> Array:
    """|input - target|, averaged; `weight` multiplies each and then divides the mean."""
    reduction = reduction_of(reduction, size_average, reduce, "l1_loss")
    _same_shapes("l1_loss", input, target)
    losses = ew.abs(input - target)
    if weight is None:
        return reduce_loss(losses, reduction)
    losses = losses * weight
    return sum(losses) / sum(weight) if reduction == "mean" else reduce_loss(losses, reduction)


def smooth_l1_loss(
    input: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Array:
    """d**2 / (2 beta) where |d| < beta, else |d| - beta / 2, for d = input - target (Girshick 2015)."""
    reduction = reduction_of(reduction, size_average, reduce, "smooth_l1_loss")
    if beta < 0:
        raise bad_option("smooth_l1_loss", "beta", beta, "at least 0")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    _same_shapes("smooth_l1_loss", input, target)
    difference = input - target
    size = ew.abs(difference)
    losses = ew.where(size < beta, ew.square(difference) * (0.5 / beta), size - 0.5 * beta)
    return reduce_loss(losses, reduction)


def huber_loss(
    input: Array, target: Array, reduction: str = "mean", delta: float = 1.0, weight: Array | None = None
) -> Array:
    """d**2 / 2 where |d| <= delta, else delta (|d| - delta / 2), for d = input - target (Huber 1964).

    `weight` multiplies each; the mean, unlike that of `mse_loss`, is not divided by it.
    """
    reduction_of(reduction, None, None, "huber_loss")
    if delta <= 0:
        raise bad_option("huber_loss", "delta", delta, "more than 0")
    _same_shapes("huber_loss", input, target)
    difference = input - target
    size = ew.abs(difference)
    losses = ew.where(size <= delta, ew.square(difference) * 0.5, (size - 0.5 * delta) * delta)
    return reduce_loss(losses if weight is None else losses * weight, reduction)


# --- probabilities --------------------------------------------------------------------------------


def binary_cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """-t log(x) - (1 - t) log(1 - x) for probabilities x; logarithms stop at -100."""
    reduction = reduction_of(reduction, size_average, reduce, "binary_cross_entropy")
    _equal_shapes("binary_cross_entropy", input, target)
    known = getattr(input, "array", input)
    if type(known) is np.ndarray and ((known < 0) | (known > 1)).any():
        worst = known[(known < 0) | (known > 1)].flat[0]
        raise errors.NO_PROBABILITIES(given=float(worst), where=provenance.here())
    if weight is None:
        return binary_cross_entropy_p(input, target, reduction=reduction)
    return reduce_loss(binary_cross_entropy_p(input, target, reduction="none") * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Array | None = None,
) -> Array:
    """Binary cross-entropy of sigmoid(input), stable for logits of any size; `pos_weight` multiplies the positives.

    Example:
        >>> import glassgrad as gg
        >>> F = gg.nn.functional
        >>> round(F.binary_cross_entropy_with_logits(gg.tensor([0.0, 1e4]), gg.tensor([1.0, 1.0])).item(), 4)
        0.3466
    """
    reduction = reduction_of(reduction, size_average, reduce, "binary_cross_entropy_with_logits")
    _equal_shapes("binary_cross_entropy_with_logits", input, target)
    if weight is None and pos_weight is None:
        return binary_cross_entropy_with_logits_p(input, target, reduction=reduction)
    if pos_weight is None:
        losses = binary_cross_entropy_with_logits_p(input, target, reduction="none")
    else:
        # (1 - t) x + (1 + (w - 1) t) log(1 + exp(-x)): the positives' part times w.
        losses = (1 - target) * input + ((pos_weight - 1) * target + 1) * softplus_p(-input)
    return reduce_loss(losses if weight is None else losses * weight, reduction)


def kl_div(
    input: Array,
    target: Array,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Array:
    """t (log t - input) for log-probabilities `input`; reduction "batchmean" divides the sum by the first size."""
    batch = reduction == "batchmean"
    reduction = reduction_of("sum" if batch else reduction, size_average, reduce, "kl_div")
    if log_target:
        losses = ew.exp(target) * (target - input)
    else:
        there = ew.not_equal(target, 0)  # a negative one has no logarithm: NaN
        losses = ew.where(there, target * (ew.log(ew.where(there, target, 1)) - input), -target * input)
    y = reduce_loss(losses, reduction)
    return y * (1 / max(input.shape[0], 1)) if batch and input.shape else y


def gaussian_nll_loss(
    input: Array, target: Array, var: Array, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Array:
    """(log v + (input - target)**2 / v) / 2 with v = max(var, eps); `full` adds log(2 pi) / 2.

    `var` has the shape of `input`, or 1 or nothing instead of its last size. The floor `eps` does not stop the gradient
    (Nix and Weigend 1994).
    """
    reduction_of(reduction, None, None, "gaussian_nll_loss")
    if isinstance(var, int | float):
        var = np.full(input.shape, var, input.dtype)
    if tuple(var.shape) == tuple(input.shape[:-1]) and tuple(var.shape) != tuple(input.shape):
        var = unsqueeze(var, -1)
    known = var.detach() if hasattr(var, "detach") else var
    plain = getattr(known, "array", known)
    if type(plain) is np.ndarray and (plain < 0).any():
        raise bad_option("gaussian_nll_loss", "var", float(plain.min()), "no negative number")
    floor = clip(known, eps)
    steady = var + (floor - known)  # has the value of the floor and the gradient of var
    losses = (ew.log(steady) + ew.square(input - target) / steady) * 0.5
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduce_loss(losses, reduction)


def poisson_nll_loss(
    input: Array,
    target: Array,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """exp(x) - t x, or x - t log(x + eps) without `log_input`; `full` adds Stirling's term where t > 1."""
    reduction = reduction_of(reduction, size_average, reduce, "poisson_nll_loss")
    losses = ew.exp(input) - target * input if log_input else input - target * ew.log(input + eps)
    if full:
        many = target > 1
        safe = ew.where(many, target, 1)
        stirling = safe * ew.log(safe) - safe + ew.log(safe * (2 * math.pi)) * 0.5
        losses = losses + ew.where(many, stirling, 0)
    return reduce_loss(losses, reduction)


# --- margins --------------------------------------------------------------------------------------


def hinge_embedding_loss(
    input: Array,
    target: Array,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    reduction = reduction_of(reduction, size_average, reduce, "hinge_embedding_loss")
    far = ew.where(target != 1, clip(margin - input, 0), 0)
    return reduce_loss(far + ew.where(target != -1, input, 0), reduction)


def margin_ranking_loss(
    input1: Array,
    input2: Array,
    target: Array,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """max(0, -t (x1 - x2) + margin): t is 1 where x1 should be the larger one, else -1."""
    reduction = reduction_of(reduction, size_average, reduce, "margin_ranking_loss")
    return reduce_loss(clip(-target * (input1 - input2) + margin, 0), reduction)


def soft_margin_loss(
    input: Array, target: Array, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Array:
    """log(1 + exp(-t x)) for targets 1 and -1."""
    return reduce_loss(softplus_p(-target * input), reduction_of(reduction, size_average, reduce, "soft_margin_loss"))


def multi_margin_loss(
    input: Array,
    target: Array,
    p: int = 1,
    margin: float = 1.0,
    weight: Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """sum over other classes of max(0, margin - x[target] + x[i])**p, divided by the number of classes."""
    reduction = reduction_of(reduction, size_average, reduce, "multi_margin_loss")
    alone = len(input.shape) < 2
    x, labels = (
        (reshape_p(input, shape=(1, math.prod(input.shape))), reshape_p(target, shape=(1,)))
        if alone
        else (input, target)
    )
    plain = getattr(labels, "array", labels)
    if type(plain) is np.ndarray:
        check_classes("multi_margin_loss", plain, x.shape[1])
    column = reshape_p(labels, shape=(labels.shape[0], 1))
    distance = relu(x - x.gather(1, column) + margin)  # gradient 0 on the border, as in PyTorch, unlike clip
    if p == 2:
        distance = ew.square(distance)
    elif p != 1:
        raise bad_option("multi_margin_loss", "p", p, "1 or 2")
    if weight is not None:
        distance = distance * reshape_p(weight[labels], shape=(labels.shape[0], 1))
    others = np.arange(x.shape[1]) != column
    losses = sum(ew.where(others, distance, 0), 1) * (1 / x.shape[1])
    return losses[0] if alone and reduction == "none" else reduce_loss(losses, reduction)


def multilabel_margin_loss(
    input: Array, target: Array, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Array:
    """sum over targets j and other classes i of max(0, 1 - x[j] + x[i]), divided by the number of classes.

    A row of `target` lists class indices up to the first -1.
    """
    reduction = reduction_of(reduction, size_average, reduce, "multilabel_margin_loss")
    alone = len(input.shape) < 2
    row = (1, math.prod(input.shape))
    x, labels = (reshape_p(input, shape=row), reshape_p(target, shape=row)) if alone else (input, target)
    classes = x.shape[1]
    listed = (labels < 0).cumsum(1) == 0
    # Labels after the first -1 must also be classes or -1. The compiler supports this form of a check.
    safe = ew.where(ew.not_equal(labels, -1), labels, 0)
    is_target = amax((unsqueeze(safe, 2) == np.arange(classes)) & unsqueeze(listed, 2), 1)
    gaps = relu(1 - unsqueeze(x.gather(1, safe), 2) + unsqueeze(x, 1))  # gradient 0 on the border, as in PyTorch
    counted = unsqueeze(listed, 2) & ~unsqueeze(is_target, 1)
    losses = sum(ew.where(counted, gaps, 0), (1, 2)) * (1 / classes)
    return losses[0] if alone and reduction == "none" else reduce_loss(losses, reduction)


def multilabel_soft_margin_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """Binary cross-entropy of sigmoid(input) for each class, averaged over classes."""
    reduction = reduction_of(reduction, size_average, reduce, "multilabel_soft_margin_loss")
    losses = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    return reduce_loss(mean(losses if weight is None else losses * weight, -1), reduction)


def cosine_embedding_loss(
    input1: Array,
    input2: Array,
    target: Array,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1."""
    reduction = reduction_of(reduction, size_average, reduce, "cosine_embedding_loss")
    last = len(input1.shape) - 1
    squares = [sum(ew.square(x), last) + 1e-12 for x in (input1, input2)]
    cosine = sum(input1 * input2, last) * ew.rsqrt(squares[0] * squares[1])
    losses = ew.where(target == 1, 1 - cosine, ew.where(target == -1, clip(cosine - margin, 0), 0))
    return reduce_loss(losses, reduction)


@takes_complex
def triplet_margin_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """max(0, |a - p| - |a - n| + margin); with `swap`, |p - n| counts where it is less than |a - n|."""
    reduction = reduction_of(reduction, size_average, reduce, "triplet_margin_loss")

    def distance(a: Array, b: Array) -> Array:
        return pairwise_distance(a, b, p, eps)

    return _triplet(distance, anchor, positive, negative, margin, swap, reduction)


@takes_complex
def triplet_margin_with_distance_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    *,
    distance_function: Callable[[Array, Array], Array] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Array:
    """`triplet_margin_loss` with a custom distance function."""
    reduction_of(reduction, None, None, "triplet_margin_with_distance_loss")
    return _triplet(distance_function or pairwise_distance, anchor, positive, negative, margin, swap, reduction)


def _triplet(
    distance: Callable[[Array, Array], Array],
    anchor: Array,
    positive: Array,
    negative: Array,
    margin: float,
    swap: bool,
    reduction: str,
) -> Array:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ew.minimum(far, distance(positive, negative))
    return reduce_loss(clip(near - far + margin, 0), reduction)


__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "gaussian_nll_loss"]
__all__ += ["hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss"]
__all__ += ["multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "poisson_nll_loss"]
__all__ += ["reduce_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss"]
__all__ += ["triplet_margin_with_distance_loss"]

guard_all(globals(), __all__)
all_in_single(globals(), __all__)
