"""BLAS: the addresses of its matrix products, and the helper that calls one from generated code.

SciPy's wheels contain their own OpenBLAS, separate from NumPy's. It is opened directly and set to one thread, because
each thread of a step calls it for its own share; NumPy's copy still serves eager mode. If SciPy is built differently,
its Cython capsules provide the same functions. With the extra `mkl`, Intel's library replaces them.

BLAS is only for machines with vectors of fewer than 64 bytes. On others our own code computes the products, because it
is faster than OpenBLAS everywhere and than MKL on small and middle-sized matrices (a GPT of width 128: 28.6 against
31.2 ms; a network of width 1,024: 34.2 against 32.1 ms). The environment variable ``GLASSGRAD_BLAS`` overrides this:
``own`` uses our own code for every product, ``openblas`` and ``mkl`` use that library for all of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from glassgrad import errors

GEMM = {"f32": "sgemm", "f64": "dgemm"}


@dataclass(frozen=True)
class Blas:
    """A BLAS: its name and the addresses of its Fortran matrix products by element kind.

    `always` says that it computes all products, even if our own code is as fast.
    """

    name: str
    pointers: dict[str, int]
    always: bool = False


@lru_cache(maxsize=1)
def blas() -> Blas:
    """Return the BLAS that generated code calls; one without functions if there is none.

    Raises:
        ArgumentError: if ``GLASSGRAD_BLAS`` is not a known name, or names a library that is not installed.
    """
    wanted = os.environ.get("GLASSGRAD_BLAS", "")
    libraries = {"mkl": _mkl, "openblas": _openblas}
    if wanted == "own":
        return Blas("own", {})
    if wanted:
        if wanted not in libraries:
            raise errors.BLAS_UNKNOWN(given=wanted)
        found = libraries[wanted]()
        if found is None:
            raise errors.BLAS_MISSING(given=wanted)
        return replace(found, name=f"only {wanted}", always=True)
    found = _mkl() or _openblas()
    return found or Blas("none", {})


def _openblas() -> Blas | None:
    return _scipy_openblas() or _capsules()


def _scipy_openblas() -> Blas | None:
    """Open the library in SciPy's wheel; importing scipy.linalg for its capsules would take a quarter of a second."""
    for path in _libraries("scipy"):
        with contextlib.suppress(OSError):  # not this one; the next is tried
            library = _opened(path)
            for prefix, suffix in (("scipy_", "_"), ("", "_")):
                if hasattr(library, f"{prefix}sgemm{suffix}"):
                    _single_threaded(library, prefix)
                    addresses = {kind: _address(library, f"{prefix}{name}{suffix}") for kind, name in GEMM.items()}
                    return Blas("openblas", addresses)
    return None


def _opened(path: Path) -> ctypes.CDLL:
    """Open a library of a wheel. Older wheels of SciPy ship its dependencies, which must be loaded first.

    An import of SciPy's modules loads it too; the choice must not depend on such an import.
    """
    with contextlib.suppress(OSError):
        return ctypes.CDLL(str(path))
    for _ in range(2):  # a dependency has a dependency itself
        for other in sorted(path.parent.iterdir()):
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(other))
    return ctypes.CDLL(str(path))


def _libraries(package: str) -> Iterator[Path]:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return
    folder = Path(spec.origin).parent
    for place in (folder.parent / f"{package}.libs", folder / ".dylibs"):
        yield from sorted(place.glob("*openblas*"))


def _address(library: ctypes.CDLL, name: str) -> int:
    return int(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0)


def _single_threaded(library: ctypes.CDLL, prefix: str) -> None:
    setter = getattr(library, f"{prefix}openblas_set_num_threads", None)
    if setter is not None:
        setter(1)


def _capsules() -> Blas | None:
    try:
        from scipy.linalg import cython_blas
    except ImportError:
        return None
    for path in _libraries("scipy"):
        with contextlib.suppress(OSError):  # not this one; the next is tried
            _single_threaded(ctypes.CDLL(str(path)), "scipy_")
    return Blas("scipy", {kind: _capsule_pointer(cython_blas.__pyx_capi__[name]) for kind, name in GEMM.items()})


def _capsule_pointer(capsule: object) -> int:
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


def _mkl() -> Blas | None:
    """Open MKL's single runtime library if the extra is installed."""
    for path in _mkl_files():
        with contextlib.suppress(OSError, AttributeError):  # not this one; the next is tried
            library = ctypes.CDLL(str(path))
            # 1 is the sequential layer, without threads of its own. The layer cannot change if other code in this
            # process has used the library before; then every share would start threads.
            if library.MKL_Set_Threading_Layer(ctypes.c_int(1)) == 1:
                return Blas("mkl", {kind: _address(library, f"{name}_") for kind, name in GEMM.items()})
    return None


def _mkl_files() -> list[Path]:
    """Return the paths of MKL's library; its wheel puts it beside the packages, maybe of another environment."""
    pattern = {"linux": "libmkl_rt.so*", "darwin": "libmkl_rt*.dylib", "win32": "mkl_rt*.dll"}.get(sys.platform)
    if pattern is None:
        return []
    inside = Path("Library/bin" if sys.platform == "win32" else "lib")
    depth = 1 if sys.platform == "win32" else 2  # Lib/site-packages, lib/python3.11/site-packages
    packages = [Path(entry) for entry in sys.path if entry.endswith("site-packages")]
    roots = [Path(sys.prefix), *(folder.parents[depth] for folder in packages if len(folder.parents) > depth)]
    folders = dict.fromkeys(root / inside for root in roots)
    return [path for folder in folders for path in sorted(folder.glob(pattern), reverse=True)]


def gemm_helper(kind: str) -> tuple[str, str]:
    """Return (name, IR) of the function that passes numbers to BLAS by reference, as Fortran requires."""
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
    params = f"ptr %blas, ptr %a, ptr %b, ptr %c, {sizes}, i8 %ta, i8 %tb, {number} %beta"
    head = f"define internal void @{name}({params}) #0"
    return name, f"{head} {{\nentry:\n" + "\n".join(lines) + "\n}\n"
