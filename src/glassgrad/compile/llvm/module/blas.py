"""BLAS: the addresses of its matrix products, and the helper that calls one from generated code.

SciPy's wheels carry an OpenBLAS of their own, separate from NumPy's; it is opened directly and set to one thread,
because the threads of a step each call it for their own share while NumPy's copy serves eager mode as before. Where
SciPy is built in another way, its Cython capsules give the same functions. With the extra `mkl`, Intel's library takes
their place.

All of this is for machines whose vectors have fewer than 64 bytes: on the others our own code does the products, since
it is faster than OpenBLAS everywhere and than MKL on small and middle-sized matrices (a GPT of width 128: 28.6 against
31.2 ms; a network of width 1,024: 34.2 against 32.1 ms). The environment variable ``GLASSGRAD_BLAS`` decides otherwise:
``own`` leaves every product to our own code, ``openblas`` and ``mkl`` give all of them to that library.
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

    `always` says that it does all products, also where our own code is as good.
    """

    name: str
    pointers: dict[str, int]
    always: bool = False


@lru_cache(maxsize=1)
def blas() -> Blas:
    """Return the BLAS that generated code calls; one without functions when there is none.

    Raises:
        ArgumentError: where ``GLASSGRAD_BLAS`` names none, or one that is not installed.
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
    """Open a library of a wheel. Older wheels of SciPy bring along what it needs, which is found once it is loaded.

    Whoever imports SciPy's modules loads it, too; the choice must not depend on whether somebody has.
    """
    with contextlib.suppress(OSError):
        return ctypes.CDLL(str(path))
    for _ in range(2):  # what is needed needs something itself
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
    """Open MKL's single runtime library where the extra is installed."""
    for path in _mkl_files():
        with contextlib.suppress(OSError, AttributeError):  # not this one; the next is tried
            library = ctypes.CDLL(str(path))
            # 1 is the sequential layer: no threads of its own beside ours. The layer stays as it is where somebody else
            # in this process has used the library before; then every share would start threads.
            if library.MKL_Set_Threading_Layer(ctypes.c_int(1)) == 1:
                return Blas("mkl", {kind: _address(library, f"{name}_") for kind, name in GEMM.items()})
    return None


def _mkl_files() -> list[Path]:
    """Return where MKL's wheel puts its library: beside the folder of packages, which may not be this environment's."""
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
    params = f"ptr %blas, ptr %a, ptr %b, ptr %c, {sizes}, i8 %ta, i8 %tb, {number} %beta"
    head = f"define internal void @{name}({params}) #0"
    return name, f"{head} {{\nentry:\n" + "\n".join(lines) + "\n}\n"
