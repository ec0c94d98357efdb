"""Functions that differ only in numbers are merged in a large module, and the step computes the same."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad.compile.llvm.module.alike import merged
from glassgrad.compile.llvm.module.step import StepModule
from tests.compile.graphs import Builder, agree, interpret, lower

LEAF = """define internal void @{name}(ptr %a, i64 %lo) #0 {{
entry:
  %t1 = mul i64 %lo, {scale}
  %p2 = getelementptr float, ptr %a, i64 {scale}
  %t3 = udiv i64 %t1, {divisor}
  %v4 = mul <2 x i64> <i64 0, i64 1>, splat (i64 {spread})
  ret void
}}
"""
CALLER = """define internal void @{name}(ptr %a) #0 {{
entry:
  call void @{leaf}(ptr %a, i64 {end})
  ret void
}}
"""


def leaf(name, scale, divisor=3, spread=5):
    return LEAF.format(name=name, scale=scale, divisor=divisor, spread=spread)


def test_numbers_become_arguments_and_callers_follow():
    definitions = {
        "kernel0": leaf("kernel0", 10),
        "kernel1": leaf("kernel1", 20),
        "kernel2": CALLER.format(name="kernel2", leaf="kernel0", end=7),
        "kernel3": CALLER.format(name="kernel3", leaf="kernel1", end=8),
        "phase0": "  call void @kernel2(ptr %a)\n  call void @kernel3(ptr %b)\n",
    }
    found = merged(definitions, ["kernel0", "kernel1", "kernel2", "kernel3"])
    assert list(found) == ["kernel0", "kernel2", "phase0"]
    assert "@kernel0(ptr %a, i64 %lo, i64 %given0) #0" in found["kernel0"]
    assert found["kernel0"].count("%given0") == 3, "both places of the number share an argument"
    assert "call void @kernel0(ptr %a, i64 %given0, i64 %given1)" in found["kernel2"]
    assert (
        found["phase0"] == "  call void @kernel2(ptr %a, i64 7, i64 10)\n  call void @kernel2(ptr %b, i64 8, i64 20)\n"
    )


@pytest.mark.parametrize("differs", [{"divisor": 4}, {"spread": 6}], ids=["divisor", "vector"])
def test_other_numbers_keep_functions_apart(differs):
    definitions = {"kernel0": leaf("kernel0", 10), "kernel1": leaf("kernel1", 10, **differs)}
    assert merged(definitions, list(definitions)) == definitions


def test_layers_of_different_widths_share_functions_and_compute_the_same(monkeypatch):
    b = Builder(np.float32)
    x = b.input(3, 4, 9, 16)
    arrays = [np.random.default_rng(0).normal(size=(3, 4, 9, 16)).astype(np.float32)]
    params = {"stride": (1, 1), "padding": ((2, 2), (2, 2)), "dilation": (2, 2), "groups": 1}
    for width in (14, 28, 42):
        shape = width, x.shape[1], 3, 3
        arrays.append(0.1 * np.random.default_rng(width).normal(size=shape).astype(np.float32))
        x = b("maximum", b("conv2d", x, b.input(*shape), **params), 0.0)
    graph = b.build(x)
    plain = lower(graph, threads=1)
    monkeypatch.setattr(StepModule, "merged_from", 0)
    shared = lower(graph, threads=1)
    assert shared.stats.functions < plain.stats.functions
    np.testing.assert_array_equal(shared(*arrays)[0], plain(*arrays)[0])
    agree(shared(*arrays)[0], interpret(graph, arrays)[0][0], scale=None)
