"""What our own peers share: batches as Tensors, and the choice of mode."""

from __future__ import annotations

import os

import glassgrad as gg
from benchmarks.workloads._loop import runner


def prepared(arrays):
    """The batches, already on our side: a list of tuples of Tensors."""
    return [tuple(gg.tensor(part) for part in batch) for batch in zip(*arrays, strict=True)]


def stepper(step, mode, data):
    """The `run` of a step: called as it is in mode `eager`, compiled with the named emitter otherwise.

    Mode `mkl` is the native emitter with all matrix products by MKL.
    """
    if mode == "mkl":
        products_by_mkl()
        mode = "llvm"
    compiled = None
    if mode != "eager":
        if not callable(getattr(gg, "compile", None)):
            raise AttributeError("module 'glassgrad' has no function 'compile'")
        # Strict: what cannot be compiled would run eagerly, and be measured under a wrong name.
        step = compiled = gg.compile(step, backend=mode, strict=True)
    run = runner(step, data)
    if compiled is not None:
        run.stats = lambda: compiled.stats
        run.stores = mode == "llvm"  # a second process finds on the disk what this one compiled
    return run


def products_by_mkl():
    """Choose MKL for this process; raise the error of a missing module where it is not installed."""
    from glassgrad.compile.llvm.module.blas import blas

    os.environ["GLASSGRAD_BLAS"] = "mkl"
    blas.cache_clear()
    try:
        blas()
    except gg.errors.ArgumentError as error:
        raise ModuleNotFoundError(str(error), name="mkl") from error
