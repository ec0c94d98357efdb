"""Masks with unknown values, inside a transformation: an assignment through one becomes a `where`."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import unknown
from glassgrad.ops.core import Array
from glassgrad.ops.index import getitem
from glassgrad.ops.shape import astype, reshape_p


def instead_of_mask(x: Array, index: Any, value: Any) -> tuple[Any, Array] | None:
    """Return an index and a value equivalent to assigning through a mask with unknown values; None if impossible.

    If the shape of the value does not depend on how many elements the mask selects, ``x[rest, mask] = value`` chooses
    between the value and the old element: ``x[rest, :] = where(mask, value, x[rest, :])``.
    """
    parts = index if type(index) is tuple else (index,)
    arrays = [at for at, part in enumerate(parts) if hasattr(part, "dtype")]
    if len(arrays) != 1 or not unknown(mask := parts[arrays[0]]) or mask.dtype != np.dtype(bool) or not mask.shape:
        return None
    at, width = arrays[0], len(mask.shape)
    rest = (*parts[:at], *(slice(None),) * width, *parts[at + 1 :])
    there = getitem(x, rest)
    axes = [sum(part is None or type(part) is slice for part in some) for some in (parts[:at], parts[at + 1 :])]
    first = len(there.shape) - axes[1] - width if Ellipsis in parts[:at] else axes[0]
    after = len(there.shape) - first - width
    value = value if hasattr(value, "shape") else np.asarray(value, dtype=x.dtype)
    taken = tuple(value.shape)
    if len(taken) > after:
        if taken[-after - 1] != 1:  # one element for each selected place
            return None
        taken = (*taken[: -after - 1], *(1,) * width, *taken[len(taken) - after :])
    shape = tuple(there.shape)
    if shape[first : first + width] != tuple(mask.shape) or np.broadcast_shapes(shape, taken) != shape:
        return None
    mask = reshape_p(mask, shape=(*mask.shape, *(1,) * after))
    return rest, ew.where(mask, astype(reshape_p(value, shape=taken), x.dtype), there)
