"""The memory of one step serves the next."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from glassgrad.engine.memory import heap

STEPS = """
import resource
import glassgrad as gg
x = gg.ones(512, 512, requires_grad=True)
def step():
    y = x
    for _ in range(8):
        y = y * 1.5
    y.sum().backward()
    x.grad = None
step(); step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 5)
"""


def faults(**environment: str) -> float:
    """Page faults in a step that makes 8 arrays of a megabyte and keeps them for the backward pass."""
    names = ("GLASSGRAD_KEEP_MEMORY", *heap._VARIABLES)
    clean = {name: value for name, value in os.environ.items() if name not in names} | environment
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True, env=clean)
    return float(done.stdout)


@pytest.mark.skipif(not heap.keep_freed_memory(), reason="only glibc's allocator has these options")
def test_a_step_reuses_the_memory_of_the_one_before() -> None:
    assert faults() < 100
    assert faults(GLASSGRAD_KEEP_MEMORY="0") > 500


@pytest.mark.parametrize("name", ["GLASSGRAD_KEEP_MEMORY", *heap._VARIABLES])
def test_a_choice_in_the_environment_wins(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "0")
    assert not heap.keep_freed_memory()
