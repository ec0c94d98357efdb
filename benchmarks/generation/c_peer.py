"""The same in C, compiled by the installed compiler for this processor."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import machine
from benchmarks.generation import problem as p

VECTORS = ("-march=haswell",) if machine.held() else ("-march=native", "-mprefer-vector-width=512")
FLAGS = ("-O3", *VECTORS, "-ffast-math", "-fPIC")


def library():
    """Compile the loop."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise ModuleNotFoundError("No module named 'cc'", name="cc")  # reported as a peer that is not installed
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "loop.so"
        source = Path(__file__).with_name("loop.c")
        plain = [flag for flag in FLAGS if "prefer" not in flag]
        for flags in (FLAGS, plain):  # compilers for other processors do not know the width
            # Linked with -ffast-math, a library would make the whole process flush small numbers to 0.
            compiled = [compiler, *flags, "-c", "-o", f"{path}.o", str(source)]
            linked = [compiler, "-shared", "-o", str(path), f"{path}.o", "-lm"]
            if all(subprocess.run(one, capture_output=True, check=False).returncode == 0 for one in (compiled, linked)):
                return ctypes.CDLL(str(path))
    raise RuntimeError("the C compiler refused the loop")


def pointer(array):
    """The address of an array's data."""
    return ctypes.c_void_p(array.ctypes.data)


def build(mode):
    code, initial = library(), p.initial()
    weights = np.concatenate([initial[name].ravel() for name in p.shapes()])
    shape = np.array([p.TOKENS, p.CONTEXT, p.WIDTH, p.HEADS, p.LAYERS], np.int64)
    cache = np.zeros(2 * p.LAYERS * p.CONTEXT * p.WIDTH, np.float32)
    done = 0

    def run(count):
        nonlocal done
        for _ in range(count):
            text, deciding = np.zeros(p.TEXT, np.int64), p.chances(done)
            text[0] = p.prompt(done)
            code.generate(
                pointer(weights), pointer(shape), pointer(cache), pointer(text), ctypes.c_int64(1),
                ctypes.c_int64(p.TEXT), ctypes.c_double(p.TEMPERATURE), pointer(deciding),
            )  # fmt: skip  # a table
            done += 1
        return p.checksum(text)

    return run
