"""How far the optimizer moved each parameter: the weights before the step against those after it.

So it is known for every optimizer of every library, with momentum, decay and schedule in it, and without being told
which one it is.
"""

from __future__ import annotations

import numpy as np

from glassgrad.doctor.quantities.field import Field
from glassgrad.doctor.statistics import Array, norm

FIELDS = (Field("update_norm", "parameter", "Euclidean norm of what the step added to the values", "next"),)


def measure(before: Array, after: Array) -> float:
    """Return the norm of the difference.

    Example:
        >>> measure(np.zeros(2), np.array([3.0, 4.0]))
        5.0
    """
    with np.errstate(invalid="ignore"):  # infinite weights
        return norm(after - before)
