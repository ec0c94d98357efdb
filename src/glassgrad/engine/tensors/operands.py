"""Decide which operands an operator of `Tensor` accepts, and which it leaves to the class of the other operand.

Numbers, tensors and whatever NumPy can read as an array are accepted. An object that NumPy does not know (a Fraction,
a Decimal, a user's class), and an array with its own arithmetic (a quantity with a unit, a labelled array), are
foreign: the operator returns `NotImplemented`, and Python tries the other class. This is the protocol of NEP 13.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import Any

import numpy as np

from glassgrad.ops.core import INTERPRETERS

# A Tensor's own priority, as NumPy reads it: an array-like of higher priority takes precedence.
PRIORITY = 1000


def is_foreign(other: object) -> bool:
    """Tell whether an operand must be left to its own class."""
    kind: Any = type(other)
    return _foreign_class(kind) or (isinstance(other, np.generic) and other.dtype.kind not in "biufcV")


@lru_cache(maxsize=1024)
def _foreign_class(kind: Any) -> bool:
    if any(base in INTERPRETERS for base in kind.__mro__) or issubclass(kind, int | float | complex | list | tuple):
        return False
    if hasattr(kind, "__array_namespace__"):  # another library's plain array, such as CuPy's
        return False
    if _overrides(kind):
        return True
    if issubclass(kind, np.ndarray | np.generic):
        return False
    if hasattr(kind, "__array__"):
        priority = getattr(kind, "__array_priority__", 0)
        return isinstance(priority, int | float) and priority > PRIORITY
    return not (issubclass(kind, memoryview | array) or hasattr(kind, "__array_interface__"))


@lru_cache(maxsize=1024)
def _overrides(kind: type) -> bool:
    theirs = getattr(kind, "__array_ufunc__", np.ndarray.__array_ufunc__)
    return theirs is not np.ndarray.__array_ufunc__ and not any(base in INTERPRETERS for base in kind.__mro__)


def overrides_ufuncs(other: object) -> bool:
    """Tell whether a foreign class implements NumPy's functions itself."""
    kind: Any = type(other)
    return _overrides(kind)


def defers(other: object, method: str) -> bool:
    """Tell whether the class of a foreign operand has the method that Python tries if ours declines.

    If it has none, no class can compute, and our own message is more helpful than Python's.
    """
    theirs = getattr(type(other), method, None)
    return theirs is not None and theirs is not getattr(object, method, None)
