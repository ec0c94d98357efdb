"""The origin of a NaN: in a tape that is still there, in a step that is taken again, in a loop that is watched."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any


def guard_of(model: Any, optimizers: Sequence[Any], *, inf: bool, allow: Collection[str]) -> Any:
    """Return who looks for NaN in the steps of a model."""
    from glassgrad.doctor.nans.guard import Guard

    return Guard(model, optimizers, inf=inf, allow=allow)


__all__ = ["guard_of"]
