"""Native code as built-in functions, which the interpreter calls as any of its own: faster than through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from glassgrad.compile.llvm.module.target import LoadedCode, host
from glassgrad.compile.native import cache

FAST_CALL = 0x80
"""CPython's METH_FASTCALL: the code is called with an array of arguments and their number."""

_ALIVE: list[BuiltIn] = []
"""Functions refer to these by their address."""


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class BuiltIn:
    """A function of a module of native code, which is made or found on the disk, and stays as long as the process.

    Args:
        text: of the module.
        name: of the function, there and in Python.
        flags: `FAST_CALL`.
        doc: its docstring.

    Raises:
        RuntimeError: the code cannot be loaded.
    """

    def __init__(self, text: str, name: str, flags: int, doc: str) -> None:
        self._code = LoadedCode(cache.code_for(text, host().compile)[0])
        self._method = _Method(name.encode(), self._code.address(name), flags, doc.encode())
        _ALIVE.append(self)

    def of(self, receiver: object) -> Callable[..., Any]:
        """Return the function whose first argument is this object, which it keeps alive."""
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
            ("PyCFunction_NewEx", ctypes.pythonapi)
        )
        function: Callable[..., Any] = make(ctypes.addressof(self._method), receiver, None)
        return function


__all__ = ["FAST_CALL", "BuiltIn"]
