"""Attributes of PyTorch's dtypes on NumPy's: ``x.dtype.is_floating_point``.

Our dtypes are NumPy's, and a type written in C takes no attributes by assignment. Its dictionary does; so while
glassgrad stands in for PyTorch the names lie there, and `undo` takes them out again.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

NAMES: dict[str, Callable[[np.dtype], bool]] = {
    "is_floating_point": lambda dtype: dtype.kind in "fV",
    "is_complex": lambda dtype: dtype.kind == "c",
    "is_signed": lambda dtype: dtype.kind in "ifcV",
}


def _attributes() -> dict[str, Any]:
    """Return the dictionary of `numpy.dtype`; an empty one where it cannot be had."""
    if sys.implementation.name != "cpython":
        return {}
    found = [one for one in gc.get_referents(np.dtype.__dict__) if type(one) is dict]
    return found[0] if found and "itemsize" in found[0] else {}


def attach() -> None:
    """Put the names there."""
    _attributes().update({name: property(read) for name, read in NAMES.items()})
    _changed()


def undo() -> None:
    """Take the names out."""
    for name in NAMES:
        _attributes().pop(name, None)
    _changed()


def _changed() -> None:
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.dtype))  # lookups are cached
