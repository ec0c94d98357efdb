"""Run Python as on a processor with at most AVX2: `python tools/avx2.py -m pytest tests/ops`.

Our native code, OpenBLAS and NumPy each choose their own instructions, and each has a switch. `make test-avx2` runs the
whole suite this way. On a processor without wider vectors, nothing changes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np


def wider_features() -> list[str]:
    """Return NumPy's names of the features beyond AVX2 that it uses here; NumPy warns of names it does not know."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return [name for name in found if name.startswith(("AVX512", "X86_V4"))]


def environment() -> dict[str, str]:
    """Return the environment variables of a process that uses nothing beyond AVX2."""
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
