"""At a kink, accept any slope between the slopes of the two sides, even if it differs from ours.

At relu(0) or a tie of a maximum there is no derivative but a range of subgradients, and libraries and books choose
differently. For each differing entry, the ops that used the variable are evaluated slightly to either side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad.verify.spy import Applied

Array = Any
_MOST = 60
"""The largest number of differing entries to examine."""
_STEP = 1e-6


Use = tuple[Applied, Any, Array]


@dataclass(frozen=True)
class Kink:
    """The findings at a kink: ops, number of differing entries, and whether the given slopes lie within the range.

    Attributes:
        ops: the names of the ops with a kink there.
        entries: the number of entries that differ.
        between: whether the given gradient as a whole is within the range; if False, only each entry by itself is.
    """

    ops: tuple[str, ...]
    entries: int
    between: bool


def kink_of(mine: Array, total: Array, value: Array, uses: Sequence[Use], key: Any, scale: float) -> Kink | None:
    """Return the kink that explains the difference between `mine` and the gradient `total`, or None.

    Args:
        mine, total: the given gradient and ours.
        value: the variable.
        uses: the ops that used it, each with its cotangent and the cotangent it sent to the variable.
        key: the variable's node or leaf, to find it among the arguments.
        scale: the size of the terms.
    """
    if mine.shape != total.shape or not uses:
        return None
    differ = np.argwhere(np.abs(mine - total) > 1e-7 * max(scale, 1e-300))
    if not len(differ) or len(differ) > max(_MOST, value.size // 2):
        return None
    change = (mine - total).astype(np.float64)
    bent: set[str] = set()
    for entry in differ[:_MOST]:
        unit = np.zeros(value.shape)
        unit[tuple(entry)] = 1.0
        names = _between(change, unit, value, uses, key, scale)
        if not names:
            return None
        bent |= names
    together = np.zeros(value.shape)
    together[tuple(differ.T)] = 1.0
    between = _between(change, together, value, uses, key, scale) is not None
    return Kink(tuple(sorted(bent)), len(differ), between)


def _between(
    change: Array, direction: Array, value: Array, uses: Sequence[Use], key: Any, scale: float
) -> set[str] | None:
    """Return the ops with a kink along a direction; None if the gradient plus `change` is outside of its range."""
    low = high = 0.0  # bounds on `change` along the direction
    bent: set[str] = set()
    allowed = 1e-4 * max(scale, 1e-300) * float(np.abs(direction).sum())
    for entry, cotangent, sent in uses:
        function = _along(entry, cotangent, value, direction, key)
        here, ahead, behind = (function(t) for t in (0.0, _STEP, -_STEP))
        if here is None or ahead is None or behind is None:
            return None
        left, right = (here - behind) / _STEP, (ahead - here) / _STEP
        if abs(left - right) > allowed:
            bent.add(entry.node.prim.name)
            ours = float((sent * direction).sum())
            low, high = low + min(left, right) - ours, high + max(left, right) - ours
    moved = float((change * direction).sum())
    return bent if low - allowed <= moved <= high + allowed else None


def _along(
    entry: Applied, cotangent: Array, value: Array, direction: Array, key: Any
) -> Callable[[float], float | None]:
    def function(t: float) -> float | None:
        moved = value + t * direction
        args = [
            moved if parent is key else arg
            for arg, parent in zip(entry.args, (*entry.node.parents, *[None] * len(entry.args)), strict=False)
        ]
        try:
            result = entry.node.prim.evaluate(*args, **entry.node.params)
        except (TypeError, ValueError, IndexError):
            return None
        result = result[0] if entry.node.prim.decompose is not None and isinstance(result, tuple) else result
        parts = zip(result, cotangent, strict=True) if isinstance(result, tuple) else ((result, cotangent),)
        return float(sum(np.vdot(c, part) for part, c in parts if c is not None))

    return function
