"""Search for the origin of a NaN: on a tape that still exists, in a replayed step, or in a watched loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from glassgrad import errors
from glassgrad.doctor import library
from glassgrad.doctor.library import Module, Optimizer


def guard_of(model: Module, optimizers: Sequence[Optimizer], *, inf: bool, allow: Collection[str]) -> Any:
    """Return the guard that looks for NaN in the steps of a model.

    Raises:
        KindError: the model has hand-written layers.
    """
    if library.is_by_hand(model):
        raise errors.WATCH_NAN(given=f"{type(model).__module__}.{type(model).__name__}")
    if library.is_torch(model):
        from glassgrad.doctor.nans.torch_guard import TorchGuard

        return TorchGuard(model, optimizers, inf=inf, allow=allow)
    from glassgrad.doctor.nans.guard import Guard

    return Guard(model, optimizers, inf=inf, allow=allow)
