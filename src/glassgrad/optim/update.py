"""From gradients to new weights: scale, check, clip, step. The same code runs eagerly and in a compiled step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from glassgrad.engine.mode import MODE, TRACING
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.terms import weak
from glassgrad.engine.writes import MUTATIONS
from glassgrad.nn.utils.clip_grad import clip_grad_value_, clip_grads_with_norm_, get_total_norm
from glassgrad.ops import elementwise as ew
from glassgrad.ops.shape import copy_p
from glassgrad.optim.ema import EMA
from glassgrad.optim.optimizer import Optimizer


class Updated(NamedTuple):
    """The outcome of an update: the norm of the gradients before clipping, and whether the step was made.

    Each is a 0-d Tensor, or None if not requested.
    """

    norm: Tensor | None
    made: Tensor | None


def clip(parameters: Iterable[Tensor], max_norm: float | None, clip_value: float | None) -> Tensor:
    """Clip gradients by their total norm, then elementwise; return the norm before."""
    listed = [parameter for parameter in parameters if parameter._grad is not None]
    norm = get_total_norm([parameter._grad for parameter in listed if parameter._grad is not None])
    if max_norm is not None:
        clip_grads_with_norm_(listed, max_norm, norm)
    if clip_value is not None:
        clip_grad_value_(listed, clip_value)
    return norm


def update(
    optimizer: Optimizer,
    *,
    factor: float | Tensor = 1.0,
    max_norm: float | None = None,
    clip_value: float | None = None,
    skip_nonfinite: bool = False,
    norm: bool = False,
    averages: EMA | None = None,
) -> Updated:
    """Make an optimizer step from the current gradients.

    Args:
        optimizer: the optimizer of parameters with gradients.
        factor: multiplies the gradients first: 1 / micro-batches, 1 / loss scale.
        max_norm: clip the gradients to this total norm.
        clip_value: clip every element of the gradients to this size.
        skip_nonfinite: do not change weights, state and averages if the norm is NaN or inf.
        norm: return the norm even if nothing needs it.
        averages: an `EMA` to update after the step.

    In a compiled step, a skipped update is computed and then discarded by a select between old and new values. So the
    optimizer's state must exist beforehand (see `has_state`).
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if not (isinstance(factor, float) and factor == 1.0):
        _multiply(parameters, factor)
    if not (norm or skip_nonfinite or max_norm is not None or clip_value is not None):
        _step(optimizer, averages)
        return Updated(None, None)
    total = clip(parameters, max_norm, clip_value)
    if not skip_nonfinite:
        _step(optimizer, averages)
        return Updated(total, None)
    if not MODE.flags & TRACING:
        fine = bool(np.isfinite(total.array))
        if fine:
            _step(optimizer, averages)
        return Updated(total, make(np.asarray(fine), None, False))
    fine = ew.isfinite(total.array)
    made = make(fine, None, False)
    before = OldValues(_changing(optimizer, parameters, averages))
    _step(optimizer, averages)
    before.restore_unless(made)
    return Updated(total, made)


class OldValues:
    """The old values of tensors, to restore if a step is skipped; works eagerly and in a compiled step.

    Example:
        >>> import glassgrad as gg
        >>> state = gg.zeros(2)
        >>> before = OldValues([state])
        >>> _ = state.add_(1)
        >>> before.restore_unless(gg.tensor(False))
        >>> state
        tensor([0., 0.])
    """

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        # A write changes the value of a Symbol, so the old value needs a copy (which costs nothing when compiled).
        self._kept = [
            (tensor, array := tensor.lifted(), getattr(array, "version", 0), copy_p(array)) for tensor in tensors
        ]

    def restore_unless(self, made: Tensor) -> None:
        """Restore the old value of every tensor if `made` is false."""
        for tensor, array, version, old in self._kept:
            if type(array) is np.ndarray:
                if not made:
                    tensor.array[...] = old
                    MUTATIONS.record(tensor.array)
            elif tensor.array is not array or array.version != version:
                tensor.array = ew.where(made.array, tensor.array, old)


def has_state(optimizer: Optimizer) -> bool:
    """Tell whether an optimizer has state for its parameters."""
    return any(bool(values) for values in optimizer.state.values())


def _step(optimizer: Optimizer, averages: EMA | None) -> None:
    optimizer.step()
    if averages is not None:
        averages.update()


def _multiply(parameters: list[Tensor], factor: float | Tensor) -> None:
    by = factor.lifted() if isinstance(factor, Tensor) else factor
    for parameter in parameters:
        g = parameter._grad
        if g is None:
            continue
        array = g.lifted()
        if type(array) is np.ndarray:
            array *= array.dtype.type(by)
            MUTATIONS.record(array)
        else:
            g.array = array * weak(by, array.dtype)


def _changing(optimizer: Optimizer, parameters: list[Tensor], averages: EMA | None) -> list[Tensor]:
    """Return every tensor that a step may write."""
    state = [value for values in optimizer.state.values() for value in values.values() if isinstance(value, Tensor)]
    return [*parameters, *state, *(averages.tensors() if averages is not None else ())]
