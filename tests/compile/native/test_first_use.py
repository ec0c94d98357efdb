"""The first large op of a process loads its kernel from disk, without the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import glassgrad as gg
from glassgrad import compile as compiler
from glassgrad.errors import MISSING_NAME

PROGRAM = """
import sys
import numpy as np
import glassgrad as gg
x = np.linspace(-3, 3, 400_000, dtype=np.float32)
y = gg.nn.functional.gelu(gg.tensor(x)).numpy()
exact = gg.nn.functional.gelu(gg.tensor(x.astype(float)[::1000])).numpy()
assert np.abs(y[::1000] - exact).max() < 1e-6
assert "glassgrad.compile.native.executable" in sys.modules
print(*[f"glassgrad.compile.{name}" in sys.modules for name in ("stages", "api", "ir.passes", "llvm.module.step")])
"""


def test_a_kernel_from_the_disk_is_loaded_without_passes_and_stages(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite", reason="kernels are made by LLVM")
    environment = {**os.environ, "GLASSGRAD_CACHE_DIR": str(tmp_path / "kept"), "GLASSGRAD_NATIVE": "1"}
    said = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, encoding="utf-8", check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["True", "False", "True", "True"], ["False"] * 4]


STEP = """
import sys
import glassgrad as gg
step = gg.compile(lambda x: (x * x).sum(), backend="llvm")
assert step(gg.ones(3)).item() == 3.0
rooms = (
    "stages", "ir.passes", "llvm.module.step", "plan.kernels", "llvm.convolutions.kernels", "report", "source.naming",
    "numpy.program",
)
print(*[f"glassgrad.compile.{name}" in sys.modules for name in rooms])
again = gg.compile(lambda x: (x * x).sum(), backend="llvm")
again(gg.ones(3))
assert again.stats.cached and "mul" in str(again.graph) and "fmul" in again.llvm
"""


def test_a_step_from_the_disk_is_found_before_its_stages_are_loaded(tmp_path: Path) -> None:
    """What a user asks for later, such as its graph and its code, goes through them all the same."""
    pytest.importorskip("llvmlite", reason="native steps are made by LLVM")
    environment = {**os.environ, "GLASSGRAD_CACHE_DIR": str(tmp_path / "kept")}
    said = [
        subprocess.run(
            [sys.executable, "-c", STEP], env=environment, capture_output=True, encoding="utf-8", check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["True"] * 4 + ["False"] * 4, ["False"] * 8]


def test_the_package_has_its_names_and_rooms_when_they_are_asked_for() -> None:
    assert gg.compile.compile is compiler.api.compile
    assert compiler.Compiled is compiler.api.Compiled
    with pytest.raises(type(MISSING_NAME(module="", name="", nearest="")), match="has no 'compyle'"):
        _ = compiler.compyle
