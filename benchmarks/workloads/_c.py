"""A step of ours written as C and compiled by gcc or clang: the batches and the loop over them are in C too."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import glassgrad as gg
from benchmarks.workloads._glassgrad import prepared
from glassgrad.compile.c.package import OPTIONS

FLAGS = OPTIONS.split()
_C_TYPES = {"float32": "float", "int64": "int64_t"}


def runner(function, data, mode):
    """The `run` of a step: its first step is Python's, which traces it; all others are C's.

    Mode is the compiler, with `+blas` for products by OpenBLAS. Only gcc has threads here, if more than one is wanted:
    clang's library for them is often not installed.
    """
    compiler, _, blas = mode.partition("+")
    if shutil.which(compiler) is None:
        raise ModuleNotFoundError(f"{compiler} is not installed", name=compiler)
    step = gg.compile(function, strict=True)
    library, position = None, 0

    def run(count):
        nonlocal library, position
        loss = np.float32(np.nan)
        if library is None and count:
            loss = step(*data[0]).item()
            library, position, count = _compiled(step, data, compiler, bool(blas)), 1, count - 1
        if count:
            loss = library.run(position, count)
            position = (position + count) % len(data)
        return float(loss)

    return run


def training_step(parts):
    """A training step, from its model, optimizer and loss."""
    model, optimizer, loss_fn = parts

    def step(x, y):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def training(parts, batches, mode):
    """The `run` of a training step, from its model, optimizer and loss."""
    return runner(training_step(parts), prepared(batches), mode)


def _compiled(step, data, compiler, blas):
    """Export, compile with a loop over all batches, load the weights and the data."""
    with tempfile.TemporaryDirectory(prefix="glassgrad-bench-") as name:
        folder = Path(name)
        step.export_c(folder)
        arrays = [np.stack([batch[at].numpy() for batch in data]) for at in range(len(data[0]))]
        (folder / "loop.c").write_text(_loop(arrays, len(data)), encoding="utf-8")
        extra = ["-DGG_USE_CBLAS", "-lopenblas"] if blas else []
        threads = ["-fopenmp"] if compiler == "gcc" and os.environ.get("OMP_NUM_THREADS") != "1" else []
        command = [compiler, *FLAGS, *threads, "-shared", "-fPIC", "-o", "step.so", "loop.c", "step.c", *extra, "-lm"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        library = ctypes.CDLL(str(folder / "step.so"))
        if blas:
            library.openblas_set_num_threads(1)  # the threads of the step share its products
        for at, array in enumerate(arrays):
            ctypes.memmove(
                ctypes.addressof(ctypes.c_char.in_dll(library, f"given{at}")), array.ctypes.data, array.nbytes
            )
        if library.begin(str(folder / "step.weights").encode()) != 0:
            raise RuntimeError("the weights cannot be read")
    library.run.restype = ctypes.c_double
    return library


def _loop(arrays, batches):
    names = [f"given{at}" for at in range(len(arrays))]
    declared = [f"{_C_TYPES[str(one.dtype)]} {name}[{one.size}];" for one, name in zip(arrays, names, strict=True)]
    places = [f"{name} + at * {one[0].size}" for one, name in zip(arrays, names, strict=True)]
    return f"""\
#include "step.h"
static struct step model;
{chr(10).join(declared)}
int begin(const char *path);
int begin(const char *path) {{ return step_init(&model, path); }}
double run(int first, int count);
double run(int first, int count)
{{
    float loss = 0;
    for (int turn = 0; turn < count; turn++) {{
        const int at = (first + turn) % {batches};
        if (step_run(&model, {", ".join(places)}, &loss) != 0) return -1;
    }}
    return loss;
}}
"""
