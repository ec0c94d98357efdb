"""`x.data` as in PyTorch: writes through it are not seen by the backward pass, which then reads the new values.

Elsewhere such a write to a saved value is refused, because the gradient is wrong. Programs that overwrite a buffer of
noise between two samples depend on PyTorch's behaviour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from glassgrad.engine.mode import MODE, TRACING
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import Array

_DATA: property = vars(Tensor)["data"]
_SEEN = cast("Callable[[Tensor], Tensor]", _DATA.fget)


def _data(x: Tensor) -> Tensor:
    """The same memory without history, and without a record of writes to it; assigning replaces the memory."""
    array: Array = x.array
    if type(array) is not np.ndarray or array.dtype.kind not in "fiub" or MODE.flags & TRACING or MODE.stop is not None:
        return _SEEN(x)
    # A memory of its own to the log of writes, which knows memory by the array that owns it.
    return make(np.asarray(array.data), None, False)


PATCHES = ((Tensor, "data", property(_data, _DATA.fset)),)

__all__ = ["PATCHES"]
