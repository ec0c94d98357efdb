"""Sizes of the updates of each parameter: the difference of the weights before and after the step.

So they work for every optimizer of every library, including momentum, decay and schedule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glassgrad.doctor.library import Array
from glassgrad.doctor.quantities.field import Field
from glassgrad.doctor.quantities.statistics import norm

FIELDS = (Field("update_norm", "parameter", "Euclidean norm of the change of the values in the step", "next"),)


def between(before: Sequence[Array], after: Sequence[Array]) -> list[Array]:
    """Return the update of each parameter."""
    with np.errstate(all="ignore"):  # infinite weights
        return [now - then for then, now in zip(before, after, strict=True)]


def measure(moved: Sequence[Array]) -> Array:
    """Return the norm of the update of each parameter.

    Example:
        >>> measure(between([np.zeros(2)], [np.array([3.0, 4.0])]))
        array([5.])
    """
    return np.array([norm(one) for one in moved])
