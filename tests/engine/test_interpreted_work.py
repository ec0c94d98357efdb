"""The work of the interpreter in an eager step, counted: it dominates the time of small networks."""

from __future__ import annotations

import subprocess
import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import functional as F
from tools.sources import ROOT


def count(call: Any) -> int:
    """Return how many bytecodes a call interprets."""
    seen = 0

    def local(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal seen
        seen += event == "opcode"
        return local

    def enter(frame: FrameType, _event: str, _arg: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return local

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)
    return seen


def names_step() -> int:
    """Return the bytecodes of a step late in a training."""
    model = gg.nn.Sequential(
        gg.nn.Embedding(27, 10), gg.nn.Flatten(), gg.nn.Linear(30, 20), gg.nn.BatchNorm1d(20), gg.nn.Tanh(),
        gg.nn.Linear(20, 27),
    )  # fmt: skip  # a list of layers
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
    x, y = gg.tensor(np.arange(96).reshape(32, 3) % 27), gg.tensor(np.arange(32) % 27)

    def step() -> None:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for _ in range(8):
        step()
    return count(step)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions count other bytecodes")
def test_a_step_of_the_names_network_stays_as_short_as_it_is() -> None:
    """In a process of its own: one that has met bfloat16, or watches ops, interprets more."""
    program = "from tests.engine.test_interpreted_work import names_step; print(names_step())"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) <= 8200
