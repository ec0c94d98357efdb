"""Clipping of gradients: by their common norm (Pascanu et al. 2013) or one by one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.deprecation import deprecated
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops import elementwise as ew
from glassgrad.ops.core import Array
from glassgrad.ops.reduce import max_p, sum_p
from glassgrad.ops.shape import reshape_p, stack


def _gradients(parameters: Any) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not listed and isinstance(parameters, Iterator):
        text = errors.NOTHING_TO_CLIP.text(kind=type(parameters).__name__, where=provenance.here())
        warnings.warn(text, errors.IdleStepWarning, stacklevel=provenance.stack_level())
    return [parameter._grad for parameter in listed if parameter._grad is not None]


def _by_hand(parameters: Any) -> list[Any] | None:
    """Return the parameters if they belong to hand-written layers, whose `data` and `grad` are arrays; else None."""
    listed = parameters if isinstance(parameters, list | tuple) else [parameters]
    if not listed or hasattr(listed[0], "_grad"):
        return None
    from glassgrad import manual

    return list(listed) if all(isinstance(one, manual.Parameter) for one in listed) else None


def _norm(x: Array, order: float) -> Array:
    if type(x) is np.ndarray and order == 2:
        flat = x.reshape(-1)
        return np.sqrt(flat.dot(flat))
    flat = reshape_p(x, shape=(math.prod(x.shape),))
    if order == math.inf:
        return max_p(ew.abs(flat), axis=(0,), keepdims=False)
    if order == 2:
        return ew.sqrt(sum_p(flat * flat, axis=(0,), keepdims=False))
    return sum_p(ew.abs(flat) ** order, axis=(0,), keepdims=False) ** (1 / order)


def _total(gradients: list[Tensor], order: float) -> Array:
    if not gradients:
        return np.zeros((), np.float32)
    norms = [_norm(g.lifted(), order) for g in gradients]
    plain = all(isinstance(norm, np.ndarray | np.generic) for norm in norms)
    return _norm(np.asarray(norms) if plain else stack(norms), order)


def _scale(gradients: list[Tensor], total: Array, max_norm: float) -> None:
    factor = ew.minimum(max_norm / (total + 1e-6), 1.0)
    for g in gradients:
        array = g.lifted()
        array *= factor.astype(array.dtype)
        g.array = array
        if type(array) is np.ndarray:
            MUTATIONS.record(array)


def get_total_norm(
    tensors: Iterable[Tensor] | Tensor,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of all tensors as if they were one vector.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.utils.get_total_norm([gg.tensor([3.0]), gg.tensor([4.0])])
        tensor(5.)
    """
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    return make(_checked(_total(listed, float(norm_type)), error_if_nonfinite), None, False)


def _checked(total: Array, strict: bool) -> Array:
    if strict and not np.isfinite(total):
        raise errors.NONFINITE_NORM(norm=float(total), where=provenance.here(2))
    return np.asarray(total) if isinstance(total, np.generic) else total


def clip_grad_norm_(
    parameters: Iterable[Tensor] | Tensor,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients so that their common norm is at most `max_norm`; return the norm before.

    Args:
        parameters: tensors with gradients; those without are left out.
        max_norm: the largest norm.
        norm_type: which norm; may be inf.
        error_if_nonfinite: raise when the norm is NaN or inf; otherwise the gradients become NaN or 0.
        foreach: accepted for compatibility with PyTorch.

    Raises:
        AutogradError: a norm that is not finite, if asked to.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor([3.0, 4.0], requires_grad=True)
        >>> (x * x / 2).sum().backward()
        >>> gg.nn.utils.clip_grad_norm_([x], 1.0), [round(g, 3) for g in x.grad.tolist()]
        (tensor(5.), [0.6, 0.8])
    """
    by_hand = _by_hand(parameters)
    if by_hand is not None:
        from glassgrad.manual.clipping import clip_grad_norm_ as clip_by_hand

        norm = clip_by_hand(by_hand, max_norm, float(norm_type), error_if_nonfinite)
        return make(np.asarray(norm, np.float32), None, False)
    gradients = _gradients(parameters)
    total = _checked(_total(gradients, float(norm_type)), error_if_nonfinite)
    if gradients:
        _scale(gradients, total, float(max_norm))
    return make(total, None, False)


@deprecated("nn.utils.clip_grad_norm", instead="nn.utils.clip_grad_norm_", since="1.0", removed_in="2.0")
def clip_grad_norm(
    parameters: Iterable[Tensor] | Tensor,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Old name of `clip_grad_norm_`, with PyTorch's warning.

    Example:
        >>> import warnings
        >>> w = gg.tensor([3.0, 4.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     gg.nn.utils.clip_grad_norm([w], 1.0)
        tensor(10.)
    """
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grads_with_norm_(
    parameters: Iterable[Tensor] | Tensor, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients as `clip_grad_norm_` does, for a known norm.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0, 4.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> total = gg.nn.utils.get_total_norm([w.grad])
        >>> gg.nn.utils.clip_grads_with_norm_([w], 1.0, total)
        >>> w.grad
        tensor([0.6, 0.8])
    """
    _scale(_gradients(parameters), total_norm.array, float(max_norm))


def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every number of every gradient to [-clip_value, clip_value].

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([1.0, 2.0], requires_grad=True)
        >>> (w**3).sum().backward()
        >>> gg.nn.utils.clip_grad_value_([w], 5.0)
        >>> w.grad
        tensor([3., 5.])
    """
    limit = float(clip_value)
    by_hand = _by_hand(parameters)
    if by_hand is not None:
        from glassgrad.manual.clipping import clip_grad_value_ as clip_by_hand

        clip_by_hand(by_hand, limit)
        return
    for g in _gradients(parameters):
        array = g.lifted()
        if type(array) is np.ndarray:
            np.clip(array, -limit, limit, out=array)
            MUTATIONS.record(array)
        else:
            g.array = ew.clip_p(array, low=-limit, high=limit)


__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]
