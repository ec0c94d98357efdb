"""From gradients to new weights: clip, check, step. g are the gradients of all parameters that have one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.manual.protocols import Array


def _with_gradient(parameters: Any) -> list[Any]:
    listed = parameters if isinstance(parameters, Iterable) else [parameters]
    return [parameter for parameter in listed if parameter.grad is not None]


def total_norm(parameters: Any, norm_type: float = 2.0) -> float:
    """(sum over all gradients of |g|^p)^(1/p), as if they were one vector; for p = inf the largest |g|."""
    sizes = [np.abs(np.asarray(parameter.grad, np.float64)) for parameter in _with_gradient(parameters)]
    if norm_type == np.inf:
        return max((float(size.max(initial=0)) for size in sizes), default=0.0)
    return float(sum(float((size**norm_type).sum()) for size in sizes) ** (1 / norm_type))


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> float:
    """g ← g · min(1, max_norm / (|g| + 1e-6)), |g| the norm of all gradients together; return |g|.

    The direction of the step stays as it is (Pascanu et al. 2013). The 1e-6 is PyTorch's.

    Args:
        parameters: those without a gradient are left out.
        max_norm: the largest norm.
        norm_type: which norm; may be inf.
        error_if_nonfinite: raise when the norm is NaN or inf.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> p = manual.Parameter(np.zeros(2))
        >>> p.accumulate(np.array([3.0, 4.0]))
        >>> clip_grad_norm_([p], 1.0), p.grad.round(3).tolist()
        (5.0, [0.6, 0.8])
    """
    held = _with_gradient(parameters)
    norm = total_norm(held, norm_type)
    if error_if_nonfinite and not np.isfinite(norm):
        raise errors.MANUAL_NORM(norm=norm)
    scale(held, min(1.0, max_norm / (norm + 1e-6)) if not np.isnan(norm) else norm)
    return norm


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """g ← min(max(g, -clip_value), clip_value), number by number.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> p = manual.Parameter(np.zeros(2))
        >>> p.accumulate(np.array([3.0, -40.0]))
        >>> clip_grad_value_([p], 5.0)
        >>> p.grad
        array([ 3., -5.])
    """
    for parameter in _with_gradient(parameters):
        parameter.grad = np.clip(parameter.grad, -clip_value, clip_value)


def scale(parameters: Any, factor: float) -> None:
    """g ← factor g. New arrays, since two parameters may hold the same one as their gradient."""
    for parameter in _with_gradient(parameters):
        gradient: Array = parameter.grad
        parameter.grad = gradient * gradient.dtype.type(factor)


def update(
    optimizer: Any,
    *,
    factor: float = 1.0,
    max_norm: float | None = None,
    clip_value: float | None = None,
    skip_nonfinite: bool = False,
) -> tuple[float, bool]:
    """Scale the gradients, clip them, and step. With `skip_nonfinite`, do not step if one is NaN or inf.

    Returns:
        The norm before clipping, and whether the step was made.
    """
    if factor != 1:
        scale(optimizer.parameters, factor)
    norm = total_norm(optimizer.parameters)
    if skip_nonfinite and not np.isfinite(norm):
        return norm, False
    if max_norm is not None:
        clip_grad_norm_(optimizer.parameters, max_norm)
    if clip_value is not None:
        clip_grad_value_(optimizer.parameters, clip_value)
    optimizer.step()
    return norm, True
