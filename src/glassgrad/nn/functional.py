"""The functions behind the layers, with PyTorch's names: `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glassgrad import tape
from glassgrad.ops import elementwise as ew
from glassgrad.ops import names as _names
from glassgrad.ops.core import Array
from glassgrad.ops.fused import batch_norm_p, cross_entropy_p, linear_p
from glassgrad.ops.index import embedding as _embedding
from glassgrad.ops.index import one_hot
from glassgrad.ops.reduce import log_softmax, softmax
from glassgrad.random import Generator, bernoulli_mask

relu, sigmoid, tanh = (_names.PUBLIC[name] for name in ("relu", "sigmoid", "tanh"))


def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """x wT + b: input (..., in), weight (out, in), bias (out,) to (..., out)."""
    return linear_p(input, weight) if bias is None else linear_p(input, weight, bias)


def embedding(input: Array, weight: Array, padding_idx: int | None = None) -> Array:
    """Rows of `weight` at the integers `input`; the row `padding_idx` gets no gradient."""
    if padding_idx is not None:
        row = padding_idx % weight.shape[0]
        kept = np.arange(weight.shape[0])[:, None] != row
        weight = ew.where(kept, weight, weight.detach())
    return _embedding(input, weight)


def dropout(input: Array, p: float = 0.5, training: bool = True, *, generator: Generator | None = None) -> Array:
    """Zero each element with probability `p` and scale the rest by 1/(1-p), in training only."""
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0
    kept = bernoulli_mask(1 - p, tuple(input.shape), generator)
    return ew.where(kept, input * (1 / (1 - p)), 0)


def batch_norm(
    input: Array,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Normalise each channel (axis 1) by the batch, or outside training by the running statistics.

    The running statistics are updated in place with the unbiased variance (Ioffe and Szegedy 2015).
    """
    channels = input.shape[1]
    if weight is None:
        weight = np.ones(channels, input.dtype)
    if bias is None:
        bias = np.zeros(channels, input.dtype)
    if not training:
        beside = (1, channels, *(1,) * (len(input.shape) - 2))
        scale = weight.reshape(beside) * ew.rsqrt(running_var.reshape(beside) + eps)
        return (input - running_mean.reshape(beside)) * scale + bias.reshape(beside)
    y, mean, var = batch_norm_p(input, weight, bias, eps=eps)
    if running_mean is not None:
        count = math.prod(input.shape) // channels
        _blend(running_mean, mean, 1 - momentum, momentum)
        _blend(running_var, var, 1 - momentum, momentum * count / max(count - 1, 1))
    return y


def _blend(running: Any, batch: Any, keep: float, take: float) -> None:
    """running = keep * running + take * batch, in place; a Symbol is rebound."""
    mixed = running.lifted()
    mixed *= keep
    mixed += tape.unwrap(batch) * take
    running.array = mixed


def cross_entropy(
    input: Array,
    target: Array,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """-log softmax(input)[target], input (N, C) or (N, C, ...) or (C,), target of class indices.

    Raises:
        ArgumentError: a label outside 0..C-1.
    """
    ndim = len(input.shape)
    if ndim == 1:
        y = cross_entropy(input[None], target[None], weight, ignore_index, reduction, label_smoothing)
        return y[0] if reduction == "none" else y
    if ndim > 2:
        order = (0, *range(2, ndim), 1)
        flat = input.permute(order).reshape(-1, input.shape[1])
        y = cross_entropy(flat, target.reshape(-1), weight, ignore_index, reduction, label_smoothing)
        return y.reshape(target.shape) if reduction == "none" else y
    return cross_entropy_p(input, target, reduction=reduction, ignore_index=ignore_index)


def nll_loss(
    input: Array,
    target: Array,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Array:
    """-input[target] for log-probabilities `input` (N, C)."""
    picked = input.gather(1, target.reshape(-1, 1)).reshape(-1)
    return reduce_loss(-picked, reduction)


def mse_loss(input: Array, target: Array, reduction: str = "mean") -> Array:
    """(input - target)**2, averaged."""
    return reduce_loss(ew.square(input - target), reduction)


def reduce_loss(losses: Array, reduction: str) -> Array:
    """Apply `reduction`: "mean", "sum" or "none"."""
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction={reduction!r} is not possible; expected 'mean', 'sum' or 'none'")
    return losses.mean() if reduction == "mean" else losses.sum()


__all__ = [
    "batch_norm", "cross_entropy", "dropout", "embedding", "linear", "log_softmax", "mse_loss", "nll_loss", "one_hot",
    "reduce_loss", "relu", "sigmoid", "softmax", "tanh",
]  # fmt: skip
