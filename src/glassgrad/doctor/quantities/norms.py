"""The norm of the whole gradient, before and after clipping, and the loss of the step."""

from __future__ import annotations

import math
from collections.abc import Iterable

from glassgrad.doctor.quantities.field import Field

FIELDS = (
    Field("loss", "step", "the loss, if it was passed to update()"),
    Field("total_norm", "step", "norm of all gradients as one vector, before clipping"),
    Field("total_norm_clipped", "step", "the same after clipping, if update_after_clip() was called", "clipped"),
)


def total(norms: Iterable[float]) -> float:
    """Return the norm of several vectors as one: the norm of their norms. NaN marks a missing gradient.

    Example:
        >>> total([3.0, 4.0])
        5.0
    """
    return math.hypot(*norms)
