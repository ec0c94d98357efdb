"""Run Python as on a processor with AVX2 and nothing beyond it: `python tools/avx2.py -m pytest tests/ops`.

Our native code, OpenBLAS and NumPy each choose their instructions themselves, and each has a switch. `make test-avx2`
runs the whole suite this way. On a processor whose widest vectors are those of AVX2 everything stays as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np


def wider_features() -> list[str]:
    """Return what NumPy uses here beyond AVX2, in its words. It warns of a name that this version does not know."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return [name for name in found if name.startswith(("AVX512", "X86_V4"))]


def environment() -> dict[str, str]:
    """Return the variables of a process that is to use nothing beyond AVX2."""
    off = [*os.environ.get("NPY_DISABLE_CPU_FEATURES", "").replace(",", " ").split(), *wider_features()]
    numpys = {"NPY_DISABLE_CPU_FEATURES": " ".join(off)} if off else {}
    return {**os.environ, "GLASSGRAD_ISA": "avx2", "OPENBLAS_CORETYPE": "Haswell", **numpys}


def main(arguments: Sequence[str]) -> int:
    """Run Python with these arguments; return its exit code."""
    if not arguments:
        print(__doc__)
        return 2
    return subprocess.run([sys.executable, *arguments], env=environment(), check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
