"""Results that own their memory instead of being a view of the argument or the argument itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from glassgrad.ops.core import Array
from glassgrad.ops.shape import copy_p

_Function = TypeVar("_Function", bound=Callable[..., Any])


def own_memory(function: _Function) -> _Function:
    """Make a function return a copy if its result shares memory with its first argument.

    PyTorch's functions do the same: a later write to x does not change `y = x.repeat(1, 1)`.
    """

    @functools.wraps(function)
    def owning(*args: Any, **kwargs: Any) -> Any:
        y = function(*args, **kwargs)
        x = args[0] if args else next(iter(kwargs.values()), None)
        return copy_p(y) if _shares(y, x) else y

    return owning  # type: ignore[return-value]  # the wrapper has the signature of what it wraps


def _shares(y: Array, x: Array) -> bool:
    inside, other = getattr(y, "array", y), getattr(x, "array", x)
    if isinstance(inside, np.ndarray):
        return isinstance(other, np.ndarray) and np.may_share_memory(inside, other)
    if y is x or inside is other or getattr(inside, "view", None) is not None:
        return True
    return "view" in (getattr(y, "_extra", None) or ())


__all__ = ["own_memory"]
