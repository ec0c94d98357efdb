"""Numbers for the page: arrays in base64, single numbers as JSON."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_KINDS = {"f4": "<f4", "f8": "<f8", "u2": "<u2"}


def packed(array: ArrayLike, kind: str = "f4") -> dict[str, str]:
    """Return the numbers of an array, including NaN and infinities, as little-endian `f4`, `f8` or `u2`.

    Example:
        >>> packed([1.0])
        {'f4': 'AACAPw=='}
    """
    with np.errstate(over="ignore"):  # values beyond single precision are drawn as infinite
        held = np.ascontiguousarray(array, _KINDS[kind])
    return {kind: base64.b64encode(held.tobytes()).decode()}


def number(value: Any) -> float | str | None:
    """Return a number for JSON: NaN as None, infinities as text.

    Example:
        >>> number(0.5), number(float("nan")), number(float("-inf"))
        (0.5, None, '-inf')
    """
    value = float(value)
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
