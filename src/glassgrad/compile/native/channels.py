"""Batch norm in native code for eager mode: loads the functions of `compile.llvm.loops.channels`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from glassgrad.compile.native import products

# The numbers of arrays, sizes and numbers that each takes.
_ARGUMENTS = {"norm": (8, 5, 2), "norm_back": (8, 5, 1)}


@lru_cache(maxsize=1)
def functions() -> dict[tuple[str, str], Callable[..., None]]:
    """Return the functions by name and NumPy's character of the dtype: ``norm`` and ``norm_back``.

    They take addresses of arrays, sizes and numbers, as their text says, and release the interpreter lock while they
    run. They are compiled once and cached on disk.

    Raises:
        ImportError: without llvmlite.
    """
    code = products.code("channels")
    found: dict[tuple[str, str], Callable[..., None]] = {}
    for name, (arrays, sizes, numbers) in _ARGUMENTS.items():
        for char, kind, number in (("f", "f32", ctypes.c_float), ("d", "f64", ctypes.c_double)):
            types: list[Any] = [ctypes.c_void_p] * arrays + [ctypes.c_int64] * sizes + [number] * numbers
            found[name, char] = ctypes.CFUNCTYPE(None, *types)(code.address(f"{name}_{kind}"))
    return found
