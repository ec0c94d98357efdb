"""Matrix products: BLAS function pointers and the code that calls them on a share of the rows or columns.

SciPy ships its BLAS as C functions in capsules. They expect Fortran's column order, so a product of arrays in row
order is called as the transposed product. SciPy's copy of OpenBLAS is not NumPy's; it is set to one thread, because
the threads of a step each call it for their own share.
"""

from __future__ import annotations

import contextlib
import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Any

GEMM = {"f32": "sgemm", "f64": "dgemm"}


@lru_cache(maxsize=1)
def blas_pointers() -> dict[str, int]:
    """Return the addresses of the matrix products, by BLAS name; empty when SciPy has none."""
    try:
        from scipy.linalg import cython_blas
    except ImportError:
        return {}
    _single_threaded()
    return {name: _capsule_pointer(cython_blas.__pyx_capi__[name]) for name in GEMM.values()}


def _capsule_pointer(capsule: Any) -> int:
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


def _single_threaded() -> None:
    """Set SciPy's own OpenBLAS to one thread; other copies in the process are not touched."""
    import scipy

    for folder in Path(scipy.__file__).parent.parent.glob("scipy.libs"):
        for library in folder.glob("*openblas*"):
            with contextlib.suppress(OSError):
                _set_threads(ctypes.CDLL(str(library)))


def _set_threads(library: ctypes.CDLL) -> None:
    for prefix in ("scipy_", ""):
        for suffix in ("", "64_", "_64", "_64_"):
            setter = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
            if setter is not None:
                setter(1)
                return


def gemm_helper(kind: str) -> tuple[str, str]:
    """Return (name, IR) of the function that passes numbers to BLAS by reference, as Fortran wants them."""
    number = {"f32": "float", "f64": "double"}[kind]
    name = f"gemm_{kind}"
    fields = ["m", "n", "k", "lda", "ldb", "ldc"]
    lines = [f"  %{field}.i = trunc i64 %{field} to i32" for field in fields]
    lines += [f"  %{field}.p = alloca i32, align 4" for field in fields]
    lines += [f"  store i32 %{field}.i, ptr %{field}.p, align 4" for field in fields]
    lines += ["  %ta.p = alloca i8", "  %tb.p = alloca i8", f"  %one = alloca {number}", f"  %start = alloca {number}"]
    lines += ["  store i8 %ta, ptr %ta.p", "  store i8 %tb, ptr %tb.p"]
    lines += [f"  store {number} 1.0, ptr %one", f"  store {number} %beta, ptr %start"]
    arguments = "ptr %tb.p, ptr %ta.p, ptr %n.p, ptr %m.p, ptr %k.p, ptr %one, ptr %b, ptr %ldb.p, ptr %a, ptr %lda.p"
    lines += [f"  call void %blas({arguments}, ptr %start, ptr %c, ptr %ldc.p)", "  ret void"]
    sizes = ", ".join(f"i64 %{field}" for field in fields)
    head = f"define internal void @{name}(ptr %blas, ptr %a, ptr %b, ptr %c, {sizes}, i8 %ta, i8 %tb, {number} %beta) #0"
    return name, f"{head} {{\nentry:\n" + "\n".join(lines) + "\n}\n"
