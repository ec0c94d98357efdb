"""Normalisations as functions: batch, layer, RMS, group, instance and local response norm, and unit vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.tensor import Tensor
from glassgrad.ops import elementwise as ew
from glassgrad.ops.arrange import pad
from glassgrad.ops.complex_input import guard_all, refuse_complex, refuses_complex, takes_complex
from glassgrad.ops.complexes import is_complex
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.fused import batch_norm_p
from glassgrad.ops.fused_norm import layer_norm_p, rms_norm_p
from glassgrad.ops.narrow import finfo
from glassgrad.ops.norms import vector_norm
from glassgrad.ops.pooling import avg_pool1d
from glassgrad.ops.shape import reshape_p


@refuses_complex
def batch_norm(
    input: Array,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Normalise each channel (axis 1) by the batch, or outside training by the running statistics.

    The running statistics are updated in place with the unbiased variance (Ioffe and Szegedy 2015).

    Raises:
        ShapeError: a single value for each channel in training, which has no variance.
    """
    shape = tuple(input.shape)
    if shape == (0,):  # no elements, and no channels: as in PyTorch
        return reshape_p(input, shape=shape)
    if len(shape) < 2:
        where = provenance.here()
        raise errors.WRONG_INPUT(layer="batch_norm", expected="(N, C, ...)", given=shape, where=where)
    channels = shape[1]
    if not training:
        refuse_complex("batch_norm", (input, running_mean, running_var, weight, bias))
        beside = (1, channels, *(1,) * (len(shape) - 2))
        scale = ew.rsqrt(running_var.reshape(beside) + eps)
        if weight is not None:
            scale = scale * weight.reshape(beside)
        y = (input - running_mean.reshape(beside)) * scale
        return y if bias is None else y + bias.reshape(beside)
    count = math.prod(shape) // channels if channels else 0
    if count == 1:
        raise errors.ONE_VALUE_PER_CHANNEL(given=shape, where=provenance.here())
    if weight is None:
        weight = np.ones(channels, input.dtype)
    if bias is None:
        bias = np.zeros(channels, input.dtype)
    y, mean, var = batch_norm_p(input, weight, bias, eps=eps)
    if running_mean is not None:
        unbiased = momentum * count / max(count - 1, 1)
        new_mean, new_var = getattr(mean, "array", mean), getattr(var, "array", var)
        old_mean, old_var = running_mean.lifted(), running_var.lifted()
        if type(old_mean) is type(old_var) is type(new_mean) is type(new_var) is np.ndarray:
            _blend_arrays(old_mean, new_mean, 1 - momentum, momentum)
            _blend_arrays(old_var, new_var, 1 - momentum, unbiased)
        else:
            _blend(running_mean, mean, 1 - momentum, momentum)
            _blend(running_var, var, 1 - momentum, unbiased)
    return y


def _blend_arrays(running: Array, new: Array, keep: float, take: float) -> None:
    """running = keep * running + take * new, in place."""
    running *= keep
    running += new * take


def _blend(running: Any, batch: Any, keep: float, take: float) -> None:
    """running = keep * running + take * batch, in place; a Symbol is rebound."""
    mixed, new = running.lifted(), batch.array if isinstance(batch, Tensor) else batch
    if type(new) is not np.ndarray and type(mixed) is np.ndarray and hasattr(new, "no_numbers"):
        raise errors.INPLACE_UNBATCHED(op="the update of running statistics", where=provenance.here())
    mixed *= keep
    mixed += new * take
    running.array = mixed


def _trailing(input: Array, normalized_shape: Any, op: str) -> int:
    """Return how many last dimensions are normalised, having checked that they are `normalized_shape`."""
    given = tuple(input.shape)
    wanted = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    dims = len(wanted)
    if dims == 0 or given[len(given) - dims :] != wanted:
        sizes = ", ".join(map(str, wanted))
        raise errors.WRONG_INPUT(layer=op, expected=f"(..., {sizes})", given=given, where=provenance.here())
    return dims


