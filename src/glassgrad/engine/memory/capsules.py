"""Arrays of bfloat16 through DLPack: NumPy exchanges integers of the same size, whose type is rewritten on the way.

A DLPack capsule points to a struct that describes the memory. The type is its code (unsigned integers, bfloat16, ...)
and a number of bits: https://dmlc.github.io/dlpack/latest/c_api.html.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from glassgrad.ops.core import Array
from glassgrad.ops.narrow import NARROW, bfloat16

_UNSIGNED, _BFLOAT = 1, 4
# The offset of the type code in a `DLManagedTensor`; the newer struct starts with a header of 32 bytes.
_CODE = {b"dltensor": 20, b"dltensor_versioned": 52}


def capsule_of(array: Array, how: dict[str, Any]) -> Any:
    """Return a capsule of an array's memory; `how` are the options of `__dlpack__`."""
    if array.dtype.kind != NARROW:
        return array.__dlpack__(**how)
    capsule = array.view(np.uint16).__dlpack__(**how)
    _code(capsule).value = _BFLOAT
    return capsule


def array_of(other: Array) -> np.ndarray:
    """Return an array on the CPU memory of an object with `__dlpack__`."""
    bits = _Bits(other)
    array: np.ndarray = np.from_dlpack(bits)
    return array.view(bfloat16()) if bits.are_bfloat else array


class _Bits:
    """An array of another library with unsigned integers instead of bfloat16, so that NumPy can read it."""

    def __init__(self, other: Array) -> None:
        self.other = other
        self.are_bfloat = False

    def __dlpack_device__(self) -> Any:
        return self.other.__dlpack_device__()

    def __dlpack__(self, **how: object) -> Any:
        capsule = self.other.__dlpack__(**how)
        code = _code(capsule)
        if code.value == _BFLOAT:
            code.value, self.are_bfloat = _UNSIGNED, True
        return capsule


def _code(capsule: Any) -> ctypes.c_uint8:
    """Return the code of the type in a capsule, to read and to write."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = api.PyCapsule_GetName(capsule)
    return ctypes.c_uint8.from_address(api.PyCapsule_GetPointer(capsule, name) + _CODE[name])
