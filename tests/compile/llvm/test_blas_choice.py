"""The choice of the BLAS library: the environment variable, missing libraries, MKL if it is installed."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from glassgrad import errors
from glassgrad.compile.llvm.module import blas as module
from glassgrad.compile.llvm.module.blas import blas
from tests.compile.graphs import Builder, agree, interpret, lower


@pytest.fixture
def choose(monkeypatch):
    def choice(name):
        monkeypatch.setenv("GLASSGRAD_BLAS", name)
        blas.cache_clear()
        return blas

    yield choice
    monkeypatch.undo()
    blas.cache_clear()


def products():
    """All four layouts, a batch, and both kinds of numbers."""
    b = Builder(np.float32)
    x, y, wide = b.input(33, 70), b.input(70, 33), b.input(5, 33, 70)
    graph = b.build(x @ y, x @ x.T, x.T @ x, y.T @ x.T, wide @ y)
    rng = np.random.default_rng(0)
    return graph, [rng.normal(size=var.shape).astype(var.dtype) for var in graph.inputs]


def check_products(graph, arrays):
    want, _ = interpret(graph, arrays)
    for threads in (1, 2):
        step = lower(graph, threads=threads)
        first = step(*arrays)
        for got, expected in zip(first, want, strict=True):
            agree(got, expected)
        for got, again in zip(first, step(*arrays), strict=True):
            assert np.array_equal(got, again), "the same bits every time"
    return step


def test_own_products_call_no_library(choose):
    choose("own")
    step = check_products(*products())
    assert "gemm_f32" not in step.llvm
    assert blas().pointers == {}


def test_openblas_does_all_products_when_asked(choose):
    choose("openblas")
    if module._openblas() is None:
        pytest.skip("SciPy has no BLAS of its own here")
    step = check_products(*products())
    assert "tile_" not in step.llvm, "none is left to our own code"
    assert step.llvm.count("call void @gemm_f32") >= 5


def test_mkl_does_all_products_on_one_thread_a_share(choose):
    if module._mkl() is None:
        pytest.skip("MKL is not installed, or another library holds it")
    choose("mkl")
    step = check_products(*products())
    assert "tile_" not in step.llvm
    assert blas().name == "only mkl"


def test_a_name_that_is_none(choose):
    with pytest.raises(errors.ArgumentError, match=r"GLASSGRAD_BLAS is 'atlas'.\nExpected: 'own', 'openblas' or 'mkl'"):
        choose("atlas")()


def test_a_library_that_is_absent(choose, monkeypatch):
    monkeypatch.setattr(sys, "platform", "aix")  # for which there is no MKL
    with pytest.raises(errors.ArgumentError, match=r"requests 'mkl', which was not found"):
        choose("mkl")()


def _mkl_in(folder, monkeypatch):
    """Put a file of MKL's beside a folder of packages; return it."""
    packages = folder / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    library = folder / "lib" / "libmkl_rt.so.3"
    library.touch()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(sys, "path", [str(packages)])
    return library


def test_mkl_with_threads_of_its_own_is_left_alone(choose, monkeypatch, tmp_path):
    """Another user of the library in this process has settled on a threaded layer."""

    opened = []

    class Library:
        def __init__(self, path):
            opened.append(path)

        def MKL_Set_Threading_Layer(self, wanted):
            assert wanted.value == 1
            return 0

    _mkl_in(tmp_path, monkeypatch)
    monkeypatch.setattr(ctypes, "CDLL", Library)
    assert module._mkl() is None
    assert opened[0].startswith(str(tmp_path))


def test_steps_of_different_libraries_are_different_entries_of_the_cache(choose, monkeypatch, tmp_path):
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", str(tmp_path))
    choose("own")
    graph, arrays = products()
    assert not lower(graph, threads=1).stats.cached
    assert lower(graph, threads=1).stats.cached
    choose("openblas")
    assert not lower(graph, threads=1).stats.cached
    agree(lower(graph, threads=1)(*arrays)[0], interpret(graph, arrays)[0][0])


def test_mkl_is_looked_for_beside_every_folder_of_packages(monkeypatch, tmp_path):
    library = _mkl_in(tmp_path, monkeypatch)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "elsewhere"))
    assert library in module._mkl_files()


def test_the_choice_does_not_depend_on_what_was_imported():
    """With older wheels of SciPy the library opens only once others are loaded, as its own modules see to."""
    printed = set()
    for before in ("", "import scipy.special; ", "import scipy.linalg; "):
        code = f"{before}from glassgrad.compile.llvm.module.blas import blas; print(blas().name)"
        printed.add(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert len(printed) == 1
