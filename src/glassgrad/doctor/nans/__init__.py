"""The origin of a NaN: in a tape that is still there, in a step that is taken again, in a loop that is watched."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from glassgrad import errors
from glassgrad.doctor import library


def guard_of(model: Any, optimizers: Sequence[Any], *, inf: bool, allow: Collection[str]) -> Any:
    """Return who looks for NaN in the steps of a model.

    Raises:
        KindError: for a model with layers by hand.
    """
    if library.is_by_hand(model):
        raise errors.WATCH_NAN(given=f"{type(model).__module__}.{type(model).__name__}")
    if library.is_torch(model):
        from glassgrad.doctor.nans.torch_guard import TorchGuard

        return TorchGuard(model, optimizers, inf=inf, allow=allow)
    from glassgrad.doctor.nans.guard import Guard

    return Guard(model, optimizers, inf=inf, allow=allow)


__all__ = ["guard_of"]