def layer_norm(
    input: Array, normalized_shape: Any, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """(x - mean) / sqrt(var + eps) * weight + bias, over the last dimensions (Ba et al. 2016).

    Raises:
        ShapeError: the last dimensions of the input are not `normalized_shape`.
    """
    dims = _trailing(input, normalized_shape, "layer_norm")
    if weight is None:
        y = layer_norm_p(input, dims=dims, eps=eps)
        return y if bias is None else y + bias
    parts = (weight,) if bias is None else (weight, bias)
    return layer_norm_p(input, *parts, dims=dims, eps=eps)


@takes_complex
def rms_norm(input: Array, normalized_shape: Any, weight: Array | None = None, eps: float | None = None) -> Array:
    """x / sqrt(mean(x**2) + eps) * weight, over the last dimensions (Zhang and Sennrich 2019).

    `eps` defaults to the machine epsilon of the dtype, as in PyTorch. For complex numbers, x**2 is the plain square.
    """
    dims = _trailing(input, normalized_shape, "rms_norm")
    small = float(finfo(input.dtype).eps) if eps is None else eps
    if is_complex(input):
        return rms_norm_p.decomposed(input, *(() if weight is None else (weight,)), dims=dims, eps=small)
    return rms_norm_p(input, *(() if weight is None else (weight,)), dims=dims, eps=small)


def group_norm(
    input: Array, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """Normalise each example over groups of channels, (N, C, ...) (Wu and He 2018).

    Raises:
        ArgumentError: the channels do not divide into `num_groups`.
    """
    shape = tuple(input.shape)
    channels = shape[1] if len(shape) > 1 else 0
    if num_groups <= 0 or not channels or channels % num_groups:
        expected = f"a divisor of the {channels} channels"
        raise bad_option("group_norm", "num_groups", num_groups, expected)
    size = math.prod(shape[1:]) // num_groups
    y = reshape_p(layer_norm_p(reshape_p(input, shape=(shape[0], num_groups, size)), dims=1, eps=eps), shape=shape)
    beside = (1, channels, *(1,) * (len(shape) - 2))
    if weight is not None:
        y = y * reshape_p(weight, shape=beside)
    return y if bias is None else y + reshape_p(bias, shape=beside)


def instance_norm(
    input: Array,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Array | None = None,
    bias: Array | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Normalise each channel of each example, (N, C, ...) (Ulyanov et al. 2016)."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    shape = tuple(input.shape)
    size = math.prod(shape[2:])
    if size == 1:
        raise errors.ONE_VALUE_PER_CHANNEL(given=shape, where=provenance.here())
    if running_mean is not None:
        axes = tuple(range(2, len(shape)))
        plain = input.detach()
        _blend(running_mean, plain.mean((0, *axes)), 1 - momentum, momentum)
        _blend(running_var, plain.var(axes).mean(0), 1 - momentum, momentum)
    return group_norm(input, shape[1], weight, bias, eps)


def local_response_norm(input: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Array:
    """x / (k + alpha * mean of x**2 over `size` neighbouring channels)**beta (Krizhevsky et al. 2012)."""
    shape = tuple(input.shape)
    if not math.prod(shape):
        return input
    squares = ew.square(input).reshape(shape[0], 1, shape[1], -1).transpose(2, 3)
    flat = pad(squares.reshape(-1, 1, shape[1]), (size // 2, (size - 1) // 2))
    mean = avg_pool1d(flat, size, 1).reshape(shape[0], 1, -1, shape[1]).transpose(2, 3).reshape(shape)
    return input / (mean * alpha + k) ** beta


@takes_complex
def normalize(
    input: Array, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12, out: Array | None = None
) -> Array:
    """x / max(norm of x along `dim`, eps), written to `out` if there is one."""
    norm = vector_norm(input, p, dim, keepdim=True)
    result = input / ew.maximum(norm, eps)
    return result if out is None else out.copy_(result)


__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "rms_norm"]

guard_all(globals(), __all__)
