"""Attributes of PyTorch's dtypes on NumPy's: ``x.dtype.is_floating_point``.

Our dtypes are NumPy's, and a type written in C rejects new attributes by assignment. Its dictionary accepts them, so
`attach` adds the names there while glassgrad stands in for PyTorch, and `undo` removes them.
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
    """Return the dictionary of `numpy.dtype`; an empty one if it is not accessible."""
    if sys.implementation.name != "cpython":
        return {}
    found = [one for one in gc.get_referents(np.dtype.__dict__) if type(one) is dict]
    return found[0] if found and "itemsize" in found[0] else {}


def attach() -> None:
    """Add the names."""
    _attributes().update({name: property(read) for name, read in NAMES.items()})
    _changed()


def undo() -> None:
    """Remove the names."""
    for name in NAMES:
        _attributes().pop(name, None)
    _changed()


def _changed() -> None:
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.dtype))  # lookups are cached
